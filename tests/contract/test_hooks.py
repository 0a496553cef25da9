"""Hooks: what they are told, what they may decide, what the journal says of it, and what becomes of one that fails."""

from __future__ import annotations

import asyncio
import copy
import threading
from collections.abc import Callable, Iterable
from typing import Any

import pytest

from agui_bridge import (
    ANONYMOUS,
    AfterRound,
    AfterTool,
    Agent,
    Answer,
    BeforeRound,
    BeforeTool,
    ChangeArguments,
    ChangeRequest,
    Deny,
    ReplaceResult,
    Respond,
    StopRun,
    after_round,
    after_tool,
    before_round,
    before_tool,
)
from runtime import events as e
from runtime.canonical import JsonObject, digest
from runtime.errors import ConfigurationError
from runtime.hooks import Hook, HookContext
from runtime.items import FunctionCallOutput, Message, ToolSpec
from runtime.limits import Limits
from runtime.samples import TextDelta
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.contract.workshop import only, types, until, workshop

sent: list[tuple[str, str]] = []


@tool
async def send(to: str, text: str = "Hi") -> str:
    """Send something."""
    sent.append((to, text))
    return f"sent to {to}"


@tool(parallel=True)
async def count(ctx: ToolContext, name: str) -> str:
    """Count in the shared state."""
    ctx.state[name] = ctx.state.get(name, 0) + 1
    return name


@pytest.fixture(autouse=True)
def _nothing_sent() -> None:
    sent.clear()


ONE = calls(("send", '{"to": "ann"}'))
TWO = calls(("send", '{"to": "ann"}'), ("send", '{"to": "bob"}'))


def facts(events: Iterable[e.Event]) -> list[JsonObject]:
    """What the journal says of hooks."""
    return [event.value for event in only(events, e.Custom) if event.name == "agui-bridge.hook"]


def outputs(events: Iterable[e.Event]) -> list[tuple[Any, str, bool]]:
    return [(done.result, done.kind, done.is_error) for done in only(events, e.ToolCallCompleted)]


def read_by_model(model: ScriptedProvider, request: int) -> list[Any]:
    return [item.output for item in model.prompts[request] if isinstance(item, FunctionCallOutput)]


# --- before a round -----------------------------------------------------------------------------------------------


async def test_a_request_is_changed_for_this_round_alone_and_the_journal_refers_to_what_was_sent():
    @before_round
    async def shorten(asked: BeforeRound) -> ChangeRequest | None:
        if asked.round == 2:
            return ChangeRequest(asked.items[:1], {"temperature": 0, "model": "other"}, "too long")
        return None

    async with workshop(ONE, says("Done."), says("Again."), tools=[send], hooks=[shorten]) as shop:
        events = await shop.run()
        started = only(events, e.RoundStarted)
        assert [one.request for one in started] == [
            {"digest": digest(request), "items": request["items"]} for request in shop.script.requests
        ]
        assert [one.model for one in started] == ["scripted-provider", "other"]
        assert shop.script.prompts[1] == [Message("user", "Hello")]
        assert shop.script.requests[1]["temperature"] == 0
        assert facts(events) == [
            {
                "hook": "shorten",
                "point": "before_round",
                "decision": "change_request",
                "round": 2,
                "reason": "too long",
                "changed": ["items", "model", "temperature"],
            }
        ]
        assert len(await shop.items()) == 4
        await shop.run("And now?")
        assert len(shop.script.prompts[2]) == 5


async def test_each_hook_sees_what_those_before_it_made_of_the_request():
    seen: list[Any] = []

    def more(word: str) -> Hook:
        @before_round
        def add(asked: BeforeRound) -> ChangeRequest:
            seen.append((len(asked.items), asked.options.get("stop")))
            return ChangeRequest([*asked.items, Message("user", word)], {"stop": word})

        return add

    async with workshop(says("Done."), hooks=[more("a"), more("b")]) as shop:
        await shop.run()
        assert seen == [(1, None), (2, "a")]
        assert [item.content for item in shop.script.prompts[0] if isinstance(item, Message)] == ["Hello", "a", "b"]
        assert shop.script.requests[0]["stop"] == "b"


async def test_what_a_hook_is_told_is_a_copy():
    @before_round
    def spoil(asked: BeforeRound) -> None:
        asked.options["model"] = "spoiled"

    @before_tool
    def spoil_too(call: BeforeTool) -> None:
        call.arguments["to"] = "nobody"

    async with workshop(ONE, says("Done."), tools=[send], hooks=[spoil, spoil_too]) as shop:
        await shop.run()
        assert shop.script.requests[0]["model"] == "scripted-provider"
        assert sent == [("ann", "Hi")]


async def test_a_hook_knows_whose_run_it_is_in_and_what_it_has_used():
    seen: list[Any] = []

    @before_round
    def look(asked: BeforeRound) -> None:
        context = asked.context
        seen.append((context.run.run_id, context.principal.id, context.forwarded_props, context.deps, asked.usage))
        assert asked.dialect == "scripted"

    usage = {"input_tokens": 3}
    async with workshop(says("a", usage=usage), hooks=[look], deps={"db": 1}) as shop:
        run = await shop.begin(forwarded_props={"tier": "free"})
        await shop.follow(run)
    assert seen == [(run.run_id, "anonymous", {"tier": "free"}, {"db": 1}, [])]


async def test_a_hook_sees_the_shared_state_and_cannot_change_it():
    seen: list[Any] = []

    @before_round
    def look(asked: BeforeRound) -> None:
        seen.append(copy.deepcopy(asked.state))
        asked.state["name"] = "spoiled"

    async with workshop(calls(("count", '{"name": "ann"}')), says("Done."), tools=[count], hooks=[look]) as shop:
        await shop.run()
    assert seen == [{}, {"ann": 1}]


async def test_a_hook_speaks_in_the_place_of_the_model():
    @before_round
    def stand_in(asked: BeforeRound) -> Respond | None:
        return Respond("I am closed.", reason="night") if asked.round == 1 else None

    async with workshop(hooks=[stand_in]) as shop:
        events = await shop.run()
        assert shop.script.requests == []
        assert await shop.items() == [Message("user", "Hello"), Message("assistant", "I am closed.", "final_response")]
    assert types(events)[-1] == "run.completed"
    (round_,) = only(events, e.RoundCompleted)
    assert (round_.finish, round_.runtime_role, round_.usage) == ("stop", "final_response", None)
    assert [one.model for one in only(events, e.RoundStarted)] == ["hook:stand_in"]
    said = {"hook": "stand_in", "point": "before_round", "decision": "respond", "round": 1, "reason": "night"}
    assert facts(events) == [said]


async def test_calls_that_a_hook_makes_are_run_and_the_model_is_asked_what_comes_of_them():
    @before_round
    def write_first(asked: BeforeRound) -> Respond | None:
        return Respond(calls=[("send", {"to": "ann"}), ("send", {"to": "bob"})]) if asked.round == 1 else None

    told: list[AfterRound] = []

    @after_round
    def listen(round_: AfterRound) -> None:
        told.append(round_)

    async with workshop(says("Both know."), tools=[send], hooks=[write_first, listen]) as shop:
        events = await shop.run()
        assert read_by_model(shop.script, 0) == ["sent to ann", "sent to bob"]
    assert sent == [("ann", "Hi"), ("bob", "Hi")]
    assert [(len(one.calls), one.text) for one in told] == [(2, ""), (0, "Both know.")]
    assert len({one.tool_call_id for one in only(events, e.ToolCallCommitted)}) == 2


async def test_a_hook_calls_a_tool_of_the_page_and_the_run_waits_for_it():
    @before_round
    def ask_the_page(asked: BeforeRound) -> Respond | None:
        answered = any(isinstance(item, FunctionCallOutput) for item in asked.items)
        return None if answered else Respond("Please look. ", [("confirm", {"all": True})])

    confirm = ToolSpec("confirm", "", {"type": "object"})
    async with workshop(hooks=[ask_the_page]) as shop:
        events = await shop.follow(await shop.begin(client_tools=[confirm]))
    (call,) = only(events, e.ToolCallCommitted)
    assert (call.tool_name, call.arguments_json, call.target) == ("confirm", '{"all":true}', "client")
    assert types(events)[-1] == "run.completed"


async def test_a_hook_that_has_nothing_to_say_fails_the_run():
    @before_round
    def mute(asked: BeforeRound) -> Respond:
        return Respond()

    async with workshop(hooks=[mute]) as shop:
        events = await shop.run()
    assert [one.error["code"] for one in only(events, e.RunFailed)] == ["hook_failed"]


# --- before a tool ------------------------------------------------------------------------------------------------


async def test_a_denied_call_is_not_run_and_the_model_is_told_why():
    @before_tool
    async def no_mail(call: BeforeTool) -> Deny | None:
        return Deny("No mail to Ann.") if call.arguments["to"] == "ann" else None

    async with workshop(TWO, says("I see."), tools=[send], hooks=[no_mail]) as shop:
        events = await shop.run()
        assert outputs(events) == [("No mail to Ann.", "denied", True), ("sent to bob", "result", False)]
        assert sent == [("bob", "Hi")]
        assert [one.tool_call_id for one in only(events, e.ToolExecutionStarted)] == ["call_1"]
        assert facts(events) == [
            {
                "hook": "no_mail",
                "point": "before_tool",
                "decision": "deny",
                "tool_call_id": "call_0",
                "reason": "No mail to Ann.",
            }
        ]
        assert types(events)[-1] == "run.completed"


async def test_a_call_is_answered_without_running_it():
    @before_tool
    def cached(call: BeforeTool) -> Answer:
        return Answer({"to": call.arguments["to"]}, "from the cache")

    async with workshop(ONE, says("I see."), tools=[send], hooks=[cached]) as shop:
        events = await shop.run()
        assert outputs(events) == [('{"to":"ann"}', "answered", False)]
        assert sent == []
        assert read_by_model(shop.script, 1) == ['{"to":"ann"}']
        assert (facts(events)[0]["decision"], facts(events)[0]["reason"]) == ("answer", "from the cache")


async def test_changed_arguments_are_those_that_run_and_the_model_is_told_of_them():
    @before_tool
    def redirect(call: BeforeTool) -> ChangeArguments:
        return ChangeArguments({"to": "archive"}, "nobody writes to Ann")

    @before_tool
    def shout(call: BeforeTool) -> ChangeArguments:
        return ChangeArguments({**call.arguments, "text": "HI"})

    async with workshop(ONE, says("I see."), tools=[send], hooks=[redirect, shout]) as shop:
        events = await shop.run()
        assert sent == [("archive", "HI")]
        (call,) = only(events, e.ToolCallCommitted)
        assert call.arguments_json == '{"to": "ann"}'
        told = 'Ran with other arguments: {"to":"archive","text":"HI"}\nsent to archive'
        assert read_by_model(shop.script, 1) == [told]
        assert [fact["arguments"] for fact in facts(events)] == [{"to": "archive"}, {"to": "archive", "text": "HI"}]


@pytest.mark.parametrize("arguments", [{"too": "ann"}, ["ann"], {}])
async def test_changed_arguments_are_validated_again_and_a_hook_that_gets_them_wrong_has_failed(arguments: Any):
    @before_tool
    def wrong(call: BeforeTool) -> ChangeArguments:
        return ChangeArguments(arguments)

    async with workshop(ONE, tools=[send], hooks=[wrong]) as shop:
        events = await shop.run()
        error = only(events, e.RunFailed)[0].error
        assert (error["code"], "wrong" in error["message"], sent) == ("hook_failed", True, [])


async def test_hooks_are_not_asked_about_calls_that_the_checks_before_them_refuse():
    asked: list[str] = []

    @before_tool
    def note(call: BeforeTool) -> None:
        asked.append(call.tool_name)

    made = calls(("send", "[]"), ("unknown", "{}"), ("send", '{"text": 3}'), ("send", '{"to": "ann"}'))
    async with workshop(made, says("I see."), tools=[send], hooks=[note]) as shop:
        await shop.run()
        assert asked == ["send"]


async def test_all_calls_of_a_round_are_judged_before_any_of_them_runs():
    order: list[str] = []

    @before_tool
    def note(call: BeforeTool) -> None:
        order.append(f"judged {call.arguments['to']}, {len(sent)} sent")

    async with workshop(TWO, says("Done."), tools=[send], hooks=[note]) as shop:
        await shop.run()
        assert order == ["judged ann, 0 sent", "judged bob, 0 sent"]


# --- after a tool -------------------------------------------------------------------------------------------------


async def test_a_result_is_replaced_and_the_one_before_is_kept_nowhere():
    @after_tool
    async def redact(done: AfterTool) -> ReplaceResult:
        assert (done.result, done.is_error, done.arguments) == ("sent to ann", False, {"to": "ann"})
        return ReplaceResult("sent to ***", reason="names are private")

    async with workshop(ONE, says("Done."), tools=[send], hooks=[redact]) as shop:
        events = await shop.run()
        assert outputs(events) == [("sent to ***", "result", False)]
        assert "sent to ann" not in str(events)
        assert facts(events)[0]["decision"] == "replace_result"


async def test_a_failure_can_be_made_good_and_a_result_a_failure():
    @tool
    async def fails() -> str:
        raise RuntimeError("disk on fire")

    @after_tool
    def turn(done: AfterTool) -> ReplaceResult:
        return ReplaceResult("turned", is_error=not done.is_error)

    made = calls(("fails", "{}"), ("send", '{"to": "ann"}'))
    async with workshop(made, says("Done."), tools=[fails, send], hooks=[turn]) as shop:
        assert outputs(await shop.run()) == [("turned", "result", False), ("turned", "error", True)]


async def test_replacing_a_result_leaves_the_tools_change_of_the_state():
    @after_tool
    def blank(done: AfterTool) -> ReplaceResult:
        return ReplaceResult("")

    made = calls(("count", '{"name": "a"}'), ("count", '{"name": "b"}'))
    async with workshop(made, says("Done."), tools=[count], hooks=[blank]) as shop:
        await shop.run()
        found = await shop.supervisor.session(ANONYMOUS, "s1")
        assert found is not None
        assert (await shop.supervisor.thread(found.thread_id)).state == {"a": 1, "b": 1}


# --- after a round ------------------------------------------------------------------------------------------------


async def test_a_hook_behind_a_round_is_told_what_was_committed():
    seen: list[AfterRound] = []

    @after_round
    def look(done: AfterRound) -> None:
        seen.append(done)

    usage = {"input_tokens": 3, "output_tokens": 1}
    said = calls(("send", '{"to": "ann"}'), text="Let me send it. ")
    async with workshop(said, says("Done.", usage=usage), tools=[send], hooks=[look]) as shop:
        await shop.run()
    assert [(one.round, one.runtime_role, one.finish, one.text) for one in seen] == [
        (1, "working_message", "tool_calls", "Let me send it. "),
        (2, "final_response", "stop", "Done."),
    ]
    assert [[call.tool_name for call in one.calls] for one in seen] == [["send"], []]
    assert seen[1].usage == {"provider": "testing", "model": "scripted-provider", **usage}


async def test_a_round_that_failed_is_not_told():
    seen: list[AfterRound] = []

    @after_round
    def look(done: AfterRound) -> None:
        seen.append(done)

    async with workshop([TextDelta("Half")], hooks=[look], limits=Limits(model_retries=0)) as shop:
        await shop.run()
    assert seen == []


# --- stopping the run ---------------------------------------------------------------------------------------------


def _enough(context: HookContext) -> StopRun | None:
    """Enough of the first run; the thread's next one may go on."""
    return StopRun("enough") if context.run.run_id == "run_1" else None


@before_round
def stops_before(asked: BeforeRound) -> StopRun | None:
    return _enough(asked.context) if asked.round == 2 else None


@after_round
def stops_after(done: AfterRound) -> StopRun | None:
    return _enough(done.context)


@before_tool
def stops_call(call: BeforeTool) -> StopRun | None:
    return _enough(call.context) if call.arguments.get("to") == "bob" else None


@after_tool
def stops_result(done: AfterTool) -> StopRun | None:
    return _enough(done.context)


@pytest.mark.parametrize(
    ("hook", "rounds", "results"),
    [
        (stops_before, 1, ["result", "result"]),
        (stops_after, 1, ["cancelled", "cancelled"]),
        (stops_call, 1, ["cancelled", "cancelled"]),
        (stops_result, 1, ["result", "cancelled"]),
    ],
    ids=lambda value: getattr(value, "point", ""),
)
async def test_a_hook_stops_the_run_and_everything_is_closed(hook: Hook, rounds: int, results: list[str]):
    async with workshop(TWO, says("never"), tools=[send], hooks=[hook]) as shop:
        events = await shop.run()
        assert [done.kind for done in only(events, e.ToolCallCompleted)] == results
        assert len(sent) == results.count("result")
        assert types(events)[-1] == "run.cancelled"
        end = only(events, e.RunCancelled)[0]
        assert (end.reason, end.external_stop_confirmed, end.abandoned) == ("enough", True, None)
        assert only(events, e.RunCancelling) == [e.RunCancelling("enough")]
        assert (facts(events)[-1]["decision"], facts(events)[-1]["reason"]) == ("stop_run", "enough")
        assert len(shop.script.requests) == rounds
        assert types(await shop.run("Go on"))[-1] == "run.completed"


async def test_a_stop_behind_one_of_several_tools_stops_those_that_run_beside_it():
    ended = asyncio.Event()

    @tool(parallel=True)
    async def quick() -> str:
        return "quick"

    @tool(parallel=True)
    async def slow() -> str:
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return "never"

    made = calls(("slow", "{}"), ("quick", "{}"))
    async with workshop(made, tools=[quick, slow], hooks=[stops_result]) as shop:
        events = await shop.run()
        assert ended.is_set()
        assert [(one.tool_call_id, one.kind) for one in only(events, e.ToolCallCompleted)] == [
            ("call_1", "result"),
            ("call_0", "cancelled"),
        ]
        assert types(events)[-1] == "run.cancelled"


# --- hooks that fail or hang --------------------------------------------------------------------------------------


def _raise(_: Any) -> Any:
    raise RuntimeError("the key is sk-secret")


async def _raise_later(_: Any) -> Any:
    raise RuntimeError("the key is sk-secret")


async def _cancels_itself(_: Any) -> Any:
    raise asyncio.CancelledError


async def _exits(_: Any) -> Any:
    raise SystemExit(3)


async def _answers_nonsense(_: Any) -> Any:
    return True


@pytest.mark.parametrize("fails", [_raise, _raise_later, _cancels_itself, _exits, _answers_nonsense])
@pytest.mark.parametrize("point", [before_round, after_round, before_tool, after_tool])
async def test_a_hook_that_fails_fails_the_run_by_name_without_its_words(
    point: Callable[[Any], Hook], fails: Callable[[Any], Any]
):
    async with workshop(TWO, says("never"), tools=[send], hooks=[point(fails)]) as shop:
        events = await shop.run()
        error = only(events, e.RunFailed)[0].error
        assert (error["code"], error["retryable"]) == ("hook_failed", False)
        assert f"The hook {fails.__name__} " in error["message"]
        assert "sk-secret" not in str(events)
        committed = [call.tool_call_id for call in only(events, e.ToolCallCommitted)]
        assert [done.tool_call_id for done in only(events, e.ToolCallCompleted)] == committed


async def test_a_result_that_a_failing_hook_should_have_seen_is_not_told():
    async with workshop(ONE, tools=[send], hooks=[after_tool(_raise)]) as shop:
        events = await shop.run()
        ((result, kind, _),) = outputs(events)
        assert kind == "error"
        assert "ran" in result
        assert "sent to ann" not in str(events)


async def test_a_decision_that_its_point_does_not_know_fails_the_run():
    too_late: Any = lambda done: Deny("too late")  # noqa: E731
    wrong = after_tool(too_late)
    async with workshop(ONE, tools=[send], hooks=[wrong]) as shop:
        message = only(await shop.run(), e.RunFailed)[0].error["message"]
        assert "answered with a Deny; after_tool takes None, ReplaceResult, StopRun" in message


async def test_a_synchronous_hook_has_a_thread_of_its_own():
    loop = threading.get_ident()
    where: list[int] = []

    @before_round
    def here(asked: BeforeRound) -> None:
        where.append(threading.get_ident())

    async with workshop(says("Done."), hooks=[here]) as shop:
        await shop.run()
    assert where != [loop]


async def test_a_run_is_cancelled_while_it_waits_for_a_hook_that_lets_itself_be_stopped():
    waiting, ended = asyncio.Event(), asyncio.Event()

    @before_round
    async def waits(asked: BeforeRound) -> None:
        waiting.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    async with workshop(says("never"), hooks=[waits]) as shop:
        run = await shop.begin()
        await waiting.wait()
        await shop.supervisor.cancel(run.run_id, "user", 5)
        end = only(await shop.follow(run), e.RunCancelled)[0]
        assert (end.external_stop_confirmed, end.abandoned, ended.is_set()) == (True, None, True)


async def test_a_call_whose_tool_has_run_is_not_said_to_be_cancelled_before_it():
    waiting = asyncio.Event()

    @after_tool
    async def waits(done: AfterTool) -> None:
        waiting.set()
        await asyncio.Event().wait()

    async with workshop(ONE, tools=[send], hooks=[waits]) as shop:
        run = await shop.begin()
        await waiting.wait()
        await shop.supervisor.cancel(run.run_id, "user", 5)
        ((result, kind, _),) = outputs(await shop.follow(run))
        assert (kind, result.startswith("Cancelled: the tool ran")) == ("cancelled", True)


async def test_a_hook_that_does_not_stop_is_named():
    waiting, go_on = threading.Event(), threading.Event()

    @before_tool
    def hangs(call: BeforeTool) -> None:
        waiting.set()
        go_on.wait(20)
        assert call.context.stopped.is_set()

    async with workshop(ONE, tools=[send], hooks=[hangs], limits=Limits(stop_grace_s=5)) as shop:
        run = await shop.begin()
        await asyncio.to_thread(waiting.wait)
        try:
            await shop.supervisor.cancel(run.run_id, "user", 5)
            end = only(await shop.follow(run), e.RunCancelled)[0]
            assert (end.external_stop_confirmed, end.abandoned) == (False, ["hook:hangs"])
        finally:
            go_on.set()
        await until(lambda: not shop.supervisor.live.tool_threads.abandoned)
        assert sent == []


# --- declaring ----------------------------------------------------------------------------------------------------


def test_a_function_that_is_no_hook_is_refused():
    agent: Any = Agent("a", hooks=[_raise])  # pyright: ignore[reportArgumentType]
    with pytest.raises(ConfigurationError, match="is no hook: decorate it with one of @before_round"):
        agent.snapshot(ScriptedProvider())


def test_the_snapshot_of_an_agent_names_its_hooks():
    agent = Agent("a", hooks=[stops_result, stops_before])
    assert agent.snapshot(ScriptedProvider())["hooks"] == [
        {"point": "before_round", "name": "stops_before"},
        {"point": "after_tool", "name": "stops_result"},
    ]
    assert "hooks" not in Agent("a").snapshot(ScriptedProvider())


def test_a_hook_is_still_a_function():
    @after_tool
    def shout(done: AfterTool) -> ReplaceResult:
        return ReplaceResult(str(done.result).upper())

    nowhere: Any = None
    assert shout(AfterTool(nowhere, "c", "t", {}, "hi", is_error=False)) == ReplaceResult("HI")
