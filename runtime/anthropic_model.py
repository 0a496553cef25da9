"""A model behind Anthropic's Messages API: Anthropic's own, or any server that speaks it.

The official SDK is used for addresses, keys and connections, not for its event objects: they refuse what eager tool
streaming and compatible servers send. It is imported when the first model is made, because that takes a while.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import TYPE_CHECKING

from runtime.canonical import JsonObject
from runtime.dialects import Dialect
from runtime.dialects.anthropic import Anthropic, is_last
from runtime.errors import ConfigurationError
from runtime.output import usual_mode
from runtime.provider_stream import streamed
from runtime.sdk_client import SdkClient
from runtime.timeouts import CONNECT_TIMEOUT_S, SILENCE_TIMEOUT_S

if TYPE_CHECKING:
    from anthropic import AsyncAnthropic

_NAMED = frozenset({"model", "messages", "max_tokens"})
_NO_KEY = """The Anthropic client has no key: set ANTHROPIC_API_KEY (any value, if the server wants none)."""


class AnthropicModel:
    """A model behind the Messages API.

    Without a `client`, one is made from the SDK's own variables (`ANTHROPIC_API_KEY`, `ANTHROPIC_BASE_URL`);
    ConfigurationError if there is no key. A given client keeps its address, key and connections; retries are switched
    off and the timeouts given here hold. `provider` names who issues signatures: give servers names of their own.
    `output_mode` is how it is asked for an agent's output type; a server of another name than `anthropic` gets `tool`.
    """

    def __init__(
        self,
        name: str,
        *,
        client: AsyncAnthropic | None = None,
        provider: str = "anthropic",
        think_tags: bool = True,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        silence_timeout_s: float = SILENCE_TIMEOUT_S,
        output_mode: str | None = None,
    ) -> None:
        self.name = name
        self.provider = provider
        self.output_mode = output_mode or usual_mode(provider, name)
        self.dialect: Dialect = Anthropic(provider, think_tags=think_tags)
        self._client = _client(client)
        self._connect_timeout_s = connect_timeout_s
        self._silence_timeout_s = silence_timeout_s

    def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """One attempt: see `models.Model.stream`. Nothing is read behind `message_stop`.

        The `betas` of a request become its header.
        """
        import anthropic

        betas = request.get("betas")
        return streamed(
            self._client.open.messages.with_streaming_response.create,
            {name: value for name, value in request.items() if name != "betas"},
            _NAMED,
            anthropic,
            connect_timeout_s=self._connect_timeout_s,
            silence_timeout_s=self._silence_timeout_s,
            last=is_last,
            headers={"anthropic-beta": ",".join(betas)} if betas else None,
        )

    async def aclose(self) -> None:
        """See `models.Closable.aclose`."""
        await self._client.aclose()


def _client(given: AsyncAnthropic | None) -> SdkClient[AsyncAnthropic]:
    """The given client, or one made from the SDK's own variables, without retries of its own."""
    from anthropic import AnthropicError, AsyncAnthropic, DefaultAsyncHttpxClient

    if given is not None:
        return SdkClient(given.with_options(max_retries=0), None)
    try:
        made = AsyncAnthropic(max_retries=0)
    except AnthropicError as error:
        raise ConfigurationError(f"{_NO_KEY} The SDK says: {error}") from error
    if made.api_key is None and made.auth_token is None and made.credentials is None:
        raise ConfigurationError(_NO_KEY)
    return SdkClient(made, lambda closed: closed.copy(http_client=DefaultAsyncHttpxClient()))
