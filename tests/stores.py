"""The stores that contract tests run on: memory, SQLite and PostgreSQL, told here and nowhere else.

A test that asks for `store` runs once on each of them, with an open and empty store. A test that asks for `home` may
make further stores over the same facts (`home.shared`: each is what another process would have) and moves the store's
clock by hand. Which PostgreSQL is used says `tests.toolchain`; every test process has a database of its own there.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import urlsplit, urlunsplit

import asyncpg
import pytest

from runtime.journal.memory import MemoryJournal
from runtime.journal.postgres import PostgresStore
from runtime.journal.sqlite import SqliteJournal
from runtime.journal.store import Store
from tests.pooler import Pooler
from tests.toolchain import postgres_url

RECORDED = 1_750_000_000_007
"""What the clock of every store says when a test begins, in ms since the epoch."""

_PREFIX = "agui_bridge_test"
_FORGOTTEN_S = 2 * 3600
_EMPTYING = """
DO $$ DECLARE name text; BEGIN
    -- What was made later may refer to what was made before.
    FOR name IN SELECT oid::regclass FROM pg_class WHERE relnamespace = 'agui_bridge'::regnamespace
        AND relkind IN ('r', 'p') AND NOT relispartition AND relname <> 'schema_versions' ORDER BY oid DESC
    LOOP EXECUTE 'DELETE FROM ' || name; END LOOP;
END $$;
"""


class Home(Protocol):
    """Where a test's facts are."""

    shared: bool
    """Whether several stores may be open over it at once."""

    def store(self) -> Store:
        """Another store over the same facts, not yet open."""
        ...

    async def pass_time(self, seconds: float) -> None:
        """Move the clock that the stores go by."""
        ...


class MemoryHome:
    """One store, which keeps its facts while it is closed."""

    shared = False

    def __init__(self) -> None:
        self._now = RECORDED
        self._store = MemoryJournal(clock=lambda: self._now)

    def store(self) -> Store:
        return self._store

    async def pass_time(self, seconds: float) -> None:
        self._now += round(seconds * 1000)


class SqliteHome:
    """A file, which one store at a time has open."""

    shared = False

    def __init__(self, folder: Path) -> None:
        self._now = RECORDED
        self._path = folder / "store.db"

    def store(self) -> Store:
        return SqliteJournal(self._path, clock=lambda: self._now, synchronous="normal")

    async def pass_time(self, seconds: float) -> None:
        self._now += round(seconds * 1000)


class PostgresHome:
    """A database, empty but for its schema; its clock is the function that every statement asks.

    `url` is the stores', `direct` that of the server if a pooler stands between.
    """

    shared = True

    def __init__(self, url: str, direct: str | None = None) -> None:
        self.url = url
        self._direct = direct or url
        self._now = RECORDED

    def store(self) -> PostgresStore:
        return PostgresStore(self.url)

    async def pass_time(self, seconds: float) -> None:
        self._now += round(seconds * 1000)
        await self.execute(self._set_clock())

    async def empty(self) -> None:
        """Forget what an earlier test left."""
        await self.execute(_EMPTYING + self._set_clock())

    async def execute(self, script: str) -> None:
        """Do something to the database that no store would do."""
        connection = await asyncpg.connect(self._direct)
        try:
            await connection.execute(script)
        finally:
            await connection.close()

    async def fetch(self, sql: str, *values: Any) -> list[Any]:
        """See something that no store would show."""
        connection = await asyncpg.connect(self._direct)
        try:
            return await connection.fetch(sql, *values)
        finally:
            await connection.close()

    def _set_clock(self) -> str:
        return (
            "CREATE OR REPLACE FUNCTION agui_bridge.now_ms() RETURNS bigint LANGUAGE sql VOLATILE AS "
            f"'SELECT {self._now}::bigint'"
        )


# --- the server ---------------------------------------------------------------------------------------------------


def database_url(name: str) -> str:
    """The URL of a database on the server."""
    return urlunsplit(urlsplit(postgres_url())._replace(path=f"/{name}"))


async def make_database(name: str) -> str:
    """A new database; those that killed test processes left behind hours ago are dropped. Its URL."""
    connection = await asyncpg.connect(postgres_url())
    try:
        oldest = f"{_PREFIX}_{int(time.time()) - _FORGOTTEN_S}"
        rows = await connection.fetch("SELECT datname FROM pg_database WHERE datname LIKE $1", _PREFIX + "\\_%")
        for (left,) in rows:
            if left < oldest:
                await connection.execute(f'DROP DATABASE IF EXISTS "{left}" WITH (FORCE)')
        await connection.execute(f"CREATE DATABASE \"{name}\" TEMPLATE template0 ENCODING 'UTF8'")
        # No test cuts the power: waiting for the disk would only make them slow.
        await connection.execute(f'ALTER DATABASE "{name}" SET synchronous_commit = off')
    finally:
        await connection.close()
    return database_url(name)


async def drop_database(name: str) -> None:
    """Drop it, whoever is connected."""
    connection = await asyncpg.connect(postgres_url())
    try:
        await connection.execute(f'DROP DATABASE IF EXISTS "{name}" WITH (FORCE)')
    finally:
        await connection.close()


def database_name(purpose: str) -> str:
    """A name that no other test process uses; it begins with the time, so that it can be seen to be old."""
    worker = os.environ.get("PYTEST_XDIST_WORKER", "main")
    return f"{_PREFIX}_{int(time.time())}_{os.getpid()}_{worker}_{purpose}"


# --- fixtures -----------------------------------------------------------------------------------------------------


@pytest.fixture(scope="session")
def postgres_database() -> Iterator[str]:
    """The URL of this test process's database, with the schema of this release."""
    name = database_name("store")

    async def make() -> str:
        url = await make_database(name)
        store = PostgresStore(url)
        await store.open()
        await store.close()
        return url

    yield asyncio.run(make())
    asyncio.run(drop_database(name))


@pytest.fixture
async def postgres_home(postgres_database: str) -> PostgresHome:
    """This test process's database, emptied."""
    home = PostgresHome(postgres_database)
    await home.empty()
    return home


@pytest.fixture
async def pooled_home(postgres_database: str, pooler: Pooler) -> PostgresHome:
    """This test process's database, emptied, behind a pooler."""
    home = PostgresHome(pooler.url_of(postgres_database), postgres_database)
    await home.empty()
    return home


@pytest.fixture(
    params=[
        "memory",
        "sqlite",
        pytest.param("postgres", marks=pytest.mark.needs_postgres),
        pytest.param("pgbouncer", marks=pytest.mark.needs_pgbouncer),
    ]
)
def home(request: pytest.FixtureRequest, tmp_path: Path) -> Home:
    """Where the facts of one test are: each test runs in every kind."""
    match request.param:
        case "memory":
            return MemoryHome()
        case "sqlite":
            return SqliteHome(tmp_path)
        case "postgres":
            return request.getfixturevalue("postgres_home")
        case _:
            return request.getfixturevalue("pooled_home")


@pytest.fixture
async def store(home: Home) -> AsyncIterator[Store]:
    """An open and empty store of each kind."""
    store = home.store()
    await store.open()
    yield store
    await store.close()
