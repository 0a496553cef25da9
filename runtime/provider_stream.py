"""What an HTTP answer of a provider says: the chunks of its event stream, or a classified ProviderError.

Every provider's model reads through here. Server-sent events are read as the standard says: only CR, LF and CRLF end
a line, comments are signs of life. What goes wrong is translated here, once. The SDKs of the providers have the same
exceptions under the same names; which one spoke is an argument.
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
from runtime.dialects import DONE
from runtime.dialects.faults import provider_error
from runtime.errors import ProtocolError, ProviderError

if TYPE_CHECKING:
    import httpx2

_MAX_EVENT_BYTES = 32 * 1024 * 1024
_MAX_ERROR_BYTES = 64 * 1024
_DRAIN_S = 0.1


class _Event(Protocol):
    """A server-sent event."""

    @property
    def event(self) -> str: ...
    @property
    def data(self) -> str: ...


class _StatusError(Protocol):
    """An SDK's exception for an HTTP status."""

    response: httpx2.Response
    body: Json


class Sdk(Protocol):
    """The exceptions of a provider's SDK."""

    @property
    def APIError(self) -> type[Exception]: ...  # noqa: N802
    @property
    def APIStatusError(self) -> type[Exception]: ...  # noqa: N802
    @property
    def APITimeoutError(self) -> type[Exception]: ...  # noqa: N802
    @property
    def APIConnectionError(self) -> type[Exception]: ...  # noqa: N802


# --- asking -------------------------------------------------------------------------------------------------------


async def streamed(
    create: Callable[..., Any],
    request: JsonObject,
    known: frozenset[str],
    sdk: Sdk,
    *,
    connect_timeout_s: float,
    silence_timeout_s: float,
    last: Callable[[JsonObject], bool] | None = None,
    headers: dict[str, str] | None = None,
) -> AsyncGenerator[JsonObject, None]:
    """The chunks that come of one `with_streaming_response.create` of an SDK: see `models.Model.stream`.

    Only the `known` members are given to the SDK by name. Whatever it does not know goes into the body all the same:
    servers have options of their own.
    """
    import httpx2

    timeout = httpx2.Timeout(silence_timeout_s, connect=connect_timeout_s)
    named = {name: value for name, value in request.items() if name in known}
    rest = {name: value for name, value in request.items() if name not in known and name != "stream"}
    sending = create(**named, stream=True, extra_body=rest, extra_headers=headers, timeout=timeout)
    try:
        async with sending as answer, aclosing(chunks_of(answer.http_response, last or is_done)) as chunks:
            async for chunk in chunks:
                yield chunk
    except (sdk.APIError, httpx2.HTTPError, httpx2.StreamError) as error:
        raise translated(error, sdk) from error


# --- reading ------------------------------------------------------------------------------------------------------


def is_done(chunk: JsonObject) -> bool:
    """Whether this is the chunk behind which nothing is waited for: `[DONE]`."""
    return chunk is DONE


async def chunks_of(
    response: httpx2.Response, last: Callable[[JsonObject], bool] = is_done
) -> AsyncGenerator[JsonObject, None]:
    """The chunks of a response that began with HTTP 200, up to the one that is the `last`, or its end."""
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
            if last(chunk):
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
    """Read the little that follows the last chunk, so that the connection can be used again.

    All was said: that the connection breaks now changes nothing of it.
    """
    import httpx2

    try:
        async with asyncio.timeout(_DRAIN_S):
            async for _ in events:
                pass
    except (TimeoutError, httpx2.HTTPError, httpx2.StreamError):
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
    fields = cast("JsonObject", said) if isinstance(said, dict) else {}
    if any(fields.get(name) for name in ("error", "message", "detail")):
        return provider_error(fields)
    kind = _media_type(response) or "no content type"
    return ProtocolError(f"The provider answered with {kind} instead of an event stream.")


def _media_type(response: httpx2.Response) -> str:
    return response.headers.get("content-type", "").partition(";")[0].strip().lower()


# --- translating --------------------------------------------------------------------------------------------------


def translated(error: Exception, sdk: Sdk) -> ProviderError:
    """The error of the SDK or the transport in our words: the first row that fits."""
    import httpx2

    if isinstance(error, sdk.APITimeoutError) and isinstance(error.__cause__, httpx2.ConnectTimeout):
        return ProviderError("The provider could not be reached in time.", code="provider_timeout", retryable=True)
    if isinstance(error, sdk.APIStatusError):
        said = cast("_StatusError", error)
        wait = _retry_after(said.response.headers)
        return provider_error(said.body, status=said.response.status_code, retry_after_s=wait)
    rows: tuple[tuple[type[Exception], type[ProviderError], str, str], ...] = (
        (sdk.APITimeoutError, ProviderError, "provider_timeout", "The provider did not answer in time."),
        (sdk.APIConnectionError, ProviderError, "provider_unavailable", "The provider could not be reached."),
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
