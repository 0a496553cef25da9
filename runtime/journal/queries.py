"""Named queries: SQL lives in .sql files, code asks for it by name.

A file is a series of statements, each under a line `-- name: append_event`. What stands before the first name is a
comment for people. This module knows nothing of what the statements do.
"""

from __future__ import annotations

import re
from importlib.resources import files

_NAME = re.compile(r"^-- name: (\w+)[ \t]*\n", re.MULTILINE)


def parse(text: str) -> dict[str, str]:
    """The statements of one file by name. Raises ValueError for a name given twice or without a statement."""
    pieces = _NAME.split(text)
    queries: dict[str, str] = {}
    for name, statement in zip(pieces[1::2], pieces[2::2], strict=True):
        sql = statement.strip().removesuffix(";")
        if name in queries or not sql:
            raise ValueError(f"The query {name} is named twice or empty.")
        queries[name] = sql
    return queries


def load(dialect: str) -> dict[str, str]:
    """All named queries of a database dialect (`sqlite`), whichever file they stand in."""
    queries: dict[str, str] = {}
    for _, text in folder(dialect):
        found = parse(text)
        if twice := queries.keys() & found.keys():
            raise ValueError(f"Queries are named in two files: {sorted(twice)}.")
        queries |= found
    return queries


def folder(*path: str) -> list[tuple[str, str]]:
    """Name and text of each .sql file directly in this folder of the package's `sql`."""
    entries = files("runtime.journal").joinpath("sql", *path).iterdir()
    return [(entry.name, entry.read_text("utf-8")) for entry in entries if entry.name.endswith(".sql")]
