"""What the `doctor` command looks at: each check says `ok`, `warn` or `fail`, and what to do."""

from __future__ import annotations

import os
import platform
import sqlite3
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import unquote

from agui_bridge._version import __version__
from agui_bridge.settings import Settings
from agui_bridge.web.guard import is_loopback
from runtime.errors import AguiBridgeError, ConfigurationError
from runtime.journal.migrate import pending_in_sqlite
from runtime.journal.open import is_postgres, journal_from_url, require_driver
from runtime.providers import keys


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of the report."""

    level: str
    subject: str
    message: str


async def examine(settings: Settings) -> AsyncIterator[Finding]:
    """Everything that can be seen from here."""
    yield Finding("ok", "version", f"agui-bridge {__version__}, Python {platform.python_version()} on {sys.platform}")
    yield await _store(settings)
    yield _durability(settings)
    yield _address(settings)
    yield _key()


async def _store(settings: Settings) -> Finding:
    """Whether `serve` could open the store. A look changes nothing: it neither makes a store nor migrates one."""
    if settings.store == "memory:":
        return Finding("warn", "store", "memory: keeps nothing over a restart; use sqlite:///PATH for what matters")
    if is_postgres(settings.store):
        return await _postgres(settings)
    try:
        journal = journal_from_url(settings.store, synchronous=settings.synchronous, auto_migrate=False)
        if (early := _not_yet(settings)) is not None:
            return early
        try:
            await journal.open()
            await journal.healthy()
        finally:
            await journal.close()
    except AguiBridgeError as error:
        return Finding("fail", "store", f"{settings.store}: {error.message}")
    return Finding("ok", "store", f"{settings.store} opens and is up to date")


def _not_yet(settings: Settings) -> Finding | None:
    """What is to be said of a store that is not there yet, or older than this release. Raises ConfigurationError."""
    path = Path(unquote(settings.store.removeprefix("sqlite:///"))).resolve()
    if not path.parent.is_dir():
        raise ConfigurationError(f"There is no folder {path.parent}.")
    if not path.exists():
        return Finding("ok", "store", f"{settings.store} is not there yet: the first start makes it")
    try:
        steps = pending_in_sqlite(path)
    except sqlite3.Error as error:
        raise ConfigurationError(f"It cannot be read: {error}.") from error
    if not steps:
        return None
    if settings.auto_migrate:
        return Finding("warn", "store", f"{settings.store} is of an older release: the next start migrates it")
    raise ConfigurationError("It is of an older release: run `agui-bridge migrate`.")


async def _postgres(settings: Settings) -> Finding:
    try:
        require_driver()
        from runtime.journal.postgres_look import look_at

        look = await look_at(settings.store)
        if look.pending and look.version and not settings.auto_migrate:
            raise ConfigurationError(f"{look.shown} is of an older release: run `agui-bridge migrate`.")
    except AguiBridgeError as error:
        return Finding("fail", "store", error.message)
    if not look.durable:
        return Finding(
            "warn",
            "store",
            f"{look.shown} does not wait for the disk (fsync or synchronous_commit is off): when its machine dies, "
            "events that clients have seen may be lost",
        )
    if not look.version:
        return Finding("ok", "store", f"{look.shown} is empty: the first start makes the tables")
    if look.pending:
        return Finding("warn", "store", f"{look.shown} is of an older release: the next start migrates it")
    if not look.listens:
        return Finding(
            "warn",
            "store",
            f"{look.shown} is up to date; behind a pooler nothing can listen, so that readers of other processes' "
            "runs wait up to a second: add &listen=HOST:PORT of the server itself",
        )
    return Finding("ok", "store", f"{look.shown} opens and is up to date")


def _durability(settings: Settings) -> Finding:
    if is_postgres(settings.store):
        return Finding("ok", "durability", "every event is committed before it is sent; the server keeps it")
    if settings.synchronous != "full":
        return Finding(
            "warn",
            "durability",
            f"synchronous is {settings.synchronous!r}: when the machine dies, events that clients have seen may be "
            "lost; set AGUI_BRIDGE_SYNCHRONOUS=full",
        )
    return Finding("ok", "durability", "every event is on disk before it is sent (WAL, synchronous=FULL)")


def _address(settings: Settings) -> Finding:
    if is_loopback(settings.host):
        return Finding("ok", "address", f"{settings.host} is reached from this machine alone")
    return Finding(
        "warn",
        "address",
        f"{settings.host} is reached from the network, and whoever reaches it is everybody's owner: put "
        "authentication in front (create_app(authenticate=…))",
    )


def _key() -> Finding:
    found = [f"{name} is set: --model {' or '.join(models)} works" for name, models in keys().items() if _is_set(name)]
    if found:
        return Finding("ok", "models", "; ".join(found))
    return Finding("warn", "models", f"{' and '.join(keys())} not set: only --model scripted works")


def _is_set(name: str) -> bool:
    return bool(os.environ.get(name))
