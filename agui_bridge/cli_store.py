"""What the commands over a store share: their settings, how the store is opened beside a server, how they print."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncGenerator, Callable, Coroutine
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, Final, TypeVar
from urllib.parse import unquote

import click
import orjson
from pydantic import ValidationError
from pydantic_settings import SettingsError

from agui_bridge.settings import Settings
from runtime.canonical import Json
from runtime.errors import ConfigurationError, StoreLocked
from runtime.journal.store import Store

F = TypeVar("F", bound=Callable[..., Any])
R = TypeVar("R")

_SQLITE: Final = "sqlite:///"
_AGE: Final = re.compile(r"([0-9]{1,6})([smhd])")
_SECONDS: Final = {"s": 1, "m": 60, "h": 3600, "d": 86400}


def settings_of(**given: Any) -> Settings:
    """The settings with what was given on the command line. Raises ConfigurationError."""
    try:
        return Settings(**{name: value for name, value in given.items() if value is not None})
    except ValidationError as problem:
        wrong = [f"AGUI_BRIDGE_{'_'.join(map(str, each['loc'])).upper()}: {each['msg']}" for each in problem.errors()]
        raise ConfigurationError(f"A setting is wrong. {'; '.join(wrong)}.") from problem
    except SettingsError as problem:
        raise ConfigurationError(f"A setting is wrong: {problem} (it is to be JSON).") from problem


def store_option(command: F) -> F:
    """`--store`."""
    return click.option("--store", help="sqlite:///PATH or postgresql://….")(command)


def json_option(command: F) -> F:
    """`--json`."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON, for programs.")(command)


class Age(click.ParamType[float]):
    """A length of time: `30d`, `12h`, `90m`, `45s`."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """In seconds."""
        if isinstance(value, float):
            return value
        match = _AGE.fullmatch(str(value))
        if match is None:
            self.fail(f"{value!r} is no length of time: say for example 30d, 12h or 90m.", param, ctx)
        return float(int(match[1]) * _SECONDS[match[2]])


@asynccontextmanager
async def beside(settings: Settings) -> AsyncGenerator[Store, None]:
    """The store, whether or not a server has it open. Nothing is made or migrated. Raises as the store's `open`."""
    store = _beside(settings)
    await store.open()
    try:
        yield store
    finally:
        await store.close()


@asynccontextmanager
async def alone_or_beside(settings: Settings) -> AsyncGenerator[Store, None]:
    """The store as its only process if no server has it open, because then nobody performs what is at work in it."""
    path = _sqlite_path(settings.store)
    if path is not None and path.is_file():
        from runtime.journal.sqlite import SqliteJournal

        alone = SqliteJournal(path, synchronous=settings.synchronous, auto_migrate=False)
        try:
            await alone.open()
        except StoreLocked:
            pass
        else:
            try:
                yield alone
            finally:
                await alone.close()
            return
    async with beside(settings) as store:
        yield store


def run(work: Coroutine[Any, Any, R]) -> R:
    """Do a command's work."""
    return asyncio.run(work)


def say_json(value: Json) -> None:
    """One line of JSON."""
    click.echo(orjson.dumps(value).decode())


def _beside(settings: Settings) -> Store:
    from runtime.journal.open import journal_from_url

    if settings.store == "memory:":
        raise ConfigurationError("memory: keeps nothing that another process could look at; name a --store.")
    path = _sqlite_path(settings.store)
    if path is None:
        return journal_from_url(settings.store, auto_migrate=False)
    from runtime.journal.sqlite_beside import SqliteBeside

    return SqliteBeside(path, synchronous=settings.synchronous)


def _sqlite_path(url: str) -> Path | None:
    return Path(unquote(url.removeprefix(_SQLITE))).resolve() if url.startswith(_SQLITE) else None
