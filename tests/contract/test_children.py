"""Child runs: work that a tool hands to another agent, each a run of its own below its parent."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import pytest

from runtime import events as e
from runtime.agent import Agent
from runtime.budget import Budget
from runtime.canonical import JsonObject
from runtime.items import FunctionCallOutput
from runtime.journal.store import Store
from runtime.limits import Limits
from runtime.run import CANCELLED, FAILED, INTERRUPTED, SUCCEEDED, RunRecord
from runtime.samples import Completed
from runtime.supervisor import Supervisor
from runtime.testing import Line, ScriptedProvider, calls, cut, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import ToolError, tool
from tests.contract.workshop import Workshop, only, types, until, workshop
from tests.stores import PostgresHome

ASKS = calls(("ask", "{}"))
USAGE = {"input_tokens": 3, "output_tokens": 2}


def helper(*rounds: Iterable[Line], name: str = "helper", **members: Any) -> Agent:
    """Another agent, with a model that plays these rounds."""
    return Agent(name, model=ScriptedProvider(*rounds), **members)


def asking_tool(agent: Agent | str, *prompts: str, **of_delegate: Any) -> Any:
    """A tool that hands these prompts on, all at once, and returns what came of them."""

    @tool
    async def ask(ctx: ToolContext) -> list[Any]:
        """Ask somebody."""
        asked = (ctx.delegate(agent, prompt, **of_delegate) for prompt in prompts or ("Find out",))
        return list(await asyncio.gather(*asked))

    return ask


async def tree_of(shop: Workshop, root: RunRecord) -> list[RunRecord]:
    return await shop.supervisor.tree(root)


async def told(shop: Workshop, root: RunRecord) -> list[e.Record]:
    """Everything that a reader of the tree is given."""
    return await followed(shop.supervisor, root.run_id)


async def followed(supervisor: Supervisor, root_run_id: str) -> list[e.Record]:
    cursor = supervisor.follow_tree(root_run_id)
    given: list[e.Record] = []
    try:
        async with asyncio.timeout(10):
            while records := await cursor.next():
                given += records
    finally:
        cursor.close()
    return given


def output(facts: Iterable[e.Event]) -> e.ToolCallCompleted:
    """The one output of the run's one call."""
    (found,) = only(facts, e.ToolCallCompleted)
    return found


# --- what comes of it ---------------------------------------------------------------------------------------------


async def test_the_final_text_of_the_child_is_what_the_tool_gets():
    async with workshop(ASKS, tools=[asking_tool(helper(says("It is 42")), "What is it?")]) as shop:
        root = await shop.begin()
        facts = await shop.follow(root)
        assert output(facts).result == '["It is 42"]'
        (child,) = [run for run in await tree_of(shop, root) if run.run_id != root.run_id]
        assert (child.parent_run_id, child.root_run_id, child.session_id) == (root.run_id, root.run_id, None)
        assert (child.status, child.agent_id) == (SUCCEEDED, "helper")
        assert child.thread_id != root.thread_id
        begun, over = only(facts, e.ChildStarted)[0], only(facts, e.ChildCompleted)[0]
        assert (begun.run_id, begun.agent_name, begun.tool_call_id, begun.number) == (
            child.run_id,
            "helper",
            "call_0",
            1,
        )
        assert over == e.ChildCompleted(child.run_id, child.final_message_id)


async def test_the_child_sees_its_prompt_and_nothing_of_the_conversation():
    asked = helper(says("Yes"))
    async with workshop(ASKS, tools=[asking_tool(asked, "Only this")]) as shop:
        await shop.run("A secret")
        assert [item.content for item in asked.model.prompts[0]] == ["Only this"]  # type: ignore[union-attr]
        items = await shop.items()
        assert [type(item).__name__ for item in items] == [
            "Message",
            "FunctionCall",
            "FunctionCallOutput",
            "Message",
        ]


@dataclass
class Answer:
    number: int


async def test_a_child_that_owes_a_value_answers_with_it():
    asked = helper(calls(("final_answer", '{"number": 42}')), output_type=Answer)
    name = asked.output(asked.model).tools()[0].name  # type: ignore[union-attr, arg-type]
    asked = helper(calls((name, '{"number": 42}')), output_type=Answer)
    async with workshop(ASKS, tools=[asking_tool(asked)]) as shop:
        facts = await shop.run()
        assert output(facts).result == '[{"number":42}]'
        assert only(facts, e.ChildCompleted)[0].result == {"number": 42}


async def test_an_agent_among_the_tools_is_a_tool():
    asked = helper(says("Blue"), name="team/colours", description="Knows colours.")
    async with workshop(calls(("team_colours", '{"prompt": "Which?"}')), tools=[asked]) as shop:
        facts = await shop.run()
        assert output(facts).result == "Blue"
        spec = shop.script.requests_with_items[0]["tools"][0]
        assert (spec.name, spec.description) == ("team_colours", "Knows colours.")
        assert spec.parameters["required"] == ["prompt"]


async def test_an_agent_is_found_by_the_name_under_which_it_is_served():
    async with workshop(ASKS, says("from myself"), tools=[asking_tool("assistant")]) as shop:
        root = await shop.begin()
        assert output(await shop.follow(root)).result == '["from myself"]'
        assert [run.agent_id for run in await tree_of(shop, root)] == ["assistant", "assistant"]


async def test_an_agent_that_is_not_there_is_an_error_of_the_tool():
    async with workshop(ASKS, tools=[asking_tool("nobody")]) as shop:
        facts = await shop.run()
        assert (output(facts).result, output(facts).kind) == ("There is no agent 'nobody'.", "error")
        assert not only(facts, e.ChildStarted)


async def test_a_synchronous_tool_waits_for_its_child():
    asked = helper(says("Slowly"))

    @tool
    def ask(ctx: ToolContext) -> Any:
        """Ask."""
        return ctx.wait(ctx.delegate(asked, "How?"))

    async with workshop(ASKS, tools=[ask]) as shop:
        assert output(await shop.run()).result == "Slowly"


async def test_threads_that_wait_for_children_leave_their_place_to_them():
    @tool
    def work() -> str:
        """Work in a thread."""
        return "worked"

    asked = helper(calls(("work", "{}")), tools=[work])

    @tool
    def ask(ctx: ToolContext) -> Any:
        """Ask."""
        return ctx.wait(ctx.delegate(asked, "Work"))

    async with workshop(ASKS, tools=[ask]) as shop:
        shop.supervisor.live.tool_threads = type(shop.supervisor.live.tool_threads)(slots=1)
        assert output(await shop.run()).result == "done"


async def test_a_failure_of_the_child_is_the_tools_error_output():
    async with workshop(
        ASKS, says("I see"), tools=[asking_tool(helper([cut()]))], limits=Limits(model_retries=0)
    ) as shop:
        root = await shop.begin()
        facts = await shop.follow(root)
        assert output(facts).kind == "error"
        assert str(output(facts).result).startswith("helper failed.")
        assert types(facts)[-1] == "run.completed"
        assert [run.status for run in await tree_of(shop, root)] == [SUCCEEDED, FAILED]
        (failed,) = only(facts, e.ChildFailed)
        assert failed.error["code"]


async def test_a_tool_may_go_on_when_its_child_failed():
    asked = helper([cut()])

    @tool
    async def ask(ctx: ToolContext) -> str:
        """Ask."""
        try:
            return str(await ctx.delegate(asked, "Try"))
        except ToolError:
            return "then not"

    async with workshop(ASKS, tools=[ask], limits=Limits(model_retries=0)) as shop:
        assert output(await shop.run()).result == "then not"


async def test_a_child_that_its_call_does_not_wait_for_is_stopped():
    never = asyncio.Event()
    asked = helper([*says("So")[:1], never])
    left: list[asyncio.Task[Any]] = []

    @tool
    async def ask(ctx: ToolContext) -> str:
        """Ask, and do not care."""
        left.append(asyncio.create_task(ctx.delegate(asked, "Do")))
        await until(lambda: bool(asked.model.requests))  # type: ignore[union-attr]
        return "gone"

    async with workshop(ASKS, tools=[ask]) as shop:
        root = await shop.begin()
        facts = await shop.follow(root)
        assert output(facts).result == "gone"
        (over,) = only(facts, e.ChildCancelled)
        assert over.reason == "call_ended"
        assert types(facts).index("child.cancelled") < types(facts).index("run.completed")
        with pytest.raises(ToolError):
            await left[0]


# --- depth and budgets --------------------------------------------------------------------------------------------


async def test_work_is_not_handed_on_without_end():
    async with workshop(
        *[calls(("ask", "{}"))] * 3, tools=[asking_tool("assistant")], limits=Limits(max_depth=2, stop_grace_s=0.2)
    ) as shop:
        root = await shop.begin()
        await shop.follow(root)
        tree = await tree_of(shop, root)
        assert len(tree) == 3
        deepest = await shop.follow(tree[-1])
        assert output(deepest).kind == "error"
        assert "handed on too often" in str(output(deepest).result)


async def test_what_children_use_is_counted_in_the_tree():
    async with workshop(
        [*ASKS[:-1], Completed("tool_calls", USAGE)],
        says("So", usage=USAGE),
        tools=[asking_tool(helper(says("It", usage=USAGE)), "one", "two")],
    ) as shop:
        root = await shop.begin()
        await shop.follow(root)
        tree = await tree_of(shop, root)
        used = [[entry["input_tokens"] for entry in run.usage or []] for run in tree]
        assert used[0] == [9]  # its own two rounds, and the first child's: the second one's model counted nothing
        assert used[1:] in ([[3], []], [[], [3]])


@pytest.mark.requirement("R-198")
async def test_the_tokens_of_the_parent_are_those_of_its_tree():
    rounds = [[*calls(("again", "{}"))[:-1], Completed("tool_calls", USAGE)]] * 9
    asked = helper(*rounds)
    async with workshop(ASKS, tools=[asking_tool(asked)], budget=Budget(tokens=12)) as shop:
        root = await shop.begin()
        facts = await shop.follow(root)
        assert only(facts, e.ChildCancelled)[0].reason == "max_tokens"
        assert facts[-1] == e.RunCancelled("max_tokens", True, None, facts[-1].usage)  # type: ignore[union-attr]
        assert len(asked.model.requests) == 3  # type: ignore[union-attr]


async def test_a_child_may_have_a_stricter_budget_of_its_own():
    asked = helper(*[calls(("again", "{}"))] * 9)
    async with workshop(ASKS, tools=[asking_tool(asked, budget=Budget(rounds=2))]) as shop:
        facts = await shop.run()
        assert only(facts, e.ChildCancelled)[0].reason == "max_rounds"
        assert output(facts).result == "helper was stopped (max_rounds)."
        assert types(facts)[-1] == "run.completed"


# --- stopping -----------------------------------------------------------------------------------------------------


async def begun_children(shop: Workshop, root: RunRecord, count: int) -> list[RunRecord]:
    children: list[RunRecord] = []
    async with asyncio.timeout(10):
        while len(children) < count:
            await asyncio.sleep(0)
            children = [run for run in await tree_of(shop, root) if run.run_id != root.run_id]
    return children


async def test_cancelling_the_parent_cancels_all_below_it_first():
    never = asyncio.Event()
    deep = helper([*says("deep")[:1], never], name="deep")
    middle = helper(ASKS, name="middle", tools=[asking_tool(deep)])
    async with workshop(ASKS, tools=[asking_tool(middle)]) as shop:
        root = await shop.begin()
        await begun_children(shop, root, 2)
        await shop.supervisor.cancel(root.run_id, "user", 5)
        tree = await tree_of(shop, root)
        assert [run.status for run in tree] == [CANCELLED] * 3
        records = await told(shop, root)
        ends = [record.run_id for record in records if type(record.event) in e.TERMINAL]
        assert ends == [run.run_id for run in reversed(tree)]
        terminal = records[-1].event
        assert isinstance(terminal, e.RunCancelled)
        assert terminal.external_stop_confirmed
        facts = await shop.follow(root)
        assert only(facts, e.ChildCancelled)[0].reason == "parent_cancelled"


async def test_cancelling_one_child_leaves_its_parent_and_its_siblings_running():
    go = asyncio.Event()
    first, second = helper([go, *says("one")], name="first"), helper([go, *says("two")], name="second")

    @tool
    async def ask(ctx: ToolContext) -> list[str]:
        """Ask both."""
        both = await asyncio.gather(ctx.delegate(first, "1"), ctx.delegate(second, "2"), return_exceptions=True)
        return [str(each) for each in both]

    async with workshop(ASKS, tools=[ask]) as shop:
        root = await shop.begin()
        children = await begun_children(shop, root, 2)
        await shop.supervisor.cancel(children[0].run_id, "user", 5)
        go.set()
        facts = await shop.follow(root)
        assert [run.status for run in await tree_of(shop, root)] == [SUCCEEDED, CANCELLED, SUCCEEDED]
        assert "first was stopped (user)." in str(output(facts).result)
        assert "two" in str(output(facts).result)


async def test_a_tool_that_timed_out_stops_its_child():
    never = asyncio.Event()
    asked = helper([*says("so")[:1], never])

    @tool(timeout_s=0.05)
    async def ask(ctx: ToolContext) -> Any:
        """Ask."""
        return await ctx.delegate(asked, "Do")

    async with workshop(ASKS, tools=[ask]) as shop:
        root = await shop.begin()
        facts = await shop.follow(root)
        assert "timed out" in str(output(facts).result)
        assert [run.status for run in await tree_of(shop, root)] == [SUCCEEDED, CANCELLED]


async def test_a_shutdown_interrupts_the_whole_tree_and_its_root_last():
    never = asyncio.Event()
    async with workshop(ASKS, tools=[asking_tool(helper([*says("so")[:1], never]))]) as shop:
        root = await shop.begin()
        await begun_children(shop, root, 1)
        await shop.supervisor.drain(0)
        assert [run.status for run in await tree_of(shop, root)] == [INTERRUPTED, INTERRUPTED]
        records = await told(shop, root)
        assert records[-1].run_id == root.run_id
        assert [record.event_type for record in records if record.run_id == root.run_id][-4:] == [
            "child.interrupted",
            "tool.call.completed",
            "message.completed",
            "run.interrupted",
        ]


async def test_a_process_that_was_lost_takes_its_whole_tree(store: Store):
    """The next start closes the children first, and the parent says what became of them."""
    if not store.exclusive:
        pytest.skip("the next start of a shared store waits for the leases")
    never = asyncio.Event()
    deep = helper([*says("deep")[:1], never], name="deep")
    middle = helper(ASKS, name="middle", tools=[asking_tool(deep)])
    shop = Workshop(ASKS, tools=[asking_tool(middle)], journal=store)
    await shop.supervisor.start()
    root = await shop.begin()
    await begun_children(shop, root, 2)
    await until(lambda: len(deep.model.requests) == 1)  # type: ignore[union-attr]
    await shop.supervisor.live.stop()  # its tasks are gone, as those of a process that was killed
    await shop.supervisor._heartbeat.stop()

    again = Workshop(journal=store)
    await again.supervisor.start()
    tree = await again.supervisor.tree(root)
    assert [run.status for run in tree] == [INTERRUPTED] * 3
    records = await followed(again.supervisor, root.run_id)
    ends = [record.run_id for record in records if type(record.event) in e.TERMINAL]
    assert ends == [run.run_id for run in reversed(tree)]
    of_root = [record.event for record in records if record.run_id == root.run_id and record.event is not None]
    assert only(of_root, e.ChildInterrupted)
    assert output(of_root).kind == "indeterminate"
    assert [record.root_seq for record in records] == list(range(1, len(records) + 1))
    await again.supervisor.drain(0)
    await again.supervisor.stop()


# --- the tree as one stream ---------------------------------------------------------------------------------------


async def test_readers_of_the_tree_get_all_of_it_in_one_order_live_and_from_the_store():
    async with workshop(ASKS, tools=[asking_tool(helper(says("a b c"), says("d e f")), "one", "two", "three")]) as shop:
        root = await shop.begin()
        live, again = await asyncio.gather(told(shop, root), told(shop, root))
        stored = await told(shop, root)
        assert [record.root_seq for record in live] == list(range(1, len(live) + 1))
        assert live == again
        assert [(r.run_id, r.seq, r.root_seq, r.payload) for r in stored] == [
            (r.run_id, r.seq, r.root_seq, r.payload) for r in live
        ]
        assert len({record.run_id for record in live}) == 4
        assert await shop.supervisor.tree_end(root) == len(live)


async def test_a_run_without_children_numbers_itself():
    async with workshop(says("Hello")) as shop:
        root = await shop.begin()
        records = await told(shop, root)
        assert [record.root_seq for record in records] == [record.seq for record in records]
        assert await shop.supervisor.tree_end(root) == records[-1].seq


async def test_a_child_has_a_journal_of_its_own():
    async with workshop(ASKS, tools=[asking_tool(helper(says("It")), "Say it")]) as shop:
        root = await shop.begin()
        await shop.follow(root)
        child = (await tree_of(shop, root))[1]
        facts = await shop.follow(child)
        assert types(facts)[:3] == ["run.started", "message.completed", "message.started"]
        assert types(facts)[-1] == "run.completed"
        frozen: JsonObject = {"agent": child.agent_snapshot_checksum, "context": child.context_snapshot_checksum}
        assert all([await shop.journal.content(str(digest)) for digest in frozen.values()])


async def test_the_model_of_the_parent_gets_the_output_alone():
    async with workshop(ASKS, tools=[asking_tool(helper(says("It")), "Say it")]) as shop:
        await shop.run()
        outputs = [item for item in await shop.items() if isinstance(item, FunctionCallOutput)]
        assert [item.output for item in outputs] == ['["It"]']


# --- several processes --------------------------------------------------------------------------------------------


@pytest.mark.needs_postgres
async def test_a_tree_is_followed_from_another_process(postgres_home: PostgresHome):
    go = asyncio.Event()
    here, there = (
        Workshop(ASKS, tools=[asking_tool(helper([go, *says("a b")]), "one", "two")], journal=postgres_home.store()),
        (Workshop(journal=postgres_home.store())),
    )
    await here.supervisor.start()
    await there.supervisor.start()
    root = await here.begin()
    follows = asyncio.create_task(followed(there.supervisor, root.run_id))
    await begun_children(here, root, 2)
    there.supervisor.tail.elsewhere.heard(None)
    go.set()
    records = await followed(here.supervisor, root.run_id)
    assert [(r.run_id, r.seq, r.root_seq) for r in await follows] == [(r.run_id, r.seq, r.root_seq) for r in records]
    for shop in (here, there):
        await shop.supervisor.drain(0)
        await shop.supervisor.stop()


@pytest.mark.needs_postgres
async def test_another_process_closes_a_lost_tree_from_below(postgres_home: PostgresHome):
    never = asyncio.Event()
    here = Workshop(ASKS, tools=[asking_tool(helper([*says("so")[:1], never]))], journal=postgres_home.store())
    there = Workshop(journal=postgres_home.store())
    await here.supervisor.start()
    root = await here.begin()
    (child,) = await begun_children(here, root, 1)
    await here.supervisor.live.stop()
    await here.supervisor._heartbeat.stop()
    there.supervisor._reconciler._instance_id = "exec_2"  # both count their ids from 1
    await there.supervisor.start()
    held = await there.journal.find_run(root.run_id)
    assert held is not None
    assert not await there.supervisor.close_lost(held)  # the lease of neither has run out
    await postgres_home.pass_time(20)
    await there.supervisor._heartbeat.look_for_lost()
    records = await followed(there.supervisor, root.run_id)
    assert [r.run_id for r in records if type(r.event) in e.TERMINAL] == [child.run_id, root.run_id]
    assert [record.root_seq for record in records] == list(range(1, len(records) + 1))
    await there.supervisor.stop()
    await here.journal.close()
