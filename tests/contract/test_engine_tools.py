"""Tools in a run: who runs beside whom, in what order the model reads of it, and what becomes of the shared state."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from runtime import events as e
from runtime.items import FunctionCall, FunctionCallOutput
from runtime.state_delta import apply
from runtime.testing import calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import Tool, ToolError, tool
from tests.contract.workshop import only, types, workshop


def outputs(events: list[e.Event]) -> list[tuple[str, Any, str]]:
    """Each call's output in the order of the facts: the call's id, its result and its kind."""
    return [(done.tool_call_id, done.result, done.kind) for done in only(events, e.ToolCallCompleted)]


async def test_parallel_tools_really_overlap_and_the_model_reads_their_outputs_in_call_order():
    first_is_here, second_is_done = asyncio.Event(), asyncio.Event()

    @tool(parallel=True)
    async def first() -> str:
        first_is_here.set()
        await second_is_done.wait()
        return "first"

    @tool(parallel=True)
    async def second() -> str:
        await first_is_here.wait()
        second_is_done.set()
        return "second"

    async with workshop(calls(("first", "{}"), ("second", "{}")), says("Fine."), tools=[first, second]) as shop:
        events = await shop.run()
        assert outputs(events) == [("call_1", "second", "result"), ("call_0", "first", "result")]
        assert shop.script.prompts[1][1:] == [
            FunctionCall("call_0", "first", "{}", provider="testing"),
            FunctionCall("call_1", "second", "{}", provider="testing"),
            FunctionCallOutput("call_0", "first", "first", is_error=False),
            FunctionCallOutput("call_1", "second", "second", is_error=False),
        ]


async def test_one_tool_that_is_not_parallel_makes_the_calls_of_the_round_follow_one_another():
    at_work: list[str] = []
    most = 0

    async def busy(name: str) -> str:
        nonlocal most
        at_work.append(name)
        most = max(most, len(at_work))
        for _ in range(5):
            await asyncio.sleep(0)
        at_work.remove(name)
        return name

    @tool(parallel=True)
    async def quick(name: str) -> str:
        return await busy(name)

    @tool
    async def alone(name: str) -> str:
        return await busy(name)

    made = calls(("quick", '{"name": "a"}'), ("alone", '{"name": "b"}'), ("quick", '{"name": "c"}'))
    async with workshop(made, says("Fine."), tools=[quick, alone]) as shop:
        events = await shop.run()
        assert most == 1
        assert [result for _, result, _ in outputs(events)] == ["a", "b", "c"]
        steps = [event for event in types(events) if event in ("tool.execution.started", "tool.call.completed")]
        assert steps == ["tool.execution.started", "tool.call.completed"] * 3


async def test_a_tool_that_fails_tells_the_model_and_the_run_goes_on():
    def fails() -> str:
        raise RuntimeError("disk on fire")

    def refuses() -> str:
        raise ToolError("Only on Mondays.")

    made = calls(("fails", "{}"), ("refuses", "{}"), ("unknown", "{}"), ("fails", "[]"))
    async with workshop(made, says("I see."), tools=[fails, refuses]) as shop:
        events = await shop.run()
        assert types(events)[-1] == "run.completed"
        told = {call: (result, kind) for call, result, kind in outputs(events)}
        assert told["call_0"] == ("RuntimeError: disk on fire", "error")
        assert told["call_1"] == ("Only on Mondays.", "error")
        assert told["call_2"][1] == told["call_3"][1] == "denied"
        begun = [started.tool_call_id for started in only(events, e.ToolExecutionStarted)]
        assert begun == ["call_0", "call_1"]
        prompt = [item.call_id for item in shop.script.prompts[1] if isinstance(item, FunctionCallOutput)]
        assert prompt == ["call_0", "call_1", "call_2", "call_3"]


async def test_a_tool_is_given_the_same_key_as_its_execution_has_in_the_journal():
    keys: list[str] = []

    def work(ctx: ToolContext) -> str:
        keys.append(ctx.idempotency_key)
        return ""

    async with workshop(calls(("work", "{}")), tools=[work]) as shop:
        events = await shop.run()
        assert [started.idempotency_key for started in only(events, e.ToolExecutionStarted)] == keys


# --- the shared state ---------------------------------------------------------------------------------------------


@tool(parallel=True)
async def append(ctx: ToolContext, text: str) -> str:
    """Append to a list, after every call of the round has read the state."""
    await asyncio.sleep(0)
    ctx.state.setdefault("list", []).append(text)
    return "ok"


@tool(parallel=True)
async def put(ctx: ToolContext, key: str, value: int) -> str:
    """Set a member of the state."""
    await asyncio.sleep(0)
    ctx.state[key] = value
    return "ok"


@tool(parallel=True)
async def remove(ctx: ToolContext, key: str) -> str:
    """Remove a member of the state."""
    await asyncio.sleep(0)
    del ctx.state[key]
    return "ok"


@tool(parallel=True)
async def change(ctx: ToolContext, index: int, text: str) -> str:
    """Change an entry of the list."""
    await asyncio.sleep(0)
    ctx.state["list"][index] = text
    return "ok"


@tool(parallel=True)
async def put_and_fail(ctx: ToolContext, key: str) -> str:
    """Change the state, then fail."""
    ctx.state[key] = "half done"
    raise RuntimeError("no")


async def state_after(made: list[Any], before: Any) -> tuple[Any, list[str]]:
    """The state when tools have worked on `before`, and the kinds of the outputs."""
    async with workshop(made, says("Fine."), tools=[append, put, put_and_fail, remove, change]) as shop:
        run = await shop.begin(facts=[e.StateSnapshot(before, "client")])
        events = await shop.follow(run)
        assert types(events)[-1] == "run.completed"
        state = (await shop.supervisor.thread(run.thread_id)).state
        told: Any = before
        for event in events:
            if isinstance(event, e.StateDelta):
                told = apply(told, event.delta)
            elif isinstance(event, e.StateSnapshot):
                told = event.snapshot
        assert told == state, "a reader of the facts has the same state"
        return state, [kind for _, _, kind in sorted(outputs(events))]


@pytest.mark.parametrize("before", [{}, {"list": []}, {"list": ["0"]}], ids=["no list", "an empty list", "a list"])
async def test_two_parallel_tools_that_append_to_one_list_both_have_their_entry(before: Any):
    made = calls(("append", '{"text": "a"}'), ("append", '{"text": "b"}'))
    assert await state_after(made, before) == ({"list": [*before.get("list", []), "a", "b"]}, ["result", "result"])


async def test_changes_of_different_members_are_all_kept():
    made = calls(("put", '{"key": "a", "value": 1}'), ("put", '{"key": "b", "value": 2}'), ("append", '{"text": "c"}'))
    assert await state_after(made, {}) == ({"a": 1, "b": 2, "list": ["c"]}, ["result"] * 3)


async def test_two_tools_that_want_different_things_of_one_member_cannot_both_have_it():
    made = calls(("put", '{"key": "a", "value": 1}'), ("put", '{"key": "a", "value": 2}'))
    assert await state_after(made, {"a": 0}) == ({"a": 1}, ["result", "error"])
    assert await state_after(made, {}) == ({"a": 1}, ["result", "error"])


async def test_two_tools_that_want_the_same_of_a_member_do_not_disagree():
    made = calls(("put", '{"key": "a", "value": 1}'), ("put", '{"key": "a", "value": 1}'))
    assert await state_after(made, {"a": 0}) == ({"a": 1}, ["result", "result"])


async def test_what_one_tool_removes_another_cannot_change():
    made = calls(("remove", '{"key": "a"}'), ("put", '{"key": "a", "value": 2}'))
    assert await state_after(made, {"a": 0, "b": 0}) == ({"b": 0}, ["result", "error"])


async def test_entries_of_a_list_may_be_changed_while_another_tool_appends():
    made = calls(("change", '{"index": 0, "text": "A"}'), ("append", '{"text": "c"}'))
    assert await state_after(made, {"list": ["a", "b"]}) == ({"list": ["A", "b", "c"]}, ["result", "result"])


async def test_what_a_failing_tool_did_to_the_state_never_happened():
    made = calls(("put_and_fail", '{"key": "a"}'), ("put", '{"key": "b", "value": 2}'))
    assert await state_after(made, {}) == ({"b": 2}, ["error", "result"])


async def test_a_state_that_is_not_json_is_made_json():
    def odd(ctx: ToolContext) -> str:
        ctx.state["when"] = {float("nan"), 1}
        ctx.state["text"] = "\ud800"
        return "ok"

    async with workshop(calls(("odd", "{}")), tools=[odd]) as shop:
        run = await shop.begin()
        assert types(await shop.follow(run))[-1] == "run.completed"
        assert (await shop.supervisor.thread(run.thread_id)).state["text"] == "\ufffd"


class Untold:
    """What cannot even be printed."""

    def __str__(self) -> str:
        raise ValueError("no words for it")

    __repr__ = __str__


@tool
def leave_what_cannot_be_told(ctx: ToolContext) -> str:
    """Put something into the state that cannot be printed."""
    ctx.state["odd"] = Untold()
    return "ok"


@tool
async def tie_a_knot(ctx: ToolContext) -> str:
    """Put the state into itself."""
    ctx.state["knot"] = ctx.state
    return "ok"


@pytest.mark.parametrize(
    ("odd", "words"), [(leave_what_cannot_be_told, "no words for it"), (tie_a_knot, "recursion")], ids=["words", "knot"]
)
async def test_a_state_that_cannot_be_told_fails_its_call_and_nothing_else(odd: Tool, words: str):
    made = calls((odd.name, "{}"), ("put", '{"key": "b", "value": 2}'))
    async with workshop(made, says("Fine."), tools=[odd, put]) as shop:
        run = await shop.begin()
        events = await shop.follow(run)
        assert types(events)[-1] == "run.completed"
        told = {call: (result, kind) for call, result, kind in outputs(events)}
        assert (told["call_0"][1], told["call_1"]) == ("error", ("ok", "result"))
        assert words in told["call_0"][0]
        assert (await shop.supervisor.thread(run.thread_id)).state == {"b": 2}
