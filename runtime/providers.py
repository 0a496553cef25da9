"""Models behind a network: a request goes out through the provider's SDK, raw chunks come back as dicts.

The SDK does addresses, keys and connections; its event objects are not used (they cost twenty times the parsing, and
refuse what compatible servers send). Server-sent events are read as the standard says: only CR, LF and CRLF end a
line, comments are signs of life. What goes wrong is translated here, once, into a classified ProviderError.

The SDK is imported when the first model is made, because that takes most of a second.
"""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import TYPE_CHECKING, Any, Protocol, cast

import orjson

from runtime.canonical import Json, JsonObject
from runtime.dialects import DONE, Dialect
from runtime.dialects.faults import provider_error
from runtime.dialects.openai_chat import OpenAIChat
from runtime.errors import ConfigurationError, ProtocolError, ProviderError
from runtime.models import Model

if TYPE_CHECKING:
    import httpx2
    from openai import AsyncOpenAI

CONNECT_TIMEOUT_S = 10.0
SILENCE_TIMEOUT_S = 300.0
"""How long a provider may say nothing at all; models that think in silence take minutes."""

_MAX_EVENT_BYTES = 32 * 1024 * 1024
_MAX_ERROR_BYTES = 64 * 1024
_DRAIN_S = 0.1


class _Event(Protocol):
    """A server-sent event."""

    @property
    def event(self) -> str: ...
    @property
    def data(self) -> str: ...


class OpenAIChatModel:
    """A model behind a Chat Completions endpoint: OpenAI's, or any server that speaks it.

    Without a `client`, one is made from the SDK's own variables (`OPENAI_API_KEY`, `OPENAI_BASE_URL`);
    ConfigurationError if there is no key. A given client keeps its address, key and connections; retries are switched
    off and the timeouts given here hold. `provider` names who issues signatures: give servers names of their own.
    """

    def __init__(
        self,
        name: str,
        *,
        client: AsyncOpenAI | None = None,
        provider: str = "openai",
        think_tags: bool = True,
        starts_in_thinking: bool = False,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        silence_timeout_s: float = SILENCE_TIMEOUT_S,
    ) -> None:
        self.name = name
        self.provider = provider
        self.dialect: Dialect = OpenAIChat(provider, think_tags=think_tags, starts_in_thinking=starts_in_thinking)
        self._client = (client or _client()).with_options(max_retries=0)
        self._connect_timeout_s = connect_timeout_s
        self._silence_timeout_s = silence_timeout_s

    async def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """One attempt: see `models.Model.stream`."""
        import httpx2
        from openai import OpenAIError

        timeout = httpx2.Timeout(self._silence_timeout_s, connect=self._connect_timeout_s)
        # Whatever the SDK does not know goes into the body all the same: servers have options of their own.
        known = {"model", "messages", "stream"}
        rest = {name: value for name, value in request.items() if name not in known}
        create = cast("Any", self._client.chat.completions.with_streaming_response.create)
        sending = create(
            model=request["model"], messages=request["messages"], stream=True, extra_body=rest, timeout=timeout
        )
        try:
            async with sending as answer, aclosing(_chunks(answer.http_response)) as chunks:
                async for chunk in chunks:
                    yield chunk
        except (OpenAIError, httpx2.HTTPError, httpx2.StreamError) as error:
            raise _translated(error) from error


def model_from_string(text: str) -> Model:
    """The model that `KIND:NAME` names. Raises ConfigurationError, which lists the kinds that exist."""
    kind, _, name = text.partition(":")
    make = _KINDS.get(kind)
    if make is None or not name.strip():
        known = ", ".join(f"{one}:NAME" for one in _KINDS)
        raise ConfigurationError(f"There is no model {text!r}. A model is named as one of: {known}.")
    return make(name.strip())


_KINDS: dict[str, Callable[[str], Model]] = {"openai-chat": OpenAIChatModel}


def _client() -> AsyncOpenAI:
    from openai import AsyncOpenAI, OpenAIError

    try:
        return AsyncOpenAI(max_retries=0)
    except OpenAIError as error:
        raise ConfigurationError(
            "The OpenAI client has no key: set OPENAI_API_KEY (any value, if the server at OPENAI_BASE_URL wants none)."
        ) from error


# --- reading ------------------------------------------------------------------------------------------------------


async def _chunks(response: httpx2.Response) -> AsyncGenerator[JsonObject, None]:
    """The chunks of a response that began with HTTP 200, up to `[DONE]` or its end."""
    from httpx2 import EventSource

    if _media_type(response) != "text/event-stream":
        raise await _no_stream(response)
    response.encoding = "utf-8-sig"  # event streams are UTF-8, whatever the header says; a BOM is no text
    async with aclosing(cast("AsyncGenerator[_Event, None]", aiter(EventSource(response, _MAX_EVENT_BYTES)))) as events:
        async for event in events:
            chunk = chunk_of(event.event, event.data)
            if chunk is None:
                continue
            yield chunk
            if chunk is DONE:
                await _drain(events)
                return


def chunk_of(event: str, data: str) -> JsonObject | None:
    """The chunk in an event's data, `DONE` for `[DONE]`, None for an empty one. Raises ProtocolError if it is no JSON.

    The body of an `error` event always stands under `error`.
    """
    data = data.strip()
    if not data:
        return None
    if data == "[DONE]":
        return DONE
    chunk = _parsed(data)
    if event == "error" and not (isinstance(chunk, dict) and "error" in chunk):
        return {"error": chunk}
    return cast("JsonObject", chunk)


def _parsed(data: str | bytes) -> Json:
    try:
        return orjson.loads(data)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        pass
    try:
        return json.loads(data)  # lone halves of a character, NaN: servers send them
    except (ValueError, RecursionError) as error:
        raise ProtocolError("The provider sent an event that is not JSON.", retryable=True) from error


async def _drain(events: AsyncIterator[_Event]) -> None:
    """Read the little that follows `[DONE]`, so that the connection can be used again."""
    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in events:
                pass
    except TimeoutError:
        return


async def _no_stream(response: httpx2.Response) -> ProviderError:
    """What a 200 answer means that is no event stream."""
    body = bytearray()
    async with aclosing(response.aiter_bytes()) as pieces:
        async for piece in pieces:
            body += piece
            if len(body) > _MAX_ERROR_BYTES:
                break
    try:
        said = _parsed(bytes(body))
    except ProtocolError:
        said = None
    if isinstance(said, dict) and ("error" in said or "message" in said or "detail" in said):
        return provider_error(cast("JsonObject", said))
    kind = _media_type(response) or "no content type"
    return ProtocolError(f"The provider answered with {kind} instead of an event stream.")


def _media_type(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


# --- translating --------------------------------------------------------------------------------------------------


def _translated(error: Exception) -> ProviderError:
    """The error of the SDK or the transport in our words: the first row that fits."""
    import httpx2
    import openai

    if isinstance(error, openai.APIStatusError):
        wait = _retry_after(error.response.headers)
        return provider_error(error.body, status=error.status_code, retry_after_s=wait)
    rows: tuple[tuple[type[Exception], type[ProviderError], str, str], ...] = (
        (openai.APITimeoutError, ProviderError, "provider_timeout", "The provider did not answer in time."),
        (openai.APIConnectionError, ProviderError, "provider_unavailable", "The provider could not be reached."),
        (httpx2.TimeoutException, ProviderError, "provider_timeout", "The provider fell silent."),
        (httpx2.NetworkError, ProtocolError, "stream_cut", "The connection to the provider was cut."),
        (httpx2.RemoteProtocolError, ProtocolError, "stream_cut", "The provider's stream ended in the middle."),
    )
    for kind, made, code, message in rows:
        if isinstance(error, kind):
            return made(message, code=code, retryable=True)
    return ProtocolError("The provider's answer could not be read.")


def _retry_after(headers: httpx2.Headers) -> float | None:
    """Seconds to wait, from `retry-after-ms` or `retry-after` (a number or a date)."""
    for name, unit in (("retry-after-ms", 1000), ("retry-after", 1)):
        try:
            seconds = float(headers.get(name, "")) / unit
        except ValueError:
            continue
        if math.isfinite(seconds) and seconds >= 0:
            return seconds
    try:
        date = parsedate_to_datetime(headers.get("retry-after", ""))
    except ValueError:
        return None
    date = date if date.tzinfo else date.replace(tzinfo=UTC)
    return max(0.0, (date - datetime.now(UTC)).total_seconds())
