"""The server process: uvicorn, with a beginning that says what is wrong and an end that loses nothing.

What cannot work is refused before anybody listens: the address first, then the store, each as one error of ours. On
SIGTERM or SIGINT no new run begins, runs at work may finish for `drain_s` seconds, what is left ends as interrupted,
and every open stream gets its terminal event before the sockets close. A second signal ends it at once: what was at
work then is closed by the next start.
"""

from __future__ import annotations

import asyncio
import errno
import gc
import logging
import signal
import socket
import sys
from collections.abc import Callable
from contextlib import AsyncExitStack
from types import FrameType

import uvicorn

from agui_bridge.bridge import Bridge
from agui_bridge.web.stream import StreamAborted
from runtime.errors import ConfigurationError

log = logging.getLogger("agui_bridge")

CLOSE_S = 3
"""How long connections may take to close after their streams have ended, in seconds."""

COLLECT_AFTER = (20_000, 20, 20)
"""The thresholds of the garbage collector: a run makes thousands of small objects that free themselves. Measured: 7 %
less CPU time for a streamed delta than with those of the interpreter."""

BACKLOG = 2048
"""How many connections may wait to be accepted."""


class Server(uvicorn.Server):
    """Serves one bridge. `on_listening` is told the URL once it can be used. `is_worker`: others serve the same
    address, under a parent that asks for their end."""

    def __init__(
        self,
        bridge: Bridge,
        host: str,
        port: int,
        *,
        on_listening: Callable[[str], None] | None = None,
        is_worker: bool = False,
    ) -> None:
        self._is_worker = is_worker
        level = bridge.settings.log_level
        super().__init__(
            uvicorn.Config(
                bridge.app,
                host=host,
                port=port,
                log_level="warning" if level == "info" else level,  # its news of a normal day repeat ours
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=CLOSE_S,
                lifespan="off",
            )
        )
        self._bridge = bridge
        self._on_listening = on_listening
        self._life = AsyncExitStack()
        logging.getLogger("uvicorn.error").addFilter(_tells_news)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Take the address, start the bridge, listen. Raises ConfigurationError and what the store raises."""
        listening = sockets or bind(self.config.host, self.config.port)
        try:
            await self._life.enter_async_context(self._bridge.lifespan())
            await super().startup(listening)
        except BaseException:
            for each in listening:
                each.close()
            await self._life.aclose()
            raise
        _settle_memory()
        urls = [url_of(each) for each in listening]
        log.info("agui-bridge serves %s on %s", ", ".join(self._bridge.agents), " and ".join(urls))
        if self._on_listening is not None:
            self._on_listening(urls[0])

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """The first SIGTERM or SIGINT asks for the end, a second one of either kind does not wait for it."""
        if self._is_worker and sig == signal.SIGINT:
            return  # from a terminal it comes to the parent as well, who asks for the end
        self.force_exit = self.should_exit
        super().handle_exit(sig, frame)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Drain, close the connections, stop the bridge."""
        if self._is_worker:
            for each in self.servers:
                each.close()  # the others listen at the same address
        draining = asyncio.ensure_future(self._bridge.drain())
        while not draining.done() and not self.force_exit:
            await asyncio.wait({draining}, timeout=0.1)
        if not draining.done():
            draining.cancel()
            self._life.pop_all()
            return
        async with self._life:
            draining.result()
            await super().shutdown(sockets)


def _settle_memory() -> None:
    """What is loaded by now stays to the end: the garbage collector looks at it no more, and at the rest less often."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*COLLECT_AFTER)


def _tells_news(record: logging.LogRecord) -> bool:
    """Whether a record of uvicorn's is not of a stream that was cut off: that one has told of itself."""
    return record.exc_info is None or not isinstance(record.exc_info[1], StreamAborted)


def bind(host: str, port: int) -> list[socket.socket]:
    """Sockets that listen on every address of `host`. Raises ConfigurationError."""
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE)
    except OSError as error:
        raise ConfigurationError(f"There is no address for the host {host!r}.") from error
    listening: list[socket.socket] = []
    refused: OSError | None = None
    for family, _, _, _, address in dict.fromkeys(found):
        each = socket.socket(family, socket.SOCK_STREAM)
        try:
            if sys.platform != "win32":  # where it would share the port with whoever has it
                each.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                each.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            taken = listening[0].getsockname()[1] if listening else port
            each.bind((address[0], taken, *address[2:]))
            each.listen(BACKLOG)
            each.setblocking(False)
        except OSError as error:
            each.close()
            refused = error
            if error.errno != errno.EADDRNOTAVAIL:  # a name may stand for an address that this machine lacks
                break
        else:
            listening.append(each)
    if refused is not None and (not listening or refused.errno != errno.EADDRNOTAVAIL):
        for each in listening:
            each.close()
        raise ConfigurationError(_why(refused, host, port)) from refused
    return listening


def _why(error: OSError, host: str, port: int) -> str:
    match error.errno:
        case errno.EADDRINUSE:
            return f"Port {port} on {host} is in use: stop what listens there, or choose another with --port."
        case errno.EACCES:
            return f"This user may not listen on port {port}: choose one from 1024 on with --port."
        case _:
            return f"Nothing can listen on {host}, port {port}: {error.strerror}."


def url_of(listening: socket.socket) -> str:
    """Where this socket is reached."""
    host, port = listening.getsockname()[:2]
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
