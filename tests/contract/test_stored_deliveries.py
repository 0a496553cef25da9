"""What every store keeps of deliveries: due when the run is over, taken by one at a time, kept until they are done."""

from __future__ import annotations

import asyncio
from dataclasses import replace

from runtime.events import RunCompleted
from runtime.journal import Started
from runtime.journal.store import Store
from tests.contract.test_stored_interrupts import opening
from tests.stores import Home


async def begun(store: Store, run_id: str = "run_1", *, over: bool = True, delivers: bool = True) -> None:
    """A run of which somebody is to be told, and which is over."""
    answer = await store.begin_run(replace(opening(run_id, f"s of {run_id}"), delivers=delivers))
    assert isinstance(answer, Started)
    if over:
        await end(store, run_id)


async def end(store: Store, run_id: str = "run_1") -> None:
    run = await store.find_run(run_id)
    assert run is not None
    await store.append(run_id, run.fence, run.last_seq, [RunCompleted()], 0)


async def test_a_delivery_is_due_when_its_run_is_over(store: Store):
    await begun(store, over=False)
    assert (await store.due_deliveries(10), await store.claim_delivery("run_1", 5)) == ([], None)
    await end(store)
    assert await store.due_deliveries(10) == ["run_1"]
    assert await store.claim_delivery("run_1", 5) == 1


async def test_a_run_of_which_nobody_is_to_be_told_is_never_due(store: Store):
    await begun(store, delivers=False)
    assert (await store.due_deliveries(10), await store.claim_delivery("run_1", 5)) == ([], None)
    await store.put_off_delivery("run_1", 0)
    assert await store.due_deliveries(10) == []


async def test_what_is_claimed_is_left_alone_and_due_again_when_the_claim_has_ended(home: Home):
    store = home.store()
    await store.open()
    await begun(store)
    assert await store.claim_delivery("run_1", 5) == 1
    assert (await store.due_deliveries(10), await store.claim_delivery("run_1", 5)) == ([], None)
    await home.pass_time(6)
    assert await store.due_deliveries(10) == ["run_1"]
    assert await store.claim_delivery("run_1", 5) == 2
    await store.close()


async def test_what_was_put_off_is_due_again_later(home: Home):
    store = home.store()
    await store.open()
    await begun(store)
    assert await store.claim_delivery("run_1", 1) == 1
    await store.put_off_delivery("run_1", 30)
    await home.pass_time(20)
    assert await store.due_deliveries(10) == []
    await home.pass_time(11)
    assert await store.claim_delivery("run_1", 1) == 2
    await store.close()


async def test_what_is_done_is_never_due_again(store: Store):
    await begun(store)
    await store.claim_delivery("run_1", 0)
    await store.end_delivery("run_1")
    await store.put_off_delivery("run_1", 0)
    assert (await store.due_deliveries(10), await store.claim_delivery("run_1", 5)) == ([], None)


async def test_of_many_who_want_it_one_has_it(store: Store):
    await begun(store)
    assert sorted(await asyncio.gather(*(store.claim_delivery("run_1", 5) for _ in range(8))), key=str) == [
        1,
        *[None] * 7,
    ]


async def test_no_more_are_told_than_were_asked_for(store: Store):
    for number in range(3):
        await begun(store, f"run_{number}")
    assert len(await store.due_deliveries(2)) == 2
    assert sorted(await store.due_deliveries(5)) == ["run_0", "run_1", "run_2"]


async def test_deliveries_survive_a_restart(home: Home):
    store = home.store()
    await store.open()
    await begun(store)
    await store.close()
    again = home.store()
    await again.open()
    assert await again.due_deliveries(5) == ["run_1"]
    await again.close()
