"""The shape of a PostgreSQL store: its version, its migrations, and the partitions that its events will need.

Migrations run one after another in one transaction under an advisory lock, whichever processes start at once. They
expand first and contract later: a script says with `-- oldest code: N` which schema the oldest release was made for
that still works with what it leaves, so that processes of two releases share a store while they are exchanged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import asyncpg

from runtime.errors import ConfigurationError, StoreVersionError
from runtime.journal.migrate import Migration, migrations, pending, require_current
from runtime.journal.postgres_connection import transaction
from runtime.journal.queries import load

WEEK_MS = 7 * 24 * 3600 * 1000
"""What one partition of the events holds, by the store's clock."""

WEEKS_AHEAD = 3
"""How many partitions stand ready, the present one among them."""

LOCK = 0x4147_5549
"""The advisory lock under which the schema is changed."""

PARTITION_LOCK = LOCK + 1
"""The advisory lock under which partitions of the events are made and dropped."""

_SQL = load("postgres")
_OLDEST_CODE = re.compile(r"^-- oldest code: (\d+)$", re.MULTILINE)


# --- versions -----------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class StoreVersion:
    """The schema that a store has, and the one that a release must at least know to work with it."""

    version: int
    oldest_code: int


async def version_of(connection: Any) -> StoreVersion:
    """The version of the store; 0 for a database without one. Raises ConfigurationError, StoreVersionError."""
    [found] = await connection.fetch(_SQL["find_versions"])
    if found["encoding"] != "UTF8":
        raise ConfigurationError(f"The database's encoding is {found['encoding']}; a store needs UTF8.")
    if found["has_versions"]:
        [row] = await connection.fetch(_SQL["versions"])
        return StoreVersion(row["version"], row["oldest_code"])
    if found["has_tables"]:
        raise StoreVersionError("The schema agui_bridge belongs to another program: it is no store of agui-bridge.")
    return StoreVersion(0, 0)


def steps_for(store: StoreVersion, known: Sequence[Migration]) -> list[Migration]:
    """What this release has to do to the store. Nothing for a newer store that still suits it.

    Raises StoreVersionError for a store that has left this release behind.
    """
    newest = known[-1].number
    if store.version > newest >= store.oldest_code:
        return []
    return pending(store.version, known)


async def migrate(connection: Any) -> list[Migration]:
    """Run what is pending and return it. Raises StoreVersionError."""
    known = migrations("postgres")
    if not steps_for(await version_of(connection), known):
        return []
    async with transaction(connection):
        await connection.execute("SET LOCAL statement_timeout = 0")
        await connection.fetch(_SQL["wait_for_lock"], LOCK)
        steps = steps_for(await version_of(connection), known)
        if steps and steps[0].number == 1:
            await _make_home(connection)
        for step in steps:
            await connection.execute(step.sql)
            await connection.fetch(_SQL["add_version"], step.number, step.name, oldest_code_of(step))
    return steps


async def require_migrated(connection: Any) -> None:
    """Return if nothing is pending. Raises StoreVersionError."""
    store, known = await version_of(connection), migrations("postgres")
    if steps_for(store, known):
        require_current(store.version, known)


def oldest_code_of(step: Migration) -> int:
    """The schema that a release must know to work with what this step leaves; the step's own if it does not say."""
    said = _OLDEST_CODE.search(step.sql)
    return int(said[1]) if said else step.number


async def _make_home(connection: Any) -> None:
    [found] = await connection.fetch(_SQL["find_versions"])
    if not found["has_schema"]:
        await connection.execute(_SQL["make_schema"])
    await connection.execute(_SQL["make_versions"])


# --- partitions ---------------------------------------------------------------------------------------------------


class Partition(NamedTuple):
    """A week of events: from `start` up to before `end`, in ms since the epoch."""

    name: str
    start: int
    end: int


def partition_of(at: int) -> Partition:
    """The partition that an event recorded at this time belongs to."""
    start = at - at % WEEK_MS
    day = datetime.fromtimestamp(0, UTC) + timedelta(milliseconds=start)
    return Partition(f"events_{day:%Y%m%d}", start, start + WEEK_MS)


async def keep_partitions(connection: Any) -> list[str]:
    """Make the partitions of this week and the next ones; the names of those that were made.

    Events that waited in the default partition for want of one move into theirs. Somebody else who is at it is not
    waited for, and neither is a long transaction: the next one who looks tries again. Raises what asyncpg raises.
    """
    [(now,)] = await connection.fetch(_SQL["now"])
    wanted = {p.name: p for p in (partition_of(now + week * WEEK_MS) for week in range(WEEKS_AHEAD))}
    if not await connection.fetch(_SQL["missing_partitions"], list(wanted)):
        return []
    try:
        async with transaction(connection):
            await connection.execute("SET LOCAL lock_timeout = '2s'")
            [(locked,)] = await connection.fetch(_SQL["try_lock"], PARTITION_LOCK)
            if not locked:
                return []
            missing = [name for (name,) in await connection.fetch(_SQL["missing_partitions"], list(wanted))]
            for name in missing:
                for statement in statements_for(wanted[name]):
                    await connection.execute(statement)
            return missing
    except asyncpg.LockNotAvailableError:
        return []


def statements_for(partition: Partition) -> list[str]:
    """What makes a partition, without keeping writers from the others meanwhile."""
    name, start, end = partition
    return [_SQL[query].format(name=name, start=start, end=end) for query in ("make_week", "fill_week", "attach_week")]
