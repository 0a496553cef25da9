"""The trees port: a root run and all below it as one stream, held by every store."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from runtime.events import ChildCompleted, ChildStarted, Event, MessageDelta, MessageStarted, Record
from runtime.journal import Started
from runtime.journal.inbox import Part
from runtime.journal.store import Store
from runtime.run import RunRecord
from tests.contract.test_journal import DONE, NOW, opening
from tests.stores import Home


def handing_on(run_id: str) -> ChildStarted:
    return ChildStarted(run_id, f"thread of {run_id}", "helper", "helper", "call_1", 1, "0" * 64)


def words(count: int, message_id: str = "msg_1") -> list[Event]:
    return [MessageDelta(message_id, "p0", 0, f"{n} ") for n in range(count)]


async def root_of(store: Store, run_id: str = "run_1") -> RunRecord:
    begun = await store.begin_run(opening(run_id, f"thread of {run_id}"))
    assert isinstance(begun, Started)
    return begun.run


async def child_of(store: Store, parent: RunRecord, run_id: str) -> list[Record]:
    """A child run that has begun, behind what its parent says of it."""
    asked = opening(run_id, f"thread of {run_id}", session=False)
    run = replace(asked.run, parent_run_id=parent.run_id, root_run_id=parent.root_run_id)
    begun = await store.begin_run(replace(asked, run=run))
    assert isinstance(begun, Started)
    return begun.records


async def append(store: Store, run_id: str, after: int, *events: Event) -> list[Record]:
    return await store.append(run_id, 1, after, list(events), NOW)


def places(records: list[Record]) -> list[tuple[str, int, int]]:
    return [(record.run_id, record.seq, record.root_seq) for record in records]


async def test_a_run_without_children_is_its_own_tree(store: Store):
    await root_of(store)
    records = await append(store, "run_1", 1, MessageStarted("msg_1", "assistant"), *words(2))
    assert places(records) == [("run_1", 2, 2), ("run_1", 3, 3), ("run_1", 4, 4)]
    assert await store.tree_end("run_1") == 4
    assert places(await store.read_tree({"run_1": 2}, 10)) == [("run_1", 3, 3), ("run_1", 4, 4)]


async def test_events_of_a_tree_are_numbered_in_the_order_of_their_commits(store: Store):
    root = await root_of(store)
    await append(store, "run_1", 1, handing_on("run_2"), MessageStarted("msg_1", "assistant"))
    assert places(await child_of(store, root, "run_2")) == [("run_2", 1, 4)]
    assert places(await append(store, "run_1", 3, *words(2))) == [("run_1", 4, 5), ("run_1", 5, 6)]
    assert places(await append(store, "run_2", 1, *words(1))) == [("run_2", 2, 7)]
    assert places(await append(store, "run_2", 2, DONE)) == [("run_2", 3, 8)]
    assert places(await append(store, "run_1", 5, ChildCompleted("run_2"), DONE)) == [
        ("run_1", 6, 9),
        ("run_1", 7, 10),
    ]
    stored = await store.read_tree({"run_1": 0, "run_2": 0}, 100)
    assert [record.root_seq for record in stored] == list(range(1, 11))
    assert await store.tree_end("run_1") == 10
    assert [run.run_id for run in await store.runs_of_tree("run_1")] == ["run_1", "run_2"]


async def test_a_grandchild_is_counted_in_the_tree_of_its_root(store: Store):
    root = await root_of(store)
    await append(store, "run_1", 1, handing_on("run_2"))
    await child_of(store, root, "run_2")
    await append(store, "run_2", 1, handing_on("run_3"))
    child = await store.find_run("run_2")
    assert child is not None
    assert places(await child_of(store, child, "run_3")) == [("run_3", 1, 5)]
    assert places(await append(store, "run_3", 1, DONE)) == [("run_3", 2, 6)]
    assert places(await append(store, "run_2", 2, DONE)) == [("run_2", 3, 7)]


async def test_what_many_runs_of_many_trees_append_at_once_has_no_gap_in_any(store: Store):
    for root_id in ("run_1", "run_2"):
        root = await root_of(store, root_id)
        await append(store, root_id, 1, handing_on(f"{root_id}_a"), handing_on(f"{root_id}_b"))
        for child in ("a", "b"):
            await child_of(store, root, f"{root_id}_{child}")
    plain = await root_of(store, "run_3")

    async def talk(run_id: str, after: int) -> None:
        for n in range(10):
            await append(store, run_id, after + 3 * n, *words(3))

    talking = [(f"run_{n}{who}", after) for n in (1, 2) for who, after in (("", 3), ("_a", 1), ("_b", 1))]
    await asyncio.gather(*(talk(run_id, after) for run_id, after in [*talking, (plain.run_id, 1)]))
    for root_id in ("run_1", "run_2"):
        stored = await store.read_tree({root_id: 0, f"{root_id}_a": 0, f"{root_id}_b": 0}, 1000)
        assert [record.root_seq for record in stored] == list(range(1, 3 + 2 + 90 + 1))
        assert await store.tree_end(root_id) == len(stored)
    assert [record.root_seq for record in await store.read("run_3", 0, 100)] == list(range(1, 32))


async def test_an_append_in_a_tree_that_is_repeated_is_the_same_append(store: Store):
    root = await root_of(store)
    await append(store, "run_1", 1, handing_on("run_2"))
    await child_of(store, root, "run_2")
    once = await append(store, "run_2", 1, *words(2))
    await append(store, "run_1", 2, *words(1))
    assert places(await append(store, "run_2", 1, *words(2))) == places(once)
    assert await store.tree_end("run_1") == 6


async def test_a_page_of_a_tree_is_its_beginning_behind_the_places(store: Store):
    root = await root_of(store)
    await append(store, "run_1", 1, handing_on("run_2"))
    await child_of(store, root, "run_2")
    for n in range(4):
        await append(store, "run_2", 1 + n, *words(1))
        await append(store, "run_1", 2 + n, *words(1))
    read: list[Record] = []
    at = {"run_1": 0, "run_2": 0}
    while page := await store.read_tree(at, 3):
        read += page
        at |= {record.run_id: record.seq for record in page}
    assert [record.root_seq for record in read] == list(range(1, 12))


async def test_a_tree_is_counted_on_after_a_restart(store: Store, home: Home):
    root = await root_of(store)
    await append(store, "run_1", 1, handing_on("run_2"))
    await child_of(store, root, "run_2")
    await append(store, "run_2", 1, *words(2))
    await store.close()
    again = home.store()
    await again.open()
    assert places(await append(again, "run_1", 2, *words(1))) == [("run_1", 3, 6)]
    assert places(await append(again, "run_2", 3, DONE)) == [("run_2", 4, 7)]
    await again.close()
    await store.open()


async def test_an_unknown_tree_is_empty(store: Store):
    assert await store.tree_end("run_9") == 0
    assert await store.read_tree({"run_9": 0}, 10) == []


async def test_what_runs_append_together_is_counted_in_their_trees(store: Store):
    root = await root_of(store)
    await append(store, "run_1", 1, handing_on("run_2"))
    await child_of(store, root, "run_2")
    await root_of(store, "run_3")
    together = await store.append_all([Part("run_1", 1, 2, words(2)), Part("run_3", 1, 1, words(2))], NOW)
    assert together is not None
    assert [places(records) for records in together] == [
        [("run_1", 3, 4), ("run_1", 4, 5)],
        [("run_3", 2, 2), ("run_3", 3, 3)],
    ]
    assert places(await append(store, "run_2", 1, DONE)) == [("run_2", 2, 6)]
    assert await store.tree_end("run_1") == 6
