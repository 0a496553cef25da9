"""Connections to a SQLite file as this project needs them, and what SQLite's errors mean to us.

Every connection is in autocommit mode: transactions are begun and ended by statements, never by the module's own
rules. Foreign exceptions end here.
"""

from __future__ import annotations

import sqlite3
from pathlib import Path

from runtime.errors import AguiBridgeError, ConfigurationError, StoreError
from runtime.journal.drafts import Unstorable

SYNCHRONOUS = ("full", "normal")
"""`full`: a commit is on the disk when it returns. `normal`: a power cut may lose the last commits."""

BUSY_TIMEOUT_S = 5.0
"""How long a statement waits for another process (a command line tool) that writes."""

WAL_LIMIT_BYTES = 64 * 1024 * 1024
"""To what the write-ahead log is cut back after a reader had kept it growing."""

FOREIGN = (sqlite3.Error, OverflowError, UnicodeError)
"""What sqlite3 raises: its own errors, and Python's for values that do not fit a column."""

_UNSTORABLE = (
    sqlite3.IntegrityError,
    sqlite3.DataError,
    sqlite3.InterfaceError,
    sqlite3.ProgrammingError,
    OverflowError,
    UnicodeError,
)


def connect_writer(path: Path) -> sqlite3.Connection:
    """The one connection that writes; the file is made if need be. Raises ConfigurationError, StoreError."""
    try:
        return _connect(str(path), uri=False)
    except FOREIGN as error:
        raise unopened(path, error) from error


def tune(connection: sqlite3.Connection, synchronous: str) -> None:
    """Make the file (for good) and the connection what a journal needs. Raises ConfigurationError, sqlite3.Error."""
    (mode,) = connection.execute("PRAGMA journal_mode = wal").fetchone()
    if mode != "wal":
        raise ConfigurationError("The store's file system does not support SQLite's write-ahead log.")
    connection.execute(f"PRAGMA synchronous = {synchronous}")
    connection.execute("PRAGMA foreign_keys = on")
    connection.execute(f"PRAGMA journal_size_limit = {WAL_LIMIT_BYTES}")


def connect_reader(path: Path) -> sqlite3.Connection:
    """A connection that cannot write. Raises ConfigurationError, StoreError."""
    try:
        return _connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)
    except FOREIGN as error:
        raise unopened(path, error) from error


def unopened(path: Path, error: Exception) -> AguiBridgeError:
    """Why the file could not be opened, as an error of ours."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_NOTADB:
            return ConfigurationError(f"{path} is not a SQLite database.")
        case sqlite3.SQLITE_CANTOPEN | sqlite3.SQLITE_READONLY | sqlite3.SQLITE_PERM:
            return ConfigurationError(f"The store {path} cannot be opened for writing: {error}.")
        case _:
            return translated(error)


def translated(error: Exception) -> StoreError:
    """One of `FOREIGN` as an error of ours."""
    match getattr(error, "sqlite_errorcode", 0) & 0xFF:
        case sqlite3.SQLITE_FULL:
            return StoreError("The store is full.", code="store_full")
        case sqlite3.SQLITE_CORRUPT | sqlite3.SQLITE_NOTADB:
            return StoreError(f"The store is damaged: {error}.", code="store_corrupt")
        case _ if isinstance(error, _UNSTORABLE):
            return Unstorable(f"The store refuses the row: {error}.")
        case _:
            return StoreError(f"The store failed: {error}.")


def _connect(database: str, *, uri: bool) -> sqlite3.Connection:
    # A connection is used by one thread at a time, but not always by the one that opened it.
    connection = sqlite3.connect(
        database, uri=uri, timeout=BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False
    )
    connection.row_factory = sqlite3.Row
    return connection
