"""Migrations: which numbered scripts a store still needs, and running them.

The plan is pure; applying it is a few lines a database. A store knows its own version (SQLite: `user_version`, with
`application_id` as the mark that the file is ours), and never runs under a release that is older than its schema.
"""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from runtime.errors import StoreVersionError
from runtime.journal.queries import folder

APPLICATION_ID = 0x41475542
"""`AGUB`: the mark of our SQLite files."""

_FILE = re.compile(r"(\d{4})_(\w+)\.sql")


@dataclass(frozen=True, slots=True)
class Migration:
    """A step from the schema `number - 1` to `number`."""

    number: int
    name: str
    sql: str


def migrations(dialect: str) -> list[Migration]:
    """The steps that this release knows, in order. Raises ValueError if they are not numbered 1, 2, 3…"""
    found: list[Migration] = []
    for file_name, sql in folder(dialect, "migrations"):
        match = _FILE.fullmatch(file_name)
        if match is None:
            raise ValueError(f"{file_name} is no name of a migration.")
        found.append(Migration(int(match[1]), match[2], sql))
    found.sort(key=lambda step: step.number)
    if [step.number for step in found] != list(range(1, len(found) + 1)):
        raise ValueError(f"The migrations of {dialect} are not numbered without gaps.")
    return found


def pending(version: int, known: Sequence[Migration]) -> list[Migration]:
    """The steps that a store of this version still needs. Raises StoreVersionError for a newer store."""
    newest = known[-1].number if known else 0
    if version > newest:
        raise StoreVersionError(
            f"The store has schema version {version}, this release knows versions up to {newest}: "
            "use the release that wrote the store, or a newer one."
        )
    return [step for step in known if step.number > version]


def require_current(version: int, known: Sequence[Migration]) -> None:
    """Return if nothing is pending. Raises StoreVersionError, naming both versions."""
    if steps := pending(version, known):
        raise StoreVersionError(
            f"The store has schema version {version}, this release needs {steps[-1].number}: "
            "run `agui-bridge migrate`, or set auto_migrate."
        )


def statements(script: str) -> Iterator[str]:
    """The statements of a script one by one, so that they can run inside a transaction of ours."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement.strip()
            statement = ""
    if any(line.strip() and not line.lstrip().startswith("--") for line in statement.splitlines()):
        raise ValueError("The script ends within a statement.")


def sqlite_version(connection: sqlite3.Connection) -> int:
    """The schema version of a SQLite store; 0 for an empty file. Raises StoreVersionError if it is not ours."""
    (mark,) = connection.execute("PRAGMA application_id").fetchone()
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    if mark == APPLICATION_ID:
        return version
    (tables,) = connection.execute("SELECT count(*) FROM sqlite_master").fetchone()
    if mark or version or tables:
        raise StoreVersionError("The database belongs to another program: it is no store of agui-bridge.")
    return 0


def migrate_sqlite(connection: sqlite3.Connection, known: Sequence[Migration]) -> list[Migration]:
    """Run what is pending, all in one transaction, and return it. The connection is in autocommit mode."""
    if not pending(sqlite_version(connection), known):
        return []
    connection.execute("BEGIN IMMEDIATE")
    try:
        steps = pending(sqlite_version(connection), known)
        for step in steps:
            for statement in statements(step.sql):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {step.number}")
        connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
        connection.execute("COMMIT")
    except BaseException:
        connection.rollback()
        raise
    return steps


def pending_in_sqlite(path: Path) -> list[Migration]:
    """What the store at `path` still needs; everything if there is no file yet. Changes nothing.

    Raises StoreVersionError for a newer or foreign store, sqlite3.Error if the file cannot be read.
    """
    known = migrations("sqlite")
    if not path.exists():
        return known
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?mode=ro", uri=True)) as connection:
        return pending(sqlite_version(connection), known)
