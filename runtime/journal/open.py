"""From a store's URL to its journal: the one place that knows which implementations there are."""

from __future__ import annotations

from importlib.util import find_spec
from urllib.parse import unquote

from runtime.errors import ConfigurationError
from runtime.journal.memory import MemoryJournal
from runtime.journal.sqlite import SqliteJournal
from runtime.journal.store import Store

_SQLITE = "sqlite:///"
_POSTGRES = ("postgresql://", "postgres://")


def journal_from_url(url: str, *, synchronous: str = "full", auto_migrate: bool = True) -> Store:
    """The store, not yet open: `sqlite:///PATH` (relative), `sqlite:////PATH` (absolute), `postgresql://…` (see
    `postgres_connection.address_of`) or `memory:`.

    `synchronous` is SQLite's (see SqliteJournal). Raises ConfigurationError for anything else, and for PostgreSQL
    without its driver.
    """
    if url == "memory:":
        return MemoryJournal()
    if url.startswith(_SQLITE):
        path = unquote(url.removeprefix(_SQLITE))
        if not path or path == ":memory:":
            raise ConfigurationError(f"{url} names no file; for a store without one use memory:.")
        return SqliteJournal(path, synchronous=synchronous, auto_migrate=auto_migrate)
    if is_postgres(url):
        require_driver()
        from runtime.journal.postgres import PostgresStore

        return PostgresStore(url, auto_migrate=auto_migrate)
    scheme = url.partition(":")[0]
    raise ConfigurationError(f"There is no store for {scheme!r}; use sqlite:///PATH, postgresql://… or memory:.")


def is_postgres(url: str) -> bool:
    """Whether the URL names a store in PostgreSQL."""
    return url.startswith(_POSTGRES)


def require_driver() -> None:
    """Return if PostgreSQL's driver, which is not part of every installation, is there. Raises ConfigurationError."""
    if find_spec("asyncpg") is None:
        raise ConfigurationError("A store in PostgreSQL needs asyncpg: pip install 'agui-bridge[postgres]'.")


def shown(url: str) -> str:
    """The store's URL as people may see it, without a password."""
    if not is_postgres(url):
        return url
    require_driver()
    from runtime.journal.postgres_connection import without_password

    return without_password(url)
