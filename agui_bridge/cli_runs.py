"""`agui-bridge runs …`: what runs there are, what they did, stopping one, following one, removing old facts.

A server may have the store open meanwhile. A run that it performs is stopped by a mark, which it sees within seconds.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import Final

import click

from agui_bridge.cli_store import Age, alone_or_beside, beside, json_option, run, say_json, settings_of, store_option
from agui_bridge.run_documents import run_document
from agui_bridge.settings import Settings
from agui_bridge.tables import table
from agui_bridge.times import iso
from runtime.canonical import JsonObject
from runtime.errors import NotFound
from runtime.events import Record
from runtime.journal.catalogue import RunFilter
from runtime.journal.store import Store
from runtime.run import TRANSITIONS, RunRecord

WIDE: Final = 100
"""How much of a payload a line shows."""


@click.group()
def runs() -> None:
    """Look at runs, stop them, remove old ones."""


@runs.command("list")
@click.option("--session", help="Only those of this session.")
@click.option("--status", type=click.Choice(list(TRANSITIONS)), multiple=True, help="Only those with this status.")
@click.option("--limit", type=click.IntRange(1, 10_000), default=20, show_default=True, help="How many at most.")
@json_option
@store_option
def list_(session: str | None, status: tuple[str, ...], limit: int, as_json: bool, store: str | None) -> None:
    """The newest runs, whoever owns them."""
    found = run(_listed(settings_of(store=store), RunFilter(session, frozenset(status) or None), limit))
    if as_json:
        for each in found:
            say_json(run_document(each))
    else:
        heads = ("run", "status", "agent", "session", "owner", "created", "seconds", "events", "error")
        click.echo(table(heads, [_row(each) for each in found]))


@runs.command()
@click.argument("run_id", metavar="RUN")
@json_option
@store_option
def show(run_id: str, as_json: bool, store: str | None) -> None:
    """The record of a run."""
    document = run_document(run(_found(settings_of(store=store), run_id)))
    if as_json:
        say_json(document)
    else:
        click.echo(table(("", ""), list(document.items())).strip())


@runs.command()
@click.argument("run_id", metavar="RUN")
@click.option("--after", type=click.IntRange(0), default=0, help="Only those behind this seq.")
@json_option
@store_option
def events(run_id: str, after: int, as_json: bool, store: str | None) -> None:
    """The journal of a run, as far as it goes."""
    run(_told(settings_of(store=store), run_id, after, as_json=as_json, live=False))


@runs.command()
@click.argument("run_id", metavar="RUN")
@click.option("--after", type=click.IntRange(0), default=0, help="Only those behind this seq.")
@json_option
@store_option
def tail(run_id: str, after: int, as_json: bool, store: str | None) -> None:
    """The journal of a run, followed until it is over."""
    run(_told(settings_of(store=store), run_id, after, as_json=as_json, live=True))


@runs.command()
@click.argument("run_id", metavar="RUN")
@click.option("--wait", type=Age(), default="30s", show_default=True, help="How long to wait for its end.")
@json_option
@store_option
def cancel(run_id: str, wait: float, as_json: bool, store: str | None) -> None:
    """Stop a run, wherever it is at work. Exits with 1 if it is not over when the waiting ends."""
    after = run(_cancelled(settings_of(store=store), run_id, wait))
    if as_json:
        say_json(run_document(after))
    else:
        click.echo(f"{after.run_id} is {after.status}" + ("" if after.is_over else ": it was asked to stop"))
    sys.exit(0 if after.is_over else 1)


@runs.command()
@click.option("--older-than", type=Age(), help="Remove threads without a run for so long (30d), with their sessions.")
@click.option("--compact-after", type=Age(), help="Compact runs that ended so long ago. Default: `compact_after_s`.")
@json_option
@store_option
def purge(older_than: float | None, compact_after: float | None, as_json: bool, store: str | None) -> None:
    """Compact the facts of runs that are over, and remove those of threads that nobody used for long.

    The records of runs stay: who ran what, how it ended, what it cost. Sessions, messages and artifacts go.
    """
    receipt = run(_purged(settings_of(store=store), older_than, compact_after))
    if as_json:
        say_json(receipt)
        return
    rows = [(name, value) for name, value in receipt.items() if not isinstance(value, dict)]
    click.echo(table(("what", "count"), [*rows, *receipt["database"].items()]))


# --- the work -----------------------------------------------------------------------------------------------------


async def _listed(settings: Settings, wanted: RunFilter, limit: int) -> list[RunRecord]:
    async with beside(settings) as store:
        return await store.list_every_run(wanted, None, limit)


async def _found(settings: Settings, run_id: str) -> RunRecord:
    async with beside(settings) as store:
        return await _run(store, run_id)


async def _run(store: Store, run_id: str) -> RunRecord:
    found = await store.find_run(run_id)
    if found is None:
        raise NotFound(f"There is no run {run_id!r}.")
    return found


async def _told(settings: Settings, run_id: str, after: int, *, as_json: bool, live: bool) -> None:
    from runtime.journal.tail import Tail

    async with beside(settings) as store:
        found = await _run(store, run_id)
        if found.is_over and after >= found.last_seq:
            return
        readers = Tail(store)
        cursor = readers.follow(run_id, after)
        try:
            while live or cursor.after < found.last_seq:
                records = await cursor.next()
                if not records:
                    break
                for record in records:
                    _say(record, as_json=as_json)
        finally:
            cursor.close()
            await readers.elsewhere.close()


def _say(record: Record, *, as_json: bool) -> None:
    if not as_json:
        payload = record.payload.decode()
        shown = payload if len(payload) <= WIDE else payload[: WIDE - 1] + "…"
        click.echo(f"{record.seq:>6}  {iso(record.occurred_at)}  {record.event_type:<22}  {shown}")
        return
    import orjson

    document: JsonObject = {"seq": record.seq, "event_type": record.event_type, "occurred_at": iso(record.occurred_at)}
    if record.from_seq is not None:
        document["from_seq"] = record.from_seq
    say_json({**document, "payload": orjson.loads(record.payload)})


async def _cancelled(settings: Settings, run_id: str, wait_s: float) -> RunRecord:
    from runtime.supervisor import Supervisor

    async with alone_or_beside(settings) as store:
        await _run(store, run_id)
        supervisor = Supervisor(store, {})
        await supervisor.cancel(run_id, "operator", wait_s)
        await supervisor.tail.elsewhere.close()
        return await _run(store, run_id)


async def _purged(settings: Settings, older_than: float | None, compact_after: float | None) -> JsonObject:
    from runtime.blobs.open import blobs_for
    from runtime.housekeeping import Housekeeper, RetentionPolicy
    from runtime.supervisor import Supervisor
    from runtime.system import SystemClock

    after_s = settings.compact_after_s if compact_after is None else compact_after
    async with beside(settings) as store:
        supervisor = Supervisor(store, {}, blobs=blobs_for(settings.artifacts, settings.store, store))
        policy = RetentionPolicy(after_s, older_than)
        kept = await Housekeeper(store, supervisor.erasure, SystemClock(), policy).keep()
    return {
        "compacted_runs": kept.compacted_runs,
        "saved_rows": kept.saved_rows,
        "artifact_files": kept.gone.artifact_files,
        "database": dict(kept.gone.database.counts),
    }


def _row(each: RunRecord) -> Sequence[object]:
    seconds = None
    if each.started_at is not None and each.finished_at is not None:
        seconds = f"{(each.finished_at - each.started_at) / 1000:.1f}"
    return (
        each.run_id,
        each.status if each.expired_at is None else f"{each.status} (expired)",
        each.agent_id,
        each.session_id,
        each.owner_id,
        iso(each.created_at),
        seconds,
        each.last_seq,
        each.error and each.error.get("code"),
    )
