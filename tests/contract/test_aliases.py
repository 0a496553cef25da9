"""The aliases port: requests that a run answers though another began it, kept by every store."""

from __future__ import annotations

import pytest

from runtime.errors import NotFound
from runtime.events import RunFailed
from runtime.journal import Busy, Conflict, Replay, Started
from runtime.journal.aliases import NO_REQUEST, Alias
from runtime.journal.store import Store
from tests.contract.test_journal import FAILURE, deltas, ended, opening, started
from tests.stores import Home

RELOAD = Alias("thread_1", "r2", "d2", "run_1")
NAME = Alias("thread_1", "r9", NO_REQUEST, "run_1")


def reload(run_id: str = "run_2", digest: str = "d2", *, repeatable: bool = False, base: int = 1):
    """The request that was answered by following, as a beginning."""
    return opening(run_id, client="r2", digest=digest, base=base, repeatable=repeatable)


async def test_a_request_that_was_answered_by_a_run_is_a_replay_of_it_also_when_it_is_over(store: Store):
    run = await started(store)
    assert await store.add_alias(RELOAD) == run
    assert await store.begin_run(reload()) == Replay(run)
    over = await ended(store, "run_1")
    assert await store.begin_run(reload(base=over.last_seq)) == Replay(over)


async def test_the_same_request_under_the_same_id_is_answered_as_the_first_time(store: Store):
    await started(store)
    await store.add_alias(RELOAD)
    over = await ended(store, "run_1")
    await started(store, run_id="run_2", client="r3", base=over.last_seq)
    assert await store.add_alias(Alias("thread_1", "r2", "d2", "run_2")) == over
    begun = await store.begin_run(reload("run_3"))
    assert begun == Replay(over)


async def test_a_request_that_has_begun_a_run_is_answered_by_that_one(store: Store):
    over = await ended(store, (await started(store)).run_id)
    await started(store, run_id="run_2", client="r3", base=over.last_seq)
    assert await store.add_alias(Alias("thread_1", "r1", "d1", "run_2")) == over


async def test_other_content_under_the_id_of_a_followed_request_is_a_conflict(store: Store):
    run = await started(store)
    await store.add_alias(RELOAD)
    assert await store.begin_run(reload(digest="d3")) == Conflict(run)
    assert await store.begin_run(reload(digest="d3", repeatable=True)) == Busy(run)


async def test_what_may_be_repeated_runs_again_when_the_run_that_answered_it_has_failed(store: Store):
    run = await started(store)
    await store.add_alias(RELOAD)
    over = await ended(store, run.run_id, RunFailed(FAILURE.error))
    begun = await store.begin_run(reload(repeatable=True, base=over.last_seq))
    assert isinstance(begun, Started)
    assert begun.run.attempt == 2
    assert await store.begin_run(reload("run_3")) == Replay(begun.run)


async def test_a_name_is_no_request(store: Store):
    over = await ended(store, (await started(store)).run_id)
    assert await store.add_alias(NAME) == over
    begun = await store.begin_run(opening("run_2", client="r9", digest="d9", base=over.last_seq))
    assert isinstance(begun, Started)


async def test_a_name_names_the_latest_run_that_it_was_given(store: Store):
    run = await started(store)
    await store.add_alias(NAME)
    assert await store.find_named_run("thread_1", "r9") == run
    over = await ended(store, "run_1")
    assert await store.find_named_run("thread_1", "r9") == over
    second = await started(store, run_id="run_2", client="r2", base=over.last_seq)
    assert await store.add_alias(Alias("thread_1", "r9", NO_REQUEST, "run_2")) == second
    assert await store.find_named_run("thread_1", "r9") == second
    assert await store.find_named_run("thread_1", "r1") == over


async def test_a_run_is_found_by_its_own_id_and_the_newest_counts(store: Store):
    over = await ended(store, (await started(store)).run_id)
    second = await started(store, run_id="run_2", client="r1", digest="d2", base=over.last_seq, repeatable=True)
    assert await store.find_named_run("thread_1", "r1") == second
    assert await store.find_named_run("thread_1", "r7") is None
    assert await store.find_named_run("thread_2", "r1") is None


async def test_an_alias_counts_on_its_own_thread_alone(store: Store):
    await started(store)
    await store.add_alias(RELOAD)
    await started(store, run_id="run_2", thread="thread_2", client="r2", digest="d2")
    for alias in (Alias("thread_2", "r5", "d5", "run_1"), Alias("thread_1", "r5", "d5", "run_7")):
        with pytest.raises(NotFound):
            await store.add_alias(alias)
    assert await store.find_named_run("thread_2", "r5") is None


async def test_an_alias_outlives_the_store_that_was_closed(home: Home):
    first = home.store()
    await first.open()
    await started(first)
    await first.add_alias(RELOAD)
    await first.close()
    store = home.store()
    await store.open()
    begun = await store.begin_run(reload())
    assert isinstance(begun, Replay)
    assert begun.run.run_id == "run_1"
    await store.close()


# --- a part of a thread -------------------------------------------------------------------------------------------


async def test_a_thread_is_read_up_to_a_position(store: Store):
    await started(store)
    await store.append("run_1", 1, 1, deltas(3), 0)
    over = await ended(store, "run_1")
    await started(store, run_id="run_2", client="r2", base=over.last_seq)
    await store.append("run_2", 1, 1, deltas(5), 0)

    async def read(after: int, up_to: int | None) -> list[tuple[str, list[int]]]:
        found = await store.read_thread("thread_1", after, up_to)
        return [(run.run_id, [record.seq for record in records]) for run, records in found]

    assert await read(0, 5) == [("run_1", [1, 5])]
    assert await read(0, 1) == [("run_1", [1])]
    assert await read(0, 8) == [("run_1", [1, 5]), ("run_2", [1, 2, 3])]
    assert await read(6, 8) == [("run_2", [2, 3])]
    assert await read(0, 0) == []
    assert await read(0, None) == [("run_1", [1, 5]), ("run_2", [1, 2, 3, 4, 5, 6])]
