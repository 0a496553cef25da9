"""A look at a PostgreSQL store that changes nothing: whether a server could open it, and how well it keeps facts."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.journal.migrate import migrations
from runtime.journal.postgres_connection import (
    CONTROL_S,
    FOREIGN,
    address_of,
    connect,
    connect_listener,
    hang_up,
    transaction,
    unopened,
)
from runtime.journal.postgres_schema import steps_for, version_of
from runtime.journal.queries import load

_SQL = load("postgres")


@dataclass(frozen=True, slots=True)
class Look:
    """What was seen. `version` is 0 before the first start; `pending` is how many migrations this release would run.

    `durable` says whether a commit is on the disk when it returns; `listens` whether wakes can be listened for.
    """

    shown: str
    version: int
    pending: int
    durable: bool
    pooler: bool
    listens: bool


async def look_at(url: str) -> Look:
    """Look at the store of this URL. Raises ConfigurationError, StoreVersionError, StoreError."""
    address = address_of(url)
    try:
        connection = await connect(address, "look", CONTROL_S)
        try:
            async with transaction(connection):
                store = await version_of(connection)
                [kept] = await connection.fetch(_SQL["durability"])
        finally:
            await hang_up(connection)
        if address.listen_dsn is not None:
            await hang_up(await connect_listener(address, address.listen_dsn))
    except FOREIGN as error:
        raise unopened(address, error) from error
    return Look(
        address.shown,
        store.version,
        len(steps_for(store, migrations("postgres"))),
        kept["fsync"] == "on" and kept["synchronous_commit"] != "off",
        address.pooler,
        address.listen_dsn is not None,
    )
