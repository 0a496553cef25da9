"""From a store's URL to its journal: the one place that knows which implementations there are."""

from __future__ import annotations

from urllib.parse import unquote

from runtime.errors import ConfigurationError
from runtime.journal import Journal
from runtime.journal.memory import MemoryJournal
from runtime.journal.sqlite import SqliteJournal

_SQLITE = "sqlite:///"


def journal_from_url(url: str, *, synchronous: str = "full", auto_migrate: bool = True) -> Journal:
    """The journal, not yet open: `sqlite:///PATH` (relative), `sqlite:////PATH` (absolute) or `memory:`.

    `synchronous` and `auto_migrate` are SQLite's (see SqliteJournal). Raises ConfigurationError for anything else.
    """
    if url == "memory:":
        return MemoryJournal()
    if url.startswith(_SQLITE):
        path = unquote(url.removeprefix(_SQLITE))
        if not path or path == ":memory:":
            raise ConfigurationError(f"{url} names no file; for a store without one use memory:.")
        return SqliteJournal(path, synchronous=synchronous, auto_migrate=auto_migrate)
    scheme = url.partition(":")[0]
    raise ConfigurationError(f"There is no store for {scheme!r}; use sqlite:///PATH or memory:.")
