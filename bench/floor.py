"""The least that a Starlette server can do to stream events: one ready-made frame for each, no agent and no store.

`GET /?n=200` (or POST) answers with a whole AG-UI run of n text deltas. What a server spends above this is its own.
"""

from __future__ import annotations

from collections.abc import AsyncIterator

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import PlainTextResponse, StreamingResponse
from starlette.routing import Route

OPENING = (
    b'data: {"type":"RUN_STARTED","threadId":"thread-floor","runId":"run-floor","protocolVersion":"1.0"}\n\n',
    b'data: {"type":"TEXT_MESSAGE_START","messageId":"message-floor","role":"assistant"}\n\n',
)
DELTA = b'data: {"type":"TEXT_MESSAGE_CONTENT","messageId":"message-floor","delta":"tok "}\n\n'
CLOSING = (
    b'data: {"type":"TEXT_MESSAGE_END","messageId":"message-floor"}\n\n',
    b'data: {"type":"RUN_FINISHED","threadId":"thread-floor","runId":"run-floor"}\n\n',
)


async def frames(deltas: int) -> AsyncIterator[bytes]:
    for frame in OPENING:
        yield frame
    for _ in range(deltas):
        yield DELTA
    for frame in CLOSING:
        yield frame


async def run(request: Request) -> StreamingResponse:
    deltas = int(request.query_params.get("n", "200"))
    return StreamingResponse(frames(deltas), media_type="text/event-stream")


async def health(_: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


app = Starlette(routes=[Route("/", run, methods=["GET", "POST"]), Route("/health", health)])
