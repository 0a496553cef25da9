"""The command line: `agui-bridge serve | demo | migrate | doctor | check | runs … | owners …`."""

from __future__ import annotations

import asyncio
import importlib
import logging
import socket
import sys
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar, cast

import click

from agui_bridge._version import __version__
from agui_bridge.bridge import Bridge
from agui_bridge.cli_owners import owners
from agui_bridge.cli_runs import runs
from agui_bridge.cli_store import settings_of as _settings
from agui_bridge.settings import Settings
from runtime.agent import Agent
from runtime.errors import AguiBridgeError, ConfigurationError
from runtime.providers import named_models

F = TypeVar("F", bound=Callable[..., Any])

FindAgents: TypeAlias = "Callable[[Settings], Agent | Sequence[Agent] | Mapping[str, Agent]]"
"""Finds what is to be served, in whatever process."""

if TYPE_CHECKING:
    from agui_bridge.web.server import Server

log = logging.getLogger("agui_bridge")

_PLAIN = "You are a helpful assistant."
_TALKATIVE = ("httpx2", "openai", "anthropic")
"""Loggers of libraries that tell of every request."""

_HINT = """
Open {url}/ in a browser, or ask it something from another terminal:

  curl -N {url}/ -H 'content-type: application/json' -d '{{"threadId": "t1", "runId": "r1",
    "messages": [{{"id": "m1", "role": "user", "content": "What is the weather in Oslo?"}}]}}'

Ctrl+C stops it.
"""


class _Errors(click.Group):
    """Says what is wrong in one line, without a traceback: these errors are for the person at the keyboard."""

    def invoke(self, ctx: click.Context) -> Any:
        try:
            return super().invoke(ctx)
        except AguiBridgeError as error:
            raise click.ClickException(f"{error.message} ({error.code})") from error


def _serving(command: F) -> F:
    options = (
        click.option("--model", help=f"{', '.join(named_models())}, or scripted (offline)."),
        click.option("--store", help="sqlite:///PATH, postgresql://… or memory:."),
        click.option("--host", help="The address to listen on."),
        click.option("--port", type=click.IntRange(0, 65535), help="The port; 0 takes a free one."),
        click.option("--workers", type=click.IntRange(1), help="How many processes; more than one need PostgreSQL."),
    )
    for option in reversed(options):
        command = option(command)
    return command


@click.group(cls=_Errors)
@click.version_option(__version__, prog_name="agui-bridge")
def main() -> None:
    """Agents behind AG-UI: every event is committed before it is sent."""


@main.command()
@click.argument("target", metavar="[MODULE:AGENT]", required=False)
@_serving
def serve(target: str | None, **given: Any) -> None:
    """Serve the agent (or agents) that a module holds; without one, a plain assistant on --model."""
    settings = _settings(**given)
    if target is None and settings.model is None:
        raise ConfigurationError("Say what to serve: a module with an agent (my_app:agent), or a --model.")
    _serve(partial(_served, target), settings)


@main.command()
@_serving
def demo(**given: Any) -> None:
    """Serve the demo agent: offline and deterministic unless --model says otherwise."""
    _serve(_demo, _settings(inspector=True, **given), lambda url: click.echo(_HINT.format(url=url)))


@main.command()
@click.option("--store", help="sqlite:///PATH or postgresql://…")
def migrate(store: str | None) -> None:
    """Bring the store to this release's schema."""
    from runtime.journal.open import journal_from_url, shown

    settings = _settings(store=store)
    journal = journal_from_url(settings.store, synchronous=settings.synchronous)

    async def apply() -> None:
        await journal.open()
        await journal.close()

    asyncio.run(apply())
    click.echo(f"{shown(settings.store)} is up to date.")


@main.command()
@click.option("--store", help="sqlite:///PATH, postgresql://… or memory:.")
def doctor(store: str | None) -> None:
    """Look at the settings and the store, and name what is unsafe. Exits with 1 if something cannot work."""
    from agui_bridge.doctor import examine

    async def report() -> int:
        failed = 0
        async for finding in examine(_settings(store=store)):
            failed += finding.level == "fail"
            click.echo(f"{finding.level:>4}  {finding.subject:<10}  {finding.message}")
        return failed

    sys.exit(1 if asyncio.run(report()) else 0)


def _serve(find: FindAgents, settings: Settings, on_listening: Callable[[str], None] | None = None) -> None:
    if settings.workers > 1:
        _serve_many(find, settings, on_listening)
        return
    server = _server(find, settings, on_listening)
    with suppress(KeyboardInterrupt):
        _run(server.serve())


def _serve_many(find: FindAgents, settings: Settings, on_listening: Callable[[str], None] | None) -> None:
    from agui_bridge.web.server import bind, url_of
    from agui_bridge.web.workers import Workers
    from runtime.journal.open import is_postgres

    if not is_postgres(settings.store):
        raise ConfigurationError(
            f"{settings.workers} workers need a store that processes share: give --store postgresql://…, or one worker."
        )
    find(settings)  # what is wrong with the agents is said once
    sockets = bind(settings.host, settings.port)
    told = (lambda: on_listening(url_of(sockets[0]))) if on_listening is not None else (lambda: None)
    try:
        Workers(settings.workers, partial(_work, find, settings), sockets, told).run()
    finally:
        for each in sockets:
            each.close()


def _work(find: FindAgents, settings: Settings, sockets: list[socket.socket], listens: Callable[[], None]) -> None:
    """The life of one worker."""
    server = _server(find, settings, lambda url: listens(), is_worker=True)
    try:
        _run(server.serve(sockets))
    except AguiBridgeError as error:
        log.error("%s (%s)", error.message, error.code)  # noqa: TRY400  for the person at the keyboard
        sys.exit(1)


def _server(
    find: FindAgents,
    settings: Settings,
    on_listening: Callable[[str], None] | None,
    *,
    is_worker: bool = False,
) -> Server:
    from agui_bridge.web.guard import is_loopback
    from agui_bridge.web.page import Page
    from agui_bridge.web.server import Server

    logging.basicConfig(level=settings.log_level.upper(), format="%(levelname)s %(name)s: %(message)s")
    if settings.log_level != "debug":
        for name in _TALKATIVE:
            logging.getLogger(name).setLevel(logging.WARNING)
    loopback = is_loopback(settings.host)
    if not loopback:
        log.warning("%s is reached from the network, and nobody is asked who they are", settings.host)
    page = Page() if find is _demo else None
    bridge = Bridge(find(settings), settings=settings, loopback=loopback, page=page)
    return Server(bridge, settings.host, settings.port, on_listening=on_listening, is_worker=is_worker)


def _served(target: str | None, settings: Settings) -> Agent | Sequence[Agent] | Mapping[str, Agent]:
    return _load(target) if target is not None else _plain(settings.model)


def _demo(settings: Settings) -> Agent:
    from agui_bridge.demo import demo_agent

    return demo_agent(settings.model)


def _run(work: Coroutine[Any, Any, None]) -> None:
    if sys.platform == "win32":
        asyncio.run(work)
    else:
        import uvloop

        uvloop.run(work)


def _plain(model: str | None) -> Agent:
    if model == "scripted":
        from agui_bridge.demo import demo_agent

        return demo_agent()
    return Agent("assistant", model=model, instructions=_PLAIN)


def _load(target: str) -> Agent | Sequence[Agent] | Mapping[str, Agent]:
    """The agent, list or mapping of agents at `module:name`. Raises ConfigurationError."""
    module_name, _, name = target.partition(":")
    if not all(part.isidentifier() for part in module_name.split(".")):
        raise ConfigurationError(f"{module_name!r} is no name of a module: say for example my_app:agent.")
    if module_name.endswith(".py"):
        raise ConfigurationError(f"{module_name} is a file: name the module ({module_name[:-3]}:{name or 'agent'}).")
    sys.path.insert(0, str(Path.cwd()))
    try:
        module = importlib.import_module(module_name)
    except ModuleNotFoundError as error:
        raise ConfigurationError(f"There is no module {error.name!r} (looked from {Path.cwd()}).") from error
    missing = object()
    found: Any = getattr(module, name or "agent", missing)
    if found is missing:
        raise ConfigurationError(f"The module {module_name} has no {name or 'agent'!r}.")
    if isinstance(found, Agent):
        return found
    if isinstance(found, Mapping):
        named = cast("Mapping[str, Any]", found)
        if named and all(isinstance(agent, Agent) for agent in named.values()):
            return named
    elif isinstance(found, Sequence) and found:
        listed = cast("Sequence[Any]", found)
        if all(isinstance(agent, Agent) for agent in listed):
            return listed
    raise ConfigurationError(f"{module_name}:{name or 'agent'} is no Agent, and no list or mapping of Agents.")


@main.command(
    add_help_option=False,
    context_settings={"ignore_unknown_options": True, "allow_extra_args": True},
    short_help="Check any AG-UI endpoint against AG-UI 1.0.",
)
@click.pass_context
def check(ctx: click.Context) -> None:
    """Check any AG-UI endpoint against AG-UI 1.0: what it takes is told by `agui-bridge check --help`."""
    from agui_check.command import command

    command.main(ctx.args, prog_name="agui-bridge check")


main.add_command(runs)
main.add_command(owners)


if __name__ == "__main__":
    main()
