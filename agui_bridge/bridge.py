"""The bridge: agents, a store and their supervisor, behind whatever shape a host wants them in.

`.app` is a Starlette app. `.lifespan` starts and stops it and is to be chained into a host's own lifespan (a mounted
sub-app's never runs). `.handle` answers a request within a route of the host's. `.stream` is for every other
framework: frames without HTTP.
"""

from __future__ import annotations

import asyncio
import logging
import os
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import cached_property
from typing import TYPE_CHECKING, TypeAlias
from urllib.parse import quote

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response

from agui_bridge.desk import Accepted, Desk, Manners, Told, WhenBusy
from agui_bridge.encoders import Encoder, made
from agui_bridge.intake import IntakePolicy
from agui_bridge.links import KEY_BYTES, Links, Signer
from agui_bridge.run_input import RunInput, parse
from agui_bridge.settings import Settings
from agui_bridge.suggestion_request import asks_for_suggestions
from agui_bridge.suggestions import Suggestions
from agui_bridge.web import inspector
from agui_bridge.web.app import build_app
from agui_bridge.web.guard import answered, read_json
from agui_bridge.web.page import Page
from agui_bridge.web.stream import Afterwards, EventStream, stream_headers
from agui_bridge.wire.codec import SSE, codec_for
from runtime.agent import Agent
from runtime.authority import ANONYMOUS, Principal
from runtime.blobs.open import blobs_for
from runtime.canonical import Json, JsonObject, canonical
from runtime.errors import ConfigurationError
from runtime.executors.no_model import NoModel
from runtime.housekeeping import Housekeeper, RetentionPolicy
from runtime.journal.open import journal_from_url
from runtime.journal.store import Store
from runtime.limits import Limits
from runtime.models import Closable, Model
from runtime.resolve import resolve_model
from runtime.supervisor import Leasing, Performer, Supervisor
from runtime.system import SystemClock

if TYPE_CHECKING:
    from ag_ui.core import RunAgentInput

log = logging.getLogger("agui_bridge")

Authenticate: TypeAlias = Callable[[Request], Awaitable[Principal]]
"""Says who is asking, or raises an AguiBridgeError (such as one with status 401)."""

AGENT_PATH = "/agents/{agent:path}"


class NotStarted(ConfigurationError):
    """The bridge was used before it was started: chain `bridge.lifespan` into your app's lifespan (a mounted sub-app's
    own lifespan never runs), or use `async with bridge.lifespan():`."""

    code = "not_started"


class Bridge:
    """Agents behind AG-UI.

    `agents` is one agent, several, or a mapping of the names by which they are reached; `/` is the first. `store` is
    a URL or a journal; it and the other settings come from the environment where they are not given. `loopback` says
    whether the server is meant for this machine alone; not given, that is seen by the address at which a request comes
    in. `page` is what a browser finds at `/`; without one nothing is there.
    """

    def __init__(
        self,
        agents: Agent | Sequence[Agent] | Mapping[str, Agent],
        *,
        store: str | Store | None = None,
        settings: Settings | None = None,
        authenticate: Authenticate | None = None,
        agent_path: str = AGENT_PATH,
        loopback: bool | None = None,
        page: Page | None = None,
    ) -> None:
        self.settings = settings or Settings()  # pyright: ignore[reportCallIssue]  the fields come from the environment
        self.agents = _by_name(agents)
        self._authenticate = authenticate
        self._agent_path = agent_path
        self._loopback = loopback
        self._page = page
        self._life = asyncio.Lock()
        self._users = 0
        url = store if store is not None else self.settings.store
        journal = _journal(url, self.settings) if isinstance(url, str) else url
        self._supervisor = Supervisor(
            journal,
            {name: _performer(agent, self.settings) for name, agent in self.agents.items()},
            limits=_limits(self.settings),
            leasing=Leasing(self.settings.lease_s, self.settings.lease_s / 3),
            disconnect_grace_s=self.settings.disconnect_grace_s,
            perform_with=lambda agent: _performer(agent, self.settings),
            recovers=self.settings.recovery == "continue",
            blobs=blobs_for(self.settings.artifacts, url if isinstance(url, str) else None, journal),
            inline_media_bytes=int(self.settings.inline_media_kib * 1024),
        )
        self._housekeeper = Housekeeper(
            journal,
            self._supervisor.erasure,
            SystemClock(),
            _retention(self.settings),
            lambda: self._supervisor.tail.read_runs,
        )
        self._signer: Signer | None = None
        policy = IntakePolicy(self.settings.client_state, self.settings.accept_system_messages)
        cancel = self.settings.on_disconnect == "cancel"
        manners = Manners(legacy_subagents=self.settings.legacy_subagents)
        busy = WhenBusy(self.settings.on_busy, self.settings.queue_limit)
        self._suggestions = Suggestions(self._supervisor.performers, policy, _limits(self.settings))
        self._desk = Desk(self._supervisor, policy, cancel_when_unread=cancel, manners=manners, when_busy=busy)

    # --- life -----------------------------------------------------------------------------------------------------

    @asynccontextmanager
    async def lifespan(self, app: object = None) -> AsyncGenerator[None, None]:
        """Start before, drain and stop after. May be entered more than once: the first starts, the last one out stops.

        After that it may be entered again.
        """
        async with self._life:
            if not self._users:
                await self._start()
            self._users += 1
        try:
            yield
        finally:
            async with self._life:
                try:
                    if self._users == 1:
                        await self._stop()
                finally:
                    self._users -= 1

    async def _start(self) -> None:
        try:
            await self._supervisor.start()
            self._signer = await _signer(self._supervisor.journal, self.settings)
            self._suggestions.start()
            self._housekeeper.start()
        except BaseException:
            await self._supervisor.stop()
            raise

    async def _stop(self) -> None:
        try:
            await self._suggestions.stop()
            await self.drain()
            await self._housekeeper.stop()
            await self._supervisor.stop()
        finally:
            for performer in [*self._supervisor.performers.values(), *self._supervisor.nursery.unnamed]:
                model = performer.model
                if model is not performer.agent.model and isinstance(model, Closable):
                    await model.aclose()  # it was made here, from a name

    async def drain(self) -> None:
        """Take no new runs; end those at work within `drain_s` seconds and a moment."""
        await self._supervisor.drain(self.settings.drain_s)

    @property
    def supervisor(self) -> Supervisor:
        """The runtime behind it. Raises NotStarted."""
        if not self._users:
            raise NotStarted
        return self._supervisor

    # --- shapes ---------------------------------------------------------------------------------------------------

    @cached_property
    def app(self) -> Starlette:
        """The app with all routes; served by itself it starts and stops the bridge."""
        app = build_app(self, agent_path=self._agent_path, loopback=self._loopback, page=self._page)
        app.state.bridge = self
        if self.settings.inspector:
            inspector.mount(app, self.agents, self._agent_path)
        return app

    async def handle(self, request: Request, agent: str | None = None, *, connect: bool = False) -> Response:
        """Answer a POST of RunAgentInput: a stream, or an error as JSON. `agent` is a name; none is the first.

        With `connect` the page only comes back to its thread: it is told what there is, and nothing is begun. Raises
        only an HTTPException that `authenticate` raised.
        """
        return await answered(request, self._answer(request, agent, connect=connect))

    async def _answer(self, request: Request, agent: str | None, *, connect: bool) -> Response:
        if not self._users:
            raise NotStarted
        principal = await self.principal(request)
        document = await read_json(request, int(self.settings.max_body_mib * 2**20))
        return await self.answer(request, document, principal, agent, connect=connect)

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
        """See `Host.answer`."""
        codec, link_of = codec_for(request.headers.getlist("accept")), self.link_of(request)
        desk, run_input = self._desk.telling(codec, link_of, stops_quietly=stops_quietly), parse(document)
        if suggest or (not connect and await self._is_throw_away(run_input, principal)):
            return await self._suggest(desk.manners, run_input, agent, principal)
        accepted = await self._accept(desk, run_input, agent, principal, connect=connect)
        if isinstance(accepted, Told):
            return Response(accepted.frames, headers=stream_headers(codec))
        run_id = accepted.run.run_id
        location = f"{request.scope.get('root_path', '')}/api/agent-runs/{run_id}"
        headers = {"x-run-id": run_id, "location": quote(location)}
        keep_alive_s = self.settings.keep_alive_s
        return EventStream(accepted.cursor, accepted.encode, keep_alive_s=keep_alive_s, codec=codec, headers=headers)

    async def stop_suggestions(self, principal: Principal, thread_id: str) -> bool:
        """See `Host.stop_suggestions`."""
        return await self._suggestions.cancel(principal, thread_id)

    async def _is_throw_away(self, run_input: RunInput, principal: Principal) -> bool:
        """Whether suggestions are asked for, on a thread that nobody talks in."""
        if not asks_for_suggestions(run_input):
            return False
        return await self.supervisor.session(principal, run_input.thread_id) is None

    async def _suggest(
        self, manners: Manners, run_input: RunInput, agent: str | None, principal: Principal
    ) -> Response:
        async with AsyncExitStack() as stack:
            name = next(iter(self.agents)) if agent is None else agent
            accepted = await stack.enter_async_context(self._suggestions.accept(run_input, name, principal, manners))
            if isinstance(accepted, Told):
                return Response(accepted.frames, headers=stream_headers(manners.codec))
            keep_alive_s, codec = self.settings.keep_alive_s, manners.codec
            stream = EventStream(accepted.cursor, accepted.encode, keep_alive_s=keep_alive_s, codec=codec)
            return Afterwards(stream, stack.pop_all().aclose)

    async def stream(
        self,
        run_input: RunAgentInput | JsonObject,
        *,
        agent: str | None = None,
        principal: Principal = ANONYMOUS,
        connect: bool = False,
    ) -> AsyncGenerator[bytes, None]:
        """The frames of a run, one or more at a time; `connect` as for `handle`. Raises an AguiBridgeError before the
        first if it is refused.

        Close the generator when the reader goes away (`async with aclosing(...)`).
        """
        if not self._users:
            raise NotStarted
        desk = self._desk.telling(SSE, self.link_of(None))
        accepted = await self._accept(desk, _parsed(run_input), agent, principal, connect=connect)
        if isinstance(accepted, Told):
            yield accepted.frames
            return
        try:
            encode: Encoder | None = None
            while records := await accepted.cursor.next():
                encode = encode or await made(accepted.encode)
                if frames := encode(records):
                    yield frames
        finally:
            accepted.cursor.close()

    @property
    def signer(self) -> Signer:
        """Signs and checks links to artifacts. Raises NotStarted."""
        if self._signer is None:
            raise NotStarted
        return self._signer

    def link_of(self, request: Request | None) -> Links:
        """How artifacts and media are linked that the asking page is told of: below `public_url`, or where it asked."""
        here = "" if request is None else str(request.base_url).rstrip("/")
        return Links(self.signer, self.settings.public_url or here, time.time)

    async def principal(self, request: Request) -> Principal:
        """Who is asking."""
        return ANONYMOUS if self._authenticate is None else await self._authenticate(request)

    async def _accept(
        self, desk: Desk, run_input: RunInput, agent: str | None, principal: Principal, *, connect: bool
    ) -> Accepted | Told:
        for warning in run_input.warnings:
            log.warning("thread %s: %s", run_input.thread_id, warning)
        take = desk.connect if connect else desk.accept
        return await take(run_input, next(iter(self.agents)) if agent is None else agent, principal)


def create_app(
    agents: Agent | Sequence[Agent] | Mapping[str, Agent],
    *,
    store: str | Store | None = None,
    settings: Settings | None = None,
    authenticate: Authenticate | None = None,
    agent_path: str = AGENT_PATH,
) -> Starlette:
    """A Starlette app that serves the agents; `app.state.bridge` is the `Bridge` behind it."""
    bridge = Bridge(agents, store=store, settings=settings, authenticate=authenticate, agent_path=agent_path)
    return bridge.app


def _journal(url: str, settings: Settings) -> Store:
    return journal_from_url(url, synchronous=settings.synchronous, auto_migrate=settings.auto_migrate)


def _limits(settings: Settings) -> Limits:
    return Limits(
        max_rounds=settings.max_rounds,
        model_retries=settings.model_retries,
        first_token_timeout_s=settings.first_token_timeout_s,
        progress_interval_s=settings.progress_interval_s,
        fetch_media_from=frozenset(settings.fetch_media_from),
        most_media_bytes=settings.most_upload_bytes,
    )


def _retention(settings: Settings) -> RetentionPolicy:
    days = settings.retention_days
    expire_after_s = None if days is None else days * 86400
    return RetentionPolicy(settings.compact_after_s, expire_after_s, settings.unused_upload_s)


async def _signer(store: Store, settings: Settings) -> Signer:
    if settings.signing_key is not None:
        return Signer(settings.signing_key.get_secret_value().encode(), settings.artifact_link_s)
    return Signer(await store.keep_secret("links", os.urandom(KEY_BYTES)), settings.artifact_link_s)


def _by_name(agents: Agent | Sequence[Agent] | Mapping[str, Agent]) -> dict[str, Agent]:
    named = (
        {agents.name: agents}
        if isinstance(agents, Agent)
        else dict(agents)
        if isinstance(agents, Mapping)
        else {agent.name: agent for agent in agents}
    )
    if not named:
        raise ConfigurationError("A bridge needs at least one agent.")
    if isinstance(agents, Sequence) and len(named) < len(agents):
        raise ConfigurationError("Two agents have the same name: give a mapping of the names to be used.")
    for name in named:
        if not name or name.endswith(("/connect", "/capabilities")):
            raise ConfigurationError(f"An agent cannot be named {name!r}: that path means something else.")
    return named


def _performer(agent: Agent, settings: Settings) -> Performer:
    model = _model_of(agent, settings)
    try:
        canonical(agent.snapshot(model))
    except TypeError as problem:
        raise ConfigurationError(f"The model options of agent {agent.name!r} are no JSON: {problem}") from problem
    return Performer(agent, model)


def _model_of(agent: Agent, settings: Settings) -> Model:
    if (performer := agent.performer) is not None:
        return NoModel(agent.name, performer.kind)
    named = agent.model if agent.model is not None else settings.model
    return resolve_model(named, agent.timeouts or settings.timeouts)


def _parsed(run_input: RunAgentInput | JsonObject) -> RunInput:
    return parse(
        run_input
        if isinstance(run_input, dict)
        else run_input.model_dump(by_alias=True, exclude_unset=True, mode="json")
    )
