"""The catalogue's promises, held by every store: lists that do not shift, hidden sessions, keys that are used once."""

from __future__ import annotations

import asyncio
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.errors import NotFound, StoreError
from runtime.events import Event, RunCompleted, RunStarted
from runtime.journal import Begun, Idempotency, KeyReused, Opening, Replay, Session, Started
from runtime.journal.catalogue import Owner, Place, RunFilter, SessionChange, SessionFilter
from runtime.journal.memory import MemoryJournal
from runtime.journal.store import Store
from runtime.run import QUEUED, RUNNING, SUCCEEDED, RunRecord

NOW = 1_750_000_000_000
ME = Owner("-", "me")
YOU = Owner("-", "you")
STARTED = RunStarted(NOW, "r1", "assistant", "0" * 64, [])
DONE = RunCompleted("msg_1")
EVERY = RunFilter()


def session(name: str, created_at: int = NOW, owner: Owner = ME) -> Session:
    return Session(owner.tenant_id, owner.owner_id, name, f"thread of {name}", "assistant", None, created_at)


def opening(
    run_id: str = "run_1",
    name: str | None = "s1",
    *,
    base: int = 0,
    events: list[Event] | None = None,
    created_at: int = NOW,
    owner: Owner = ME,
    root: str | None = None,
    parent: str | None = None,
    key: Idempotency | None = None,
    found: bool = False,
) -> Opening:
    """A run in the session `name` (a child without one); `found` says that the session was found before."""
    thread = f"thread of {name}" if name else f"thread of {run_id}"
    run = RunRecord(
        run_id,
        owner.tenant_id,
        owner.owner_id,
        thread,
        name,
        "assistant",
        run_id,
        "d1",
        1,
        QUEUED,
        base,
        0,
        1,
        root or run_id,
        created_at,
        parent,
    )
    new = session(name, created_at, owner) if name and not found else None
    return Opening(run, new, [STARTED] if events is None else events, created_at, idempotency=key)


async def begun(store: Store, wanted: Opening) -> RunRecord:
    answer = await store.begin_run(wanted)
    assert isinstance(answer, Started)
    return answer.run


async def ended(store: Store, run: RunRecord) -> None:
    await store.append(run.run_id, run.fence, run.last_seq, [DONE], NOW + 1)


def key(name: str = "k", request: str = "q1", message: str = "m1") -> Idempotency:
    return Idempotency(name, request, message)


async def names(store: Store, owner: Owner = ME) -> list[str]:
    return [session.session_id for session in await store.list_sessions(owner, None, 100)]


async def run_ids(store: Store, wanted: RunFilter = EVERY, owner: Owner = ME) -> list[str]:
    return [run.run_id for run in await store.list_runs(owner, wanted, None, 100)]


# --- sessions -----------------------------------------------------------------------------------------------------


async def test_a_session_is_there_before_its_first_run_and_takes_one(store: Store):
    await store.add_session(session("s1"))
    assert await store.find_session("-", "me", "s1") == session("s1")
    run = await begun(store, opening(found=True))
    assert run.status == RUNNING
    assert await names(store) == ["s1"]


async def test_an_id_that_is_taken_is_refused_and_nothing_changes(store: Store):
    await store.add_session(session("s1"))
    with pytest.raises(StoreError) as refusal:
        await store.add_session(replace(session("s1"), thread_id="another", title="another"))
    assert refusal.value.code == "unstorable"
    assert await store.find_session("-", "me", "s1") == session("s1")
    await store.add_session(session("s2"))


async def test_sessions_are_listed_from_the_newest_to_the_oldest_and_of_one_owner(store: Store):
    for name, created_at in (("a", NOW), ("c", NOW + 2), ("b1", NOW + 1), ("b2", NOW + 1)):
        await store.add_session(session(name, created_at))
    await store.add_session(session("theirs", NOW + 5, YOU))
    await begun(store, opening("run_1", "by a run", created_at=NOW + 9))
    assert await names(store) == ["by a run", "c", "b2", "b1", "a"]
    assert await names(store, YOU) == ["theirs"]
    assert await names(store, Owner("other tenant", "me")) == []


async def test_pages_do_not_shift_while_sessions_are_added_and_hidden(store: Store):
    for number in range(7):
        await store.add_session(session(f"s{number}", NOW + number // 2))
    seen: list[str] = []
    place: Place | None = None
    for turn in range(10):
        page = await store.list_sessions(ME, place, 2)
        if not page:
            break
        seen += [each.session_id for each in page]
        place = Place(page[-1].created_at, page[-1].session_id)
        await store.add_session(session(f"new{turn}", NOW + 100 + turn))
        await store.hide_session(ME, page[-1].session_id, NOW)
    assert seen == ["s6", "s5", "s4", "s3", "s2", "s1", "s0"]


async def test_a_session_is_renamed_and_given_another_agent_each_by_itself(store: Store):
    await store.add_session(session("s1"))
    titled = await store.change_session(ME, "s1", SessionChange(title="about milk", retitle=True))
    assert titled == replace(session("s1"), title="about milk")
    moved = await store.change_session(ME, "s1", SessionChange(agent_id="other"))
    assert moved == replace(session("s1"), title="about milk", agent_id="other")
    assert await store.change_session(ME, "s1", SessionChange()) == moved
    bare = await store.change_session(ME, "s1", SessionChange(retitle=True))
    assert bare == replace(session("s1"), agent_id="other")
    assert await store.find_session("-", "me", "s1") == bare


async def test_a_session_is_put_away_and_taken_back(store: Store):
    await store.add_session(session("s1"))
    away = await store.change_session(ME, "s1", SessionChange(archived=True, at=NOW + 1))
    assert away == replace(session("s1"), archived_at=NOW + 1, changed_at=NOW + 1)
    again = replace(session("s1"), title="x", archived_at=NOW + 1, changed_at=NOW + 2)
    titles = SessionChange(archived=True, title="x", retitle=True, at=NOW + 2)
    assert await store.change_session(ME, "s1", titles) == again
    assert await store.change_session(ME, "s1", SessionChange(agent_id="other")) == replace(again, agent_id="other")
    back = await store.change_session(ME, "s1", SessionChange(archived=False, at=NOW + 3))
    assert back == replace(session("s1"), title="x", agent_id="other", changed_at=NOW + 3)
    assert await store.find_session("-", "me", "s1") == back
    assert await names(store) == ["s1"]


async def test_a_title_can_be_given_where_there_is_none_and_not_over_another(store: Store):
    await store.add_session(session("s1"))
    change = SessionChange(title="first", retitle=True, if_untitled=True)
    assert await store.change_session(ME, "s1", change) == replace(session("s1"), title="first")
    assert await store.change_session(ME, "s1", replace(change, title="second")) == replace(
        session("s1"), title="first"
    )


async def test_a_session_is_called_by_its_first_words_until_it_has_a_title(store: Store):
    wanted = opening()
    assert wanted.session is not None
    run = await begun(store, replace(wanted, session=replace(wanted.session, default_title="first words")))
    await ended(store, run)
    await store.add_session(session("s2"))
    for words in ("other words", "later words"):
        first = opening(f"run of {words}", "s2", found=True, base=0 if words == "other words" else 2)
        await ended(store, await begun(store, replace(first, default_title=words)))
    found = [await store.find_session("-", "me", name) for name in ("s1", "s2")]
    assert [each and each.name for each in found] == ["first words", "other words"]
    titled = await store.change_session(ME, "s1", SessionChange(title="mine", retitle=True))
    assert titled is not None
    assert (titled.name, titled.default_title) == ("mine", "first words")


async def test_sessions_by_their_last_use_have_the_last_used_first(store: Store):
    for number in range(4):
        await store.add_session(session(f"s{number}", NOW + number))
    await store.add_session(session("theirs", NOW + 5, YOU))
    await store.change_session(ME, "s3", SessionChange(agent_id="other"))
    await ended(store, await begun(store, opening("run_1", "s0", found=True, created_at=NOW + 10)))
    await begun(store, opening("run_2", "s0", found=True, base=2, created_at=NOW + 20))
    await begun(store, opening("run_3", "s2", found=True, created_at=NOW + 15))
    await store.change_session(ME, "s2", SessionChange(archived=True, at=NOW + 16))
    await store.hide_session(ME, "s1", NOW + 17)

    async def used(wanted: SessionFilter, before: Place | None = None, limit: int = 9) -> list[tuple[str, int | None]]:
        page = await store.list_used_sessions(ME, wanted, before, limit)
        return [(each.session.session_id, each.last_run_at) for each in page]

    assert await used(SessionFilter()) == [("s0", NOW + 20), ("s3", None)]
    everything = [("s0", NOW + 20), ("s2", NOW + 15), ("s3", None)]
    assert await used(SessionFilter(archived=True)) == everything
    assert await used(SessionFilter("assistant", archived=True)) == everything[:2]
    assert await used(SessionFilter("other")) == everything[2:]
    paged: list[tuple[str, int | None]] = []
    place: Place | None = None
    while page := await store.list_used_sessions(ME, SessionFilter(archived=True), place, 1):
        place = page[-1].place
        paged += [(each.session.session_id, each.last_run_at) for each in page]
    assert paged == everything


async def test_nobody_changes_or_hides_what_is_not_theirs(store: Store):
    await store.add_session(session("s1"))
    assert await store.change_session(YOU, "s1", SessionChange(agent_id="other")) is None
    assert await store.change_session(ME, "s2", SessionChange(agent_id="other")) is None
    assert await store.hide_session(YOU, "s1", NOW) is None
    assert await store.hide_session(ME, "s2", NOW) is None
    assert await store.find_session("-", "me", "s1") == session("s1")


# --- hiding -------------------------------------------------------------------------------------------------------


async def test_hiding_names_the_runs_that_are_at_work_and_happens_once(store: Store):
    first = await begun(store, opening("run_1"))
    await ended(store, first)
    second = await begun(store, opening("run_2", base=2, found=True))
    assert await store.hide_session(ME, "s1", NOW + 5) == [second]
    assert await store.hide_session(ME, "s1", NOW + 6) is None
    hidden = await store.find_session("-", "me", "s1")
    assert hidden is not None
    assert hidden.hidden_at == NOW + 5
    assert await store.change_session(ME, "s1", SessionChange(agent_id="other")) is None


async def test_what_is_below_a_hidden_session_is_in_no_list(store: Store):
    root = await begun(store, opening("run_1", "s1"))
    await begun(store, opening("run_2", None, root="run_1", parent="run_1"))
    await begun(store, opening("run_3", "s2"))
    assert await run_ids(store) == ["run_3", "run_2", "run_1"]
    assert await store.find_visible_run("run_1") == root
    await store.hide_session(ME, "s1", NOW)
    assert await names(store) == ["s2"]
    assert await run_ids(store) == ["run_3"]
    assert await run_ids(store, RunFilter("s1")) == []
    for run_id in ("run_1", "run_2", "run_9"):
        assert await store.find_visible_run(run_id) is None
    assert await store.find_run("run_1") == root  # whoever performs it goes on
    await ended(store, root)


async def test_no_run_begins_in_a_hidden_session_whether_it_was_found_before_or_not(store: Store):
    await ended(store, await begun(store, opening("run_1")))
    await store.hide_session(ME, "s1", NOW)
    late = opening("run_2", base=2, found=True)
    unaware = opening("run_3")
    elsewhere = replace(unaware, run=replace(unaware.run, thread_id="another thread"))
    for wanted in (late, unaware, elsewhere, opening("run_1")):
        with pytest.raises(NotFound):
            await store.begin_run(wanted)
    assert await store.find_run("run_2") is None


# --- runs ---------------------------------------------------------------------------------------------------------


async def test_runs_are_listed_by_session_and_by_status(store: Store):
    await ended(store, await begun(store, opening("run_1", "s1", created_at=NOW)))
    await begun(store, opening("run_2", "s1", base=2, found=True, created_at=NOW + 1))
    await begun(store, opening("run_3", "s2", created_at=NOW + 2))
    await begun(store, opening("run_4", "s3", created_at=NOW + 3, owner=YOU))
    assert await run_ids(store) == ["run_3", "run_2", "run_1"]
    assert await run_ids(store, RunFilter("s1")) == ["run_2", "run_1"]
    assert await run_ids(store, RunFilter(statuses=frozenset({RUNNING}))) == ["run_3", "run_2"]
    assert await run_ids(store, RunFilter("s1", frozenset({SUCCEEDED, QUEUED}))) == ["run_1"]
    assert await run_ids(store, RunFilter("s3")) == []
    assert await run_ids(store, RunFilter(statuses=frozenset())) == []


async def test_the_pages_of_runs_are_the_list(store: Store):
    for number in range(5):
        await begun(store, opening(f"run_{number}", f"s{number}", created_at=NOW + number // 3))
    seen: list[str] = []
    place: Place | None = None
    while page := await store.list_runs(ME, EVERY, place, 2):
        seen += [run.run_id for run in page]
        place = Place(page[-1].created_at, page[-1].run_id)
    assert seen == await run_ids(store) == ["run_4", "run_3", "run_2", "run_1", "run_0"]


async def test_a_tree_is_its_root_and_all_below_in_the_order_of_their_beginning(store: Store):
    await begun(store, opening("run_1", "s1"))
    await begun(store, opening("run_2", None, root="run_1", parent="run_1"))
    await begun(store, opening("run_3", "s2"))
    await begun(store, opening("run_4", None, root="run_1", parent="run_2"))
    assert [run.run_id for run in await store.runs_of_tree("run_1")] == ["run_1", "run_2", "run_4"]
    assert [run.run_id for run in await store.runs_of_tree("run_3")] == ["run_3"]
    assert await store.runs_of_tree("run_9") == []


# --- idempotency keys ---------------------------------------------------------------------------------------------


async def test_a_key_that_was_used_gives_its_run_for_the_same_request_and_none_for_another(store: Store):
    run = await begun(store, opening("run_1", key=key()))
    again = opening("run_2", found=True, key=key(message="m2"))
    assert await store.begin_run(again) == Replay(run, "m1")
    assert await store.begin_run(replace(again, idempotency=key(request="q2"))) == KeyReused(run)
    await ended(store, run)
    over = await store.find_run("run_1")
    assert over is not None
    assert await store.begin_run(again) == Replay(over, "m1")  # and not moved, though the thread has
    assert await store.find_run("run_2") is None


async def test_a_key_belongs_to_its_owner(store: Store):
    await begun(store, opening("run_1", "s1", key=key()))
    await begun(store, opening("run_2", "s2", key=key(request="q2"), owner=YOU))
    mine, theirs = await store.find_keyed(ME, "k"), await store.find_keyed(YOU, "k")
    assert mine is not None
    assert theirs is not None
    assert (mine.run.run_id, mine.request_digest, mine.message_id) == ("run_1", "q1", "m1")
    assert (theirs.run.run_id, theirs.request_digest) == ("run_2", "q2")
    assert await store.find_keyed(ME, "another") is None


async def test_a_refused_run_leaves_its_key_unused(store: Store):
    first = await begun(store, opening("run_1"))
    await store.begin_run(opening("run_2", found=True, base=1, key=key()))  # busy
    assert await store.find_keyed(ME, "k") is None
    await ended(store, first)
    await store.begin_run(opening("run_2", found=True, base=1, key=key()))  # moved
    assert await store.find_keyed(ME, "k") is None
    await begun(store, opening("run_2", found=True, base=2, key=key()))
    assert await store.find_keyed(ME, "k") is not None


async def test_of_twins_with_one_key_one_begins_even_on_two_threads(store: Store):
    twins = [opening(f"run_{n}", f"s{n}", key=key(message=f"m{n}")) for n in range(8)]
    answers: list[Begun] = await asyncio.gather(*(store.begin_run(twin) for twin in twins))
    [run] = [answer.run for answer in answers if isinstance(answer, Started)]
    assert all(answer.run.run_id == run.run_id for answer in answers if isinstance(answer, Replay))
    assert sum(isinstance(answer, Replay) for answer in answers) == 7
    assert await run_ids(store) == [run.run_id]


# --- always -------------------------------------------------------------------------------------------------------


@given(st.lists(st.integers(0, 5), max_size=20), st.integers(1, 4))
def test_pages_of_any_size_are_the_whole_list_once(ages: list[int], limit: int):
    async def turn_pages() -> None:
        store = MemoryJournal()
        for number, age in enumerate(ages):
            await store.add_session(session(f"s{number:02}", NOW + age))
        seen: list[str] = []
        place: Place | None = None
        while page := await store.list_sessions(ME, place, limit):
            assert len(page) <= limit
            seen += [each.session_id for each in page]
            place = Place(page[-1].created_at, page[-1].session_id)
        assert seen == await names(store)
        assert len(seen) == len(ages)

    asyncio.run(turn_pages())
