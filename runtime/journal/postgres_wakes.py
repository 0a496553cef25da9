"""Wakes over LISTEN and NOTIFY: `kind:run_id:seq` and who sent it, on one channel of the database.

Sending: what a process wants to say is merged by kind and run, and leaves in one statement of its own, never within a
transaction that writes facts (a commit with a NOTIFY in it waits for every other one), at most every `PAUSE_S`.
Listening: one connection straight to the server. Nothing tells a listener that its connection is dead but silence, so
it asks for a sign of life; when it has connected again, it says that wakes may have been lost.
"""

from __future__ import annotations

import asyncio
import logging
import secrets
from collections.abc import Callable
from contextlib import suppress
from typing import Any, get_args

from runtime.errors import StoreError
from runtime.journal.postgres_connection import (
    CONTROL_S,
    FOREIGN,
    Pool,
    PostgresAddress,
    connect_listener,
    hang_up,
)
from runtime.journal.queries import load
from runtime.journal.wakes import Wake, WakeKind

CHANNEL = "agui_bridge"

PAUSE_S = 0.004
"""The least time between two statements that send wakes: what comes in between is merged."""

SIGN_OF_LIFE_S = 5.0
"""How often the listener's connection is asked whether it lives."""

RETRY_S = 1.0
"""The longest pause before the listener connects again."""

OnWake = Callable[[Wake | None], None]

log = logging.getLogger("agui_bridge.journal")

_SQL = load("postgres")
_KINDS = frozenset(get_args(WakeKind))


def text_of(wake: Wake, sender: str) -> str:
    """The payload of a wake."""
    return f"{wake.kind}:{wake.run_id}:{wake.seq}:{sender}"


def wake_in(text: str, sender: str) -> Wake | None:
    """The wake in a payload; None for one's own, and for what a later release might say."""
    parts = text.rsplit(":", 2)
    kind, _, run_id = parts[0].partition(":")
    if len(parts) != 3 or kind not in _KINDS or parts[2] == sender or not parts[1].isdecimal():
        return None
    return Wake(kind, run_id, int(parts[1]))  # pyright: ignore[reportArgumentType]


class Sender:
    """Sends wakes; those that come faster than they leave are merged, those that cannot be sent are dropped."""

    def __init__(self, pool: Pool, name: str):
        self._pool = pool
        self._name = name
        self._ready: dict[tuple[str, str], Wake] = {}
        self._task: asyncio.Task[None] | None = None

    def send(self, wake: Wake) -> None:
        """Hand over a wake."""
        key = (wake.kind, wake.run_id)
        before = self._ready.get(key)
        if before is None or before.seq < wake.seq:
            self._ready[key] = wake
        if self._task is None:
            self._task = asyncio.create_task(self._run(), name="journal-wake")

    async def close(self) -> None:
        """Send what is ready."""
        if self._task is not None:
            await asyncio.wait({self._task})

    async def _run(self) -> None:
        try:
            while self._ready:
                ready, self._ready = self._ready, {}
                texts = [text_of(wake, self._name) for wake in ready.values()]
                try:
                    await self._pool.fetch_once(_SQL["notify"], CHANNEL, texts)
                except StoreError as error:
                    # Whoever waits looks by itself after a while.
                    log.info("%d wakes were not sent: %s", len(texts), error)
                await asyncio.sleep(PAUSE_S)
        finally:
            self._task = None


class Listener:
    """Listens on a connection of its own, and connects again when that dies."""

    def __init__(self, address: PostgresAddress, dsn: str, name: str, on_wake: OnWake):
        self._address = address
        self._dsn = dsn
        self._name = name
        self._on_wake = on_wake
        self._connection: Any = None
        self._lost = asyncio.Event()
        self._task: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Listen. Raises what asyncpg raises."""
        await self._connect()
        self._task = asyncio.create_task(self._run(), name="journal-listen")

    async def close(self) -> None:
        """Stop listening."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait({self._task})
        if self._connection is not None:
            await hang_up(self._connection)
            self._connection = None

    async def _connect(self) -> None:
        self._lost = lost = asyncio.Event()
        connection = await connect_listener(self._address, self._dsn)
        try:
            connection.add_termination_listener(_sets(lost))
            await connection.add_listener(CHANNEL, self._heard)
        except FOREIGN:
            connection.terminate()
            raise
        self._connection = connection

    async def _run(self) -> None:
        pause = 0.0
        while True:
            if self._connection is None:
                try:
                    await self._connect()
                except FOREIGN as error:
                    log.info("nobody listens for wakes: %s", error or type(error).__name__)
                    pause = min(pause * 2 or 0.02, RETRY_S)
                    await asyncio.sleep(pause)
                    continue
                pause = 0.0
                self._on_wake(None)
            await self._until_lost()

    async def _until_lost(self) -> None:
        """Return when the connection has given no sign of life; it is gone then."""
        connection = self._connection
        while not connection.is_closed():
            with suppress(TimeoutError):
                async with asyncio.timeout(SIGN_OF_LIFE_S):
                    await self._lost.wait()
                break
            try:
                await connection.fetch("SELECT 1", timeout=CONTROL_S)
            except FOREIGN:
                break
        log.info("the connection that listens for wakes was lost")
        connection.terminate()
        self._connection = None

    def _heard(self, _connection: object, _pid: int, _channel: str, payload: object) -> None:
        wake = wake_in(str(payload), self._name)
        if wake is not None:
            self._on_wake(wake)


def _sets(event: asyncio.Event) -> Callable[[object], None]:
    return lambda _connection: event.set()


def sender_name() -> str:
    """A name for this process's wakes, so that it does not hear its own."""
    return secrets.token_hex(4)
