"""The OpenAI SDK as both of its models use it: for addresses, keys and connections.

Its event objects are not used (they cost twenty times the parsing, and refuse what compatible servers send). The SDK
is imported when the first model is made, because that takes most of a second.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from typing import TYPE_CHECKING, Any

from runtime import provider_stream
from runtime.canonical import JsonObject
from runtime.errors import ConfigurationError
from runtime.provider_stream import is_done
from runtime.sdk_client import SdkClient

if TYPE_CHECKING:
    from openai import AsyncOpenAI


def openai_client(given: AsyncOpenAI | None) -> SdkClient[AsyncOpenAI]:
    """The given client, or one made from the SDK's own variables, without retries of its own.

    Raises ConfigurationError if there is no key.
    """
    from openai import AsyncOpenAI, DefaultAsyncHttpxClient, OpenAIError

    if given is not None:
        return SdkClient(given.with_options(max_retries=0), None)
    try:
        made = AsyncOpenAI(max_retries=0)
        return SdkClient(made, lambda closed: closed.copy(http_client=DefaultAsyncHttpxClient()))
    except OpenAIError as error:
        raise ConfigurationError(
            "The OpenAI client has no key: set OPENAI_API_KEY (any value, if the server at OPENAI_BASE_URL wants none)."
        ) from error


def streamed(
    create: Callable[..., Any],
    request: JsonObject,
    known: frozenset[str],
    *,
    connect_timeout_s: float,
    silence_timeout_s: float,
    last: Callable[[JsonObject], bool] = is_done,
) -> AsyncGenerator[JsonObject, None]:
    """The chunks that come of one `with_streaming_response.create` of this SDK: see `provider_stream.streamed`."""
    import openai

    return provider_stream.streamed(
        create,
        request,
        known,
        openai,
        connect_timeout_s=connect_timeout_s,
        silence_timeout_s=silence_timeout_s,
        last=last,
    )
