"""The server process: uvicorn, with an end that loses nothing.

On SIGTERM or SIGINT no new run begins, runs at work may finish for `drain_s` seconds, what is left ends as
interrupted, and every open stream gets its terminal event before the sockets close. A second signal ends it at once.
"""

from __future__ import annotations

import logging
import socket

import uvicorn

from agui_bridge.bridge import Bridge

log = logging.getLogger("agui_bridge")

CLOSE_S = 3
"""How long connections may take to close after their streams have ended, in seconds."""


class Server(uvicorn.Server):
    """Serves one bridge."""

    def __init__(self, bridge: Bridge, host: str, port: int) -> None:
        settings = bridge.settings
        super().__init__(
            uvicorn.Config(
                bridge.app,
                host=host,
                port=port,
                log_level=settings.log_level,
                log_config=None,
                access_log=False,
                server_header=False,
                timeout_graceful_shutdown=CLOSE_S,
                lifespan="on",
            )
        )
        self._bridge = bridge

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        await super().startup(sockets)
        for server in getattr(self, "servers", ()):
            for listening in server.sockets:
                host, port = listening.getsockname()[:2]
                log.info("agui-bridge serves %s on http://%s:%s", ", ".join(self._bridge.agents), host, port)

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        await self._bridge.drain()
        await super().shutdown(sockets)
