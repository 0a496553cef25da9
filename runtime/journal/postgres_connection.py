"""Connections to PostgreSQL as this project needs them, and what its errors mean to us.

A store's URL names the server and how to speak to it (`PostgresAddress`). A `Link` is one connection that is made
again when it breaks; a `Pool` is a few of them for whoever comes. Behind a pooler in transaction mode every statement
runs in a transaction of its own, because two statements in a row may meet two servers. Foreign exceptions end here.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from typing import Any, TypeAlias, TypeVar
from urllib.parse import parse_qsl, urlencode, urlsplit, urlunsplit

import asyncpg
from asyncpg import exceptions as pg
from asyncpg.pool import PoolConnectionProxy

from runtime.errors import AguiBridgeError, ConfigurationError, StoreError
from runtime.journal.drafts import Unstorable

R = TypeVar("R")

Row: TypeAlias = "asyncpg.Record"
Connection: TypeAlias = "asyncpg.Connection[asyncpg.Record] | PoolConnectionProxy[asyncpg.Record]"

CONNECT_S = 5.0
"""How long a connection may take to be made."""

STATEMENT_S = 30.0
"""How long a statement may take; the server is told, too, unless a pooler stands between."""

CONTROL_S = 5.0
"""How long a heartbeat or a sign of life of the listener may take."""

PATIENCE_S = 5.0
"""How long work waits for a server that is away before it fails. A restart of the server takes less."""

POOL_SIZE = 8
"""How many connections a process uses for reads and beginnings, unless its URL says otherwise. Three more are its
writer's, its heartbeat's and its listener's."""

FOREIGN = (asyncpg.PostgresError, asyncpg.InterfaceError, asyncpg.InternalClientError, OSError, ValueError)
"""What asyncpg raises: its own errors, and Python's for sockets, timeouts and values that do not fit."""


class Unsettled(StoreError):
    """The server is away, or gave up on the work: whether it was done is not known, and it may be tried again."""


# --- addresses ----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class PostgresAddress:
    """Where a store is and how it is spoken to. `dsn` is what asyncpg is given.

    `pooler`: a pooler in transaction mode stands between (no statement is kept prepared, nothing is set for a
    session). `listen_dsn` is where to listen for wakes, None for nowhere: then readers poll.
    """

    dsn: str
    shown: str
    pooler: bool = False
    listen_dsn: str | None = None
    pool_size: int = POOL_SIZE


def address_of(url: str) -> PostgresAddress:
    """`postgresql://user:password@host:port/database?pgbouncer=1&listen=host:port&pool_size=8&sslmode=…`.

    `pgbouncer=1` says that a pooler in transaction mode answers there; `listen` is then the server itself, for the one
    connection that listens. What else stands in the query is libpq's. Raises ConfigurationError.
    """
    parts = urlsplit(url)
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    pooler = _switch(query.pop("pgbouncer", "0"))
    listen = query.pop("listen", None)
    size = query.pop("pool_size", str(POOL_SIZE))
    if not size.isascii() or not size.isdigit() or not 1 <= int(size) <= 1000:
        raise ConfigurationError(f"pool_size is a number from 1 to 1000, not {size!r}.")
    plain = parts._replace(query=urlencode(query))
    dsn = urlunsplit(plain)
    direct = urlunsplit(plain._replace(netloc=_elsewhere(plain.netloc, listen))) if listen else None
    return PostgresAddress(dsn, without_password(url), pooler, direct or (None if pooler else dsn), int(size))


def without_password(url: str) -> str:
    """The URL as it may be shown and logged."""
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    name, colon, _ = user.partition(":")
    query = [(key, "***" if key == "password" else value) for key, value in parse_qsl(parts.query)]
    shown = parts._replace(netloc=f"{name}{':***' if colon else ''}{at}{host}", query=urlencode(query, safe="*:/"))
    return urlunsplit(shown)


def _switch(value: str) -> bool:
    if value not in ("0", "1", "false", "true"):
        raise ConfigurationError(f"pgbouncer is 0 or 1, not {value!r}.")
    return value in ("1", "true")


def _elsewhere(netloc: str, host: str) -> str:
    user, at, _ = netloc.rpartition("@")
    return f"{user}{at}{host}"


# --- errors -------------------------------------------------------------------------------------------------------

_UNSTORABLE = (pg.DataError, pg.IntegrityConstraintViolationError, pg.ProgramLimitExceededError)
_UNSETTLED = (
    pg.PostgresConnectionError,
    pg.OperatorInterventionError,
    pg.TransactionRollbackError,
    pg.LockNotAvailableError,
    pg.TooManyConnectionsError,
    pg.ReadOnlySQLTransactionError,
    pg.IdleInTransactionSessionTimeoutError,
    pg.InvalidCachedStatementError,  # a migration changed a table under a process that goes on
    asyncpg.InterfaceError,
    asyncpg.InternalClientError,
    OSError,  # TimeoutError is one
)
_REFUSED = (
    pg.InvalidAuthorizationSpecificationError,
    pg.InvalidCatalogNameError,
    pg.InsufficientPrivilegeError,
    asyncpg.ClientConfigurationError,
)


def translated(error: Exception) -> StoreError:
    """One of `FOREIGN` as an error of ours. What the server says of values stays out of the message."""
    what = type(error).__name__
    if isinstance(error, (*_UNSTORABLE, asyncpg.DataError)) or _is_value_error(error):
        return Unstorable(f"The store refuses the row ({what}).")
    if isinstance(error, pg.DiskFullError):
        return StoreError("The store is full.", code="store_full")
    if isinstance(error, (pg.DataCorruptedError, pg.IndexCorruptedError)):
        return StoreError("The store is damaged.", code="store_corrupt")
    if isinstance(error, _UNSETTLED):
        return Unsettled(f"The store does not answer ({what}).")
    return StoreError(f"The store failed ({what}).")


def unopened(address: PostgresAddress, error: Exception) -> AguiBridgeError:
    """Why the store could not be opened, as an error of ours."""
    if isinstance(error, _REFUSED) or _is_value_error(error):
        return ConfigurationError(f"The store {address.shown} cannot be used: {error}.")
    return StoreError(f"The store {address.shown} cannot be reached: {error or type(error).__name__}.")


def constraint_of(error: Exception) -> str | None:
    """The name of the constraint that the server says was violated."""
    return getattr(error, "constraint_name", None) if isinstance(error, pg.UniqueViolationError) else None


def _is_value_error(error: Exception) -> bool:
    return isinstance(error, ValueError) and not isinstance(error, asyncpg.InterfaceError)


async def patiently(work: Callable[[], Awaitable[R]], patience_s: float = PATIENCE_S) -> R:
    """Do work that may be repeated until the store has settled it, for so long. Raises what it raised last."""
    loop = asyncio.get_running_loop()
    until, pause = loop.time() + patience_s, 0.0
    while True:
        try:
            return await work()
        except Unsettled:
            if loop.time() + pause >= until:
                raise
        await asyncio.sleep(pause)
        pause = min(pause * 2 or 0.02, 0.5)


# --- connections --------------------------------------------------------------------------------------------------


async def connect(address: PostgresAddress, name: str, statement_s: float = STATEMENT_S) -> Any:
    """A connection for this purpose. Raises what asyncpg raises."""
    return await asyncpg.connect(address.dsn, timeout=CONNECT_S, **_options(address, name, statement_s))


async def connect_listener(address: PostgresAddress, dsn: str) -> Any:
    """A connection that listens: straight to the server. Raises what asyncpg raises."""
    direct = replace(address, dsn=dsn, pooler=False)
    return await connect(direct, "listen", CONTROL_S)


def _options(address: PostgresAddress, name: str, statement_s: float) -> dict[str, Any]:
    if address.pooler:
        # Whatever is set for a session would be set for strangers.
        return {"statement_cache_size": 0, "command_timeout": statement_s}
    settings = {
        "application_name": f"agui-bridge {name}",
        "statement_timeout": str(round(statement_s * 1000)),
        "idle_in_transaction_session_timeout": str(round(STATEMENT_S * 1000)),
        "jit": "off",
    }
    # The server gives up first: then the connection is still good.
    return {"server_settings": settings, "command_timeout": statement_s + 2}


@asynccontextmanager
async def transaction(connection: Connection, **options: Any) -> AsyncGenerator[None, None]:
    """What stands inside is committed when it ends, and undone when it raises."""
    async with connection.transaction(**options):
        yield


async def fetch(connection: Connection, pooler: bool, sql: str, values: Sequence[Any]) -> list[Row]:
    """The rows of one statement, committed. Raises what asyncpg raises."""
    if not pooler:
        return await connection.fetch(sql, *values)
    async with transaction(connection):
        return await connection.fetch(sql, *values)


class Link:
    """One connection of its own, used by one caller at a time, and made again when it was lost."""

    def __init__(self, address: PostgresAddress, name: str, statement_s: float = STATEMENT_S):
        self._address = address
        self._name = name
        self._statement_s = statement_s
        self._lock = asyncio.Lock()
        self.connection: Any = None

    async def fetch(self, sql: str, *values: Any) -> list[Row]:
        """The rows of one statement, committed. Raises StoreError; Unsettled if the connection was lost."""
        async with self._lent() as connection:
            return await fetch(connection, self._address.pooler, sql, values)

    async def transact(self, work: Callable[[Connection], Awaitable[R]]) -> R:
        """Do some work on the connection in one transaction, and commit it. Raises what `fetch` does."""
        async with self._lent() as connection, transaction(connection):
            return await work(connection)

    @asynccontextmanager
    async def _lent(self) -> AsyncGenerator[Connection, None]:
        async with self._lock:
            try:
                if self.connection is None or self.connection.is_closed():
                    self.connection = await connect(self._address, self._name, self._statement_s)
                yield self.connection
            except FOREIGN as error:
                known = translated(error)
                if isinstance(known, Unsettled):
                    self._drop()
                raise known from error

    async def close(self) -> None:
        """Let go of the connection."""
        async with self._lock:
            connection, self.connection = self.connection, None
            if connection is not None:
                await hang_up(connection)

    def _drop(self) -> None:
        connection, self.connection = self.connection, None
        if connection is not None:
            connection.terminate()


async def hang_up(connection: Any) -> None:
    """Close a connection, whether or not the server still answers."""
    with suppress(*FOREIGN):
        await connection.close(timeout=1)


class Pool:
    """A few connections for whoever comes; who comes too many waits for its turn."""

    def __init__(self, address: PostgresAddress):
        self.pooler = address.pooler
        self._pool = asyncpg.create_pool(
            address.dsn,
            min_size=0,
            max_size=address.pool_size,
            timeout=CONNECT_S,
            max_inactive_connection_lifetime=60,
            reset=_leave,
            **_options(address, "pool", STATEMENT_S),
        )

    async def open(self) -> None:
        """Be ready; no connection is made before it is needed. Raises what asyncpg raises."""
        await self._pool

    async def close(self) -> None:
        """Close when everybody has given back what they had."""
        try:
            async with asyncio.timeout(CONTROL_S):
                await self._pool.close()
        except TimeoutError:
            self._pool.terminate()

    @asynccontextmanager
    async def connection(self) -> AsyncGenerator[Connection, None]:
        """A connection for what stands inside. Raises StoreError in place of what asyncpg raises."""
        try:
            async with self._pool.acquire(timeout=STATEMENT_S) as connection:
                yield connection
        except FOREIGN as error:
            raise translated(error) from error

    async def fetch(self, sql: str, *values: Any) -> list[Row]:
        """The rows of one statement, committed; waits for a server that is away. Raises StoreError."""
        return await patiently(lambda: self.fetch_once(sql, *values))

    async def fetch_once(self, sql: str, *values: Any) -> list[Row]:
        """The rows of one statement, committed. Raises StoreError."""
        async with self.connection() as connection:
            return await fetch(connection, self.pooler, sql, values)


async def _leave(_: Any) -> None:
    """Nothing that this project does stays in a session: there is nothing to reset."""
