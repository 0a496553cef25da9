"""What the routes need of the bridge behind them: a port, so that they do not depend on how it is put together."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from typing import Protocol

from starlette.requests import Request
from starlette.responses import Response

from agui_bridge.links import Links, Signer
from agui_bridge.settings import Settings
from runtime.authority import Principal
from runtime.canonical import Json
from runtime.supervisor import Supervisor


class Host(Protocol):
    """A bridge, as its routes see it."""

    @property
    def settings(self) -> Settings:
        """The settings it was made with."""
        ...

    @property
    def supervisor(self) -> Supervisor:
        """The runtime; raises NotStarted before the start."""
        ...

    @property
    def signer(self) -> Signer:
        """Signs and checks links to artifacts; raises NotStarted before the start."""
        ...

    def link_of(self, request: Request | None) -> Links:
        """How artifacts and media are linked that the asking page is told of."""
        ...

    def lifespan(self, app: object = None) -> AbstractAsyncContextManager[None]:
        """Start before, drain and stop after."""
        ...

    async def principal(self, request: Request) -> Principal:
        """Who is asking."""
        ...

    async def answer(
        self,
        request: Request,
        document: Json,
        principal: Principal,
        agent: str | None = None,
        *,
        connect: bool = False,
        suggest: bool = False,
        stops_quietly: bool = False,
    ) -> Response:
        """Answer a RunAgentInput that was read already; with `connect` for a page that only comes back, with `suggest`
        with a run that leaves nothing behind.

        With `stops_quietly` clients that say no version are told of a stopped run that it is finished. Raises an
        AguiBridgeError for what is refused.
        """
        ...

    async def stop_suggestions(self, principal: Principal, thread_id: str) -> bool:
        """Stop the run on this thread that leaves nothing behind; False if there is none."""
        ...

    async def handle(self, request: Request, agent: str | None = None, *, connect: bool = False) -> Response:
        """Answer a POST of RunAgentInput; with `connect` for a page that only comes back."""
        ...
