"""The one streaming response: pulls committed records from a cursor, encodes what is ready, sends it at once.

It is plain ASGI. What is ready goes into one send; a silent stream gets a comment now and then; a client that goes
away closes the cursor. The body ends cleanly only behind the run's terminal event: a stream that has to stop before
that is aborted, because a clean end reads as success.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Awaitable, Callable, Mapping

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from agui_bridge.encoders import Encoder, Late, made
from agui_bridge.wire.codec import SSE, Codec
from runtime.errors import ReaderDropped
from runtime.journal.tail import Cursor

log = logging.getLogger("agui_bridge.web")

_HEADERS = {
    "cache-control": "no-cache, no-transform",  # no proxy may compress a stream: it would hold frames back
    "x-accel-buffering": "no",
}


def stream_headers(codec: Codec) -> dict[str, str]:
    """The headers of a stream in this form."""
    return {"content-type": codec.media_type, **_HEADERS}


MANY = 64
"""After so many records at once a replay lets others run; it may not wait for anything else."""

_POISON = {"type": "http.response.body", "body": "this stream is cut off here", "more_body": True}
"""A body that is no bytes. Middleware that runs the app in a task of its own (Starlette's BaseHTTPMiddleware) ends the
body cleanly when the app fails, and only then raises; but it hands on what it is given, and the server raises at this.
"""


class StreamAborted(Exception):
    """The stream cannot go on; raised so that the server aborts the connection instead of ending the body."""


class EventStream(Response):
    """A response that follows a run. `encode` turns records into frames of `codec`; it may answer with nothing.

    While the run waits for its thread there is nothing to tell but that the stream is alive.
    """

    def __init__(
        self,
        cursor: Cursor,
        encode: Encoder | Late,
        *,
        keep_alive_s: float,
        codec: Codec = SSE,
        headers: Mapping[str, str] | None = None,
    ) -> None:
        self.status_code = 200
        self.background = None
        merged = {**stream_headers(codec), **(headers or {})}
        self.raw_headers = [(name.encode(), value.encode()) for name, value in merged.items()]
        self._cursor = cursor
        self._encode = encode
        self._keep_alive_s = keep_alive_s
        self._keep_alive = codec.keep_alive
        self._gone = False

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            self._cursor.close()
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            await send({"type": "http.response.body", "body": b""})
            return
        watch = asyncio.create_task(self._watch(receive))
        alive = _KeepAlive(send, self._keep_alive_s, self._keep_alive)
        try:
            await send({"type": "http.response.start", "status": 200, "headers": self.raw_headers})
            alive.start()
            encode: Encoder | None = None
            while records := await self._cursor.next():
                encode = encode or await made(self._encode)
                if frames := encode(records):
                    alive.spoke()
                    await send({"type": "http.response.body", "body": frames, "more_body": True})
                if len(records) >= MANY:
                    await asyncio.sleep(0)
            alive.stop()
            await send({"type": "http.response.body", "body": b""})
        except OSError as error:  # from `send`, by servers that speak ASGI 2.4
            log.debug("the reader of run %s is gone: %s", self._cursor.run_id, error)
        except ReaderDropped as dropped:
            log.info("the stream of run %s is cut off: %s", self._cursor.run_id, dropped)
            await _poison(send)
            raise StreamAborted(f"The stream of run {self._cursor.run_id} goes on elsewhere.") from dropped
        except Exception as error:
            if not self._gone:
                # Without the trace: the server logs that of what is raised here.
                log.error("the stream of run %s is cut off: %s", self._cursor.run_id, error)  # noqa: TRY400
                await _poison(send)
                raise StreamAborted(f"The stream of run {self._cursor.run_id} was cut off.") from error
        finally:
            alive.stop()
            watch.cancel()
            self._cursor.close()

    async def _watch(self, receive: Receive) -> None:
        while (await receive())["type"] != "http.disconnect":
            pass
        self._gone = True
        self._cursor.close()


class Afterwards(Response):
    """A response with something to be done when it is over, however it ended."""

    def __init__(self, response: Response, work: Callable[[], Awaitable[None]]) -> None:
        self.status_code = response.status_code
        self.background = None
        self.raw_headers = response.raw_headers
        self._response = response
        self._work = work

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        try:
            await self._response(scope, receive, send)
        finally:
            await self._work()


async def _poison(send: Send) -> None:
    with contextlib.suppress(Exception):
        await send(_POISON)


class _KeepAlive:
    """Sends a comment when nothing was sent for a while: one timer, set anew only when it fires. Without a `comment`
    it does nothing."""

    def __init__(self, send: Send, seconds: float, comment: bytes | None) -> None:
        self._send = send
        self._seconds = seconds
        self._said = comment
        self._loop = asyncio.get_running_loop()
        self._last = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._comment: asyncio.Task[None] | None = None

    def start(self) -> None:
        self.spoke()
        if self._said is not None:
            self._timer = self._loop.call_later(self._seconds, self._look)

    def spoke(self) -> None:
        self._last = self._loop.time()

    def stop(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._comment is not None:
            self._comment.cancel()
            self._comment = None

    def _look(self) -> None:
        silent = self._loop.time() - self._last
        if silent >= self._seconds:
            self.spoke()
            self._comment = self._loop.create_task(self._say())
            silent = 0.0
        self._timer = self._loop.call_later(self._seconds - silent, self._look)

    async def _say(self) -> None:
        with contextlib.suppress(OSError):  # who is gone needs no comment; the stream itself will notice
            await self._send({"type": "http.response.body", "body": self._said, "more_body": True})
