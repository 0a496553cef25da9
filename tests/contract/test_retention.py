"""Retention's promises, held by every store: what is compacted reads the same, what has expired or was erased is gone,
and nothing else is."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from pathlib import Path

import pytest

from runtime.errors import ConfigurationError, EventsExpired, StoreError, ThreadBusy
from runtime.events import (
    Event,
    MessageCompleted,
    MessageDelta,
    MessageStarted,
    ReasoningDelta,
    ReasoningStarted,
    Record,
    RunCompleted,
    RunStarted,
    ToolCallDelta,
)
from runtime.folds import fold
from runtime.journal import Idempotency, Opening, Session, Started
from runtime.journal.aliases import Alias
from runtime.journal.artifacts import Artifact
from runtime.journal.catalogue import Owner, Place, RunFilter
from runtime.journal.drafts import Unstorable
from runtime.journal.sqlite import SqliteJournal
from runtime.journal.sqlite_beside import SqliteBeside
from runtime.journal.store import Store
from runtime.journal.tail import Tail
from runtime.run import QUEUED, RunRecord
from runtime.thread import Thread
from tests.stores import Home

NOW = 1_750_000_000_000
DAY = 24 * 3600 * 1000
ME, YOU = Owner("-", "me"), Owner("-", "you")
STARTED = RunStarted(NOW, "r1", "assistant", "0" * 64, [])
DONE = RunCompleted("msg_1")
EVERY = RunFilter()


def said(text: str, part: str = "p1") -> Event:
    return MessageDelta("msg_1", part, 0, text)


SPOKEN: list[Event] = [
    MessageStarted("msg_1", "assistant"),
    said("a"),
    said("b"),
    said("c"),
    ReasoningStarted("msg_1", "p2", 1),
    ReasoningDelta("msg_1", "p2", 1, "hm"),
    said("d", "p3"),
    said("e", "p4"),
    said("f", "p4"),
    ToolCallDelta("call_1", "{"),
    ToolCallDelta("call_1", "}"),
    ToolCallDelta("call_2", "{}"),
    MessageCompleted("msg_1", "assistant", [], "0" * 64),
    DONE,
]


def opening(
    run_id: str = "run_1",
    name: str | None = "s1",
    *,
    owner: Owner = ME,
    base: int = 0,
    root: str | None = None,
    found: bool = False,
    contents: dict[str, bytes] | None = None,
    agent: str | None = None,
    key: Idempotency | None = None,
) -> Opening:
    thread = f"thread of {name or run_id}"
    run = RunRecord(
        run_id, *(owner.tenant_id, owner.owner_id), thread, name, "assistant", run_id, "d1", 1, QUEUED, base, 0, 1,
        root or run_id, NOW, agent_snapshot_checksum=agent,
    )  # fmt: skip
    session = Session(owner.tenant_id, owner.owner_id, name, thread, "assistant", None, NOW) if name else None
    return Opening(run, None if found else session, [STARTED], NOW, contents=contents or {}, idempotency=key)


async def begun(store: Store, wanted: Opening) -> RunRecord:
    answer = await store.begin_run(wanted)
    assert isinstance(answer, Started)
    return answer.run


async def ended(
    store: Store, wanted: Opening, events: list[Event] | None = None, at: int = NOW, *, apart: bool = False
) -> RunRecord:
    """A run that is over; `apart` if each of its events was handed in by itself, and none shares its row."""
    run = await begun(store, wanted)
    said = [DONE] if events is None else events
    for last_seq, part in enumerate([[event] for event in said] if apart else [said], run.last_seq):
        await store.append(run.run_id, run.fence, last_seq, part, at)
    over = await store.find_run(run.run_id)
    assert over is not None
    return over


def artifact(name: str, run: RunRecord, digest: str = "d") -> Artifact:
    of = (run.tenant_id, run.owner_id, run.thread_id, run.run_id)
    return Artifact(name, *of, f"{name}.txt", "text/plain", 3, digest, NOW)


def shape(records: list[Record]) -> list[tuple[int, int, str]]:
    return [(record.first_seq, record.seq, getattr(record.event, "delta", "-")) for record in records]


# --- compaction ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("apart", [False, True])
async def test_deltas_of_a_part_that_follow_each_other_become_the_last_of_them(apart: bool, store: Store):
    run = await ended(store, opening(), SPOKEN, apart=apart)
    assert await store.compact("run_1", NOW) == 4
    assert shape(await store.read("run_1", 0, 100)) == [
        (1, 1, "-"),
        (2, 2, "-"),
        (3, 5, "abc"),
        (6, 6, "-"),
        (7, 7, "hm"),
        (8, 8, "d"),
        (9, 10, "ef"),
        (11, 12, "{}"),
        (13, 13, "{}"),
        (14, 14, "-"),
        (15, 15, "-"),
    ]
    assert await store.find_run("run_1") == run  # its end, its status, its times are what they were
    assert shape(await store.read("run_1", 2, 2)) == [(3, 5, "abc"), (6, 6, "-")]
    assert shape(await store.read("run_1", 4, 1)) == [(3, 5, "abc")]
    assert shape(await store.read("run_1", 5, 1)) == [(6, 6, "-")]


async def test_a_run_is_compacted_once_and_only_when_it_is_over(store: Store):
    run = await begun(store, opening())
    await store.append("run_1", run.fence, 1, SPOKEN[:-1], NOW)
    assert await store.compact("run_1", NOW) == 0
    assert await store.uncompacted_runs(NOW + DAY, 10) == []
    await store.append("run_1", run.fence, len(SPOKEN), [DONE], NOW)
    assert await store.uncompacted_runs(NOW + 1, 10) == ["run_1"]
    assert await store.uncompacted_runs(NOW, 10) == []
    assert await store.uncompacted_runs(NOW + 1, 10, {"run_1"}) == []
    assert await store.compact("run_1", NOW) == 4
    assert await store.compact("run_1", NOW) == 0
    assert await store.compact("run_9", NOW) == 0
    assert await store.uncompacted_runs(NOW + 1, 10) == []


async def test_a_thread_folds_the_same_from_a_compacted_journal(store: Store):
    run = await ended(store, opening(), [*SPOKEN[:-2], DONE])  # without the whole message: the deltas count
    before, after = Thread("t"), Thread("t")
    fold(before, run, await store.read("run_1", 0, 100))
    await store.compact("run_1", NOW)
    fold(after, run, await store.read("run_1", 0, 100))
    assert after.turn is not None
    assert before.turn is not None
    assert after.turn.content() == before.turn.content() != []
    assert after.position == before.position


async def everything(cursor_of: Tail, after: int = 0) -> list[Record]:
    cursor = cursor_of.follow("run_1", after)
    found: list[Record] = []
    try:
        while records := await cursor.next():
            found += records
    finally:
        cursor.close()
    return found


async def test_a_reader_of_a_compacted_run_is_given_all_of_it_and_none_twice(store: Store):
    await ended(store, opening(), SPOKEN)
    await store.compact("run_1", NOW)
    for page in (1, 2, 3, 512):
        found = await everything(Tail(store, page=page))
        assert [place for first, last, _ in shape(found) for place in range(first, last + 1)] == list(range(1, 16))


async def test_a_place_within_what_became_one_is_gone_and_those_around_it_are_not(store: Store):
    await ended(store, opening(), SPOKEN)
    await store.compact("run_1", NOW)
    for after in (3, 4, 9, 11):
        with pytest.raises(EventsExpired):
            await everything(Tail(store), after)
    for after in (0, 1, 2, 5, 6, 7, 8, 10, 12, 13, 14):
        assert (await everything(Tail(store), after))[0].first_seq == after + 1


@pytest.mark.parametrize("page", [1, 2, 3, 4, 5])
async def test_a_reader_that_is_under_way_while_a_run_is_compacted_goes_on_where_it_was(store: Store, page: int):
    await ended(store, opening(), SPOKEN)
    plain = await everything(Tail(store))
    for turns in range(1, 4):
        tail = Tail(store, page=page)
        cursor = tail.follow("run_1", 0)
        found: list[Record] = []
        for _ in range(turns):
            found += await cursor.next()
        if turns == 3:
            await store.compact("run_1", NOW)
        while records := await cursor.next():
            found += records
        cursor.close()
        assert [place for first, last, _ in shape(found) for place in range(first, last + 1)] == list(range(1, 16))
        for kind in (MessageDelta, ReasoningDelta, ToolCallDelta):
            words = "".join(r.event.delta for r in found if isinstance(r.event, kind))
            assert words == "".join(r.event.delta for r in plain if isinstance(r.event, kind))


# --- expiry -------------------------------------------------------------------------------------------------------


async def test_a_thread_that_nobody_used_for_long_goes_and_the_records_of_its_runs_stay(store: Store):
    wanted = opening("run_1", "old", contents={"agent": b"{}"}, agent="agent")
    old = await ended(store, wanted, SPOKEN, apart=True)
    await ended(store, opening("run_2", "new"), at=NOW + 2 * DAY)
    await store.add_artifact(artifact("art_1", old, "d1"))
    removed = await store.expire(NOW + DAY, NOW + 3 * DAY, 10)
    assert removed.counts == {"threads": 1, "runs": 1, "sessions": 1, "artifacts": 1, "contents": 1}
    assert removed.digests == {"d1"}
    assert await store.find_run("run_1") == replace(old, expired_at=NOW + 3 * DAY)
    assert await store.find_session("-", "me", "old") is None
    assert await store.find_artifact("art_1") is None
    assert await store.content("agent") is None
    swept = await store.sweep(NOW + 3 * DAY)
    assert (swept.counts["swept_runs"], swept.counts["events"]) == (1, 15)
    assert await store.read("run_1", 0, 10) == []
    assert not await store.sweep(NOW + 3 * DAY)
    assert not await store.expire(NOW + DAY, NOW + 3 * DAY, 10)
    assert len(await store.read("run_2", 0, 10)) == 2
    assert [each.session_id for each in await store.list_sessions(ME, None, 10)] == ["new"]


async def test_a_reader_of_what_has_expired_is_told_so(store: Store):
    await ended(store, opening(), SPOKEN)
    await store.expire(NOW + DAY, NOW, 10)
    await store.sweep(NOW)
    with pytest.raises(EventsExpired):
        await everything(Tail(store))
    assert await everything(Tail(store), 15) == []


async def test_a_session_can_begin_again_where_one_has_expired(store: Store):
    await ended(store, opening("run_1"))
    await store.expire(NOW + DAY, NOW, 10)
    again = opening("run_2")
    fresh = replace(again, run=replace(again.run, thread_id="another"))
    assert again.session is not None
    run = await begun(store, replace(fresh, session=replace(again.session, thread_id="another")))
    assert run.thread_id == "another"


async def test_a_thread_stays_while_any_run_of_it_or_below_it_is_young_or_at_work_or_read(store: Store):
    await ended(store, opening("run_1", "used"))
    await ended(store, opening("run_2", "used", base=2, found=True), at=NOW + 2 * DAY)
    await ended(store, opening("run_3", "parent"))
    await begun(store, opening("run_4", None, root="run_3"))
    await ended(store, opening("run_5", "read"))
    assert not await store.expire(NOW + DAY, NOW, 10, {"run_5"})
    assert (await store.expire(NOW + DAY, NOW, 10)).counts["threads"] == 1
    assert await store.find_session("-", "me", "read") is None
    assert await store.find_session("-", "me", "used") is not None
    assert await store.find_session("-", "me", "parent") is not None


async def test_a_child_goes_with_its_root_and_not_before(store: Store):
    await ended(store, opening("run_1", "s1"), at=NOW + 2 * DAY)
    await ended(store, opening("run_2", None, root="run_1"))
    assert not await store.expire(NOW + DAY, NOW, 10)
    assert (await store.expire(NOW + 3 * DAY, NOW, 10)).counts["threads"] == 2
    assert (await store.sweep(NOW)).counts["swept_runs"] == 2


async def test_expiry_takes_no_more_threads_at_once_than_it_may(store: Store):
    for number in range(5):
        await ended(store, opening(f"run_{number}", f"s{number}"))
    assert [(await store.expire(NOW + DAY, NOW, 2)).counts.get("threads", 0) for _ in range(4)] == [2, 2, 1, 0]


# --- erasure ------------------------------------------------------------------------------------------------------


async def test_nothing_is_left_of_what_was_erased_and_everything_of_the_rest(store: Store):
    shared = {"agent": b"{}", "mine": b"1"}
    wanted = opening("run_1", contents=shared, agent="agent", key=Idempotency("k", "q", "m"))
    mine = await ended(store, wanted, SPOKEN, apart=True)
    below = await ended(store, opening("run_2", None, root="run_1", contents={"below": b"2"}, agent="below"))
    yours = await ended(store, opening("run_3", "s2", owner=YOU, contents=shared, agent="agent"))
    for each, digest in (("art_1", "d1"), ("art_2", "d2")):
        await store.add_artifact(artifact(each, mine, digest))
    await store.add_artifact(artifact("art_3", yours, "d2"))
    await store.add_alias(Alias(mine.thread_id, "again", "d2", "run_1"))
    await store.put_contents({"d1": b"one", "d2": b"two"})
    threads = await store.threads_of_session(ME, "s1")
    assert sorted(threads) == sorted([mine.thread_id, below.thread_id])
    removed = await store.erase(threads)
    assert removed.counts == {
        "artifacts": 2, "aliases": 1, "idempotency_keys": 1, "sessions": 1, "events": 17, "runs": 2, "threads": 2,
        "contents": 2,
    }  # fmt: skip
    assert removed.digests == {"d1"}
    for run_id in ("run_1", "run_2"):
        assert await store.find_run(run_id) is None
        assert await store.read(run_id, 0, 10) == []
    assert await store.content("agent") == b"{}"
    assert await store.content("below") is None
    assert await store.content("d1") is None
    assert await store.content("d2") == b"two"
    assert await store.find_keyed(ME, "k") is None
    assert await store.find_session("-", "me", "s1") is None
    assert await store.find_run("run_3") == yours
    assert await store.find_artifact("art_3") is not None
    assert not await store.erase(threads)
    assert (await begun(store, opening("run_1"))).status == "running"  # the names are free again


async def test_nothing_is_erased_while_a_run_is_at_work(store: Store):
    await ended(store, opening("run_1"))
    await begun(store, opening("run_2", base=2, found=True))
    with pytest.raises(ThreadBusy) as refusal:
        await store.erase(["thread of s1"])
    assert refusal.value.details == {"run_id": "run_2"}
    assert len(await store.read("run_1", 0, 10)) == 2


async def test_what_has_expired_can_be_erased_and_hidden_sessions_too(store: Store):
    await ended(store, opening("run_1"))
    await store.expire(NOW + DAY, NOW, 10)
    assert await store.threads_of_owner(ME) == ["thread of s1"]
    assert (await store.erase(["thread of s1"])).counts["runs"] == 1
    assert await store.threads_of_owner(ME) == []
    assert not await store.sweep(NOW)
    await ended(store, opening("run_2", "s2"))
    await store.hide_session(ME, "s2", NOW)
    assert await store.threads_of_session(ME, "s2") == ["thread of s2"]
    assert await store.threads_of_session(YOU, "s2") == []
    assert (await store.erase(["thread of s2"])).counts["sessions"] == 1


async def test_runs_that_begin_while_others_are_erased_keep_what_they_name(store: Store):
    for number in range(6):
        await ended(store, opening(f"run_{number}", f"s{number}", contents={"agent": b"{}"}, agent="agent"))

    async def erase(number: int) -> None:
        await store.erase([f"thread of s{number}"])

    async def begin(number: int) -> None:
        await ended(store, opening(f"new_{number}", f"n{number}", contents={"agent": b"{}"}, agent="agent"))

    await asyncio.gather(*(work(number) for number in range(6) for work in (erase, begin)))
    assert await store.content("agent") == b"{}"
    assert len(await store.list_runs(ME, EVERY, None, 20)) == 6


# --- artifacts ----------------------------------------------------------------------------------------------------


async def test_an_artifact_is_found_by_its_id_and_listed_with_its_thread(store: Store):
    run = await ended(store, opening())
    first, second = artifact("art_2", run), replace(artifact("art_1", run, "e"), created_at=NOW + 1)
    await store.add_artifact(first)
    await store.add_artifact(second)
    assert await store.find_artifact("art_2") == first
    assert await store.find_artifact("art_9") is None
    assert await store.artifacts_of(run.thread_id) == [first, second]
    assert await store.artifacts_of("another") == []
    assert await store.is_named("e")
    assert not await store.is_named("f")


async def test_an_id_is_given_to_one_artifact_and_to_none_without_a_run(store: Store):
    run = await ended(store, opening())
    await store.add_artifact(artifact("art_1", run))
    with pytest.raises(Unstorable):
        await store.add_artifact(artifact("art_1", run))
    with pytest.raises(Unstorable):
        await store.add_artifact(replace(artifact("art_2", run), run_id="run_9"))


async def test_a_blob_is_read_in_slices(store: Store):
    await store.put_contents({"d": b"0123456789"})
    assert await store.content_slice("d", 0, 4) == b"0123"
    assert await store.content_slice("d", 8, 4) == b"89"
    assert await store.content_slice("d", 10, 4) == b""
    assert await store.content_slice("e", 0, 4) is None


async def test_a_secret_is_what_was_kept_first_after_a_restart_too(store: Store, home: Home):
    assert await store.keep_secret("k", b"first") == b"first"
    assert await store.keep_secret("k", b"second") == b"first"
    assert await store.keep_secret("l", b"other") == b"other"
    await store.close()
    again = home.store()
    await again.open()
    assert await again.keep_secret("k", b"third") == b"first"
    await again.close()
    await store.open()


# --- for operators ------------------------------------------------------------------------------------------------


async def test_operators_see_every_run_of_everybody_page_by_page(store: Store):
    await ended(store, opening("run_1", "s1"))
    await begun(store, opening("run_2", "s2", owner=YOU))
    await store.hide_session(ME, "s1", NOW)
    every = await store.list_every_run(EVERY, None, 10)
    assert [run.run_id for run in every] == ["run_2", "run_1"]
    assert await store.list_every_run(EVERY, Place(every[0].created_at, "run_2"), 10) == every[1:]
    assert await store.list_every_run(RunFilter("s1"), None, 10) == every[1:]
    assert await store.list_every_run(RunFilter(statuses=frozenset({"running"})), None, 10) == every[:1]
    assert [each.session_id for each in await store.sessions_of_owner(ME)] == ["s1"]


async def test_beside_a_server_a_sqlite_store_is_read_and_marked_and_nothing_begins(tmp_path: Path):
    path = tmp_path / "store.db"
    absent = SqliteBeside(path)
    with pytest.raises(ConfigurationError, match="no store"):
        await absent.open()
    server = SqliteJournal(path)
    await server.open()
    run = await begun(server, opening("run_1"))
    beside = SqliteBeside(path)
    await beside.open()
    assert not beside.exclusive
    assert await beside.find_run("run_1") == run
    assert await beside.take_over("run_1", "exec_2", 15) is None
    with pytest.raises(StoreError, match="beside"):
        await beside.begin_run(opening("run_2", "s2"))
    with pytest.raises(StoreError, match="beside"):
        await beside.append("run_1", run.fence, run.last_seq, [DONE], NOW)
    assert (await beside.mark_cancel("run_1", "operator")) is not None
    await server.take_over("run_1", "exec_1", 15)
    [lease] = await server.renew("exec_1", ["run_1"], 15)
    assert lease.cancel_reason == "operator"
    await beside.close()
    await server.close()
