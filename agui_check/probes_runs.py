"""Probes of runs: ids, tools, state, reasoning, cancelling."""

from __future__ import annotations

import asyncio
from typing import Any, Final
from urllib.parse import urljoin

from agui_check.findings import JsonObject
from agui_check.inquiry import BRIDGE, CANCEL, SCRIPT, TOKENS, Inquiry, Probe, call, new, probe, scripted, tool, user
from agui_check.target import Exchange

_PICK = tool("agui_check_pick")
_TRIES: Final = 10
_PAUSE_S: Final = 0.3
"""How often, and after which pause, a thread is asked again whose server may not yet know that its client left."""

_NO_TOOL = "the server's agent has no tool by that name"


def messages_of(exchange: Exchange) -> list[JsonObject]:
    """What a page shows after a run: the messages that were asked, and an assistant message for text and calls."""
    shown = list(exchange.asked["messages"])
    parents: dict[str, JsonObject] = {}
    for event in exchange.of("TEXT_MESSAGE_START", "TEXT_MESSAGE_CONTENT", "TOOL_CALL_START", "TOOL_CALL_ARGS"):
        kind = event["type"]
        if kind == "TEXT_MESSAGE_START":
            parents[event["messageId"]] = {"id": event["messageId"], "role": "assistant", "content": ""}
        elif kind == "TEXT_MESSAGE_CONTENT" and event["messageId"] in parents:
            parents[event["messageId"]]["content"] += event["delta"]
        elif kind == "TOOL_CALL_START":
            id_ = event.get("parentMessageId") or event["toolCallId"]
            message = parents.setdefault(id_, {"id": id_, "role": "assistant"})
            function = {"name": event["toolCallName"], "arguments": ""}
            message.setdefault("toolCalls", []).append(
                {"id": event["toolCallId"], "type": "function", "function": function}
            )
        else:
            calls = (each for message in parents.values() for each in message.get("toolCalls", []))
            for each in calls:
                if each["id"] == event["toolCallId"]:
                    each["function"]["arguments"] += event["delta"]
    return shown + list(parents.values())


def next_body(i: Inquiry, exchange: Exchange, *more: JsonObject, **members: Any) -> JsonObject:
    """The next input on the thread of a run."""
    messages = [*messages_of(exchange), *more]
    return i.body(None, threadId=exchange.asked["threadId"], messages=messages, **members)


@probe("R-086", "R-081")
async def ids_are_new_in_every_run_of_a_thread(i: Inquiry) -> None:
    first = await i.say("Hello")
    second = await i.run(next_body(i, first, user("And again")))
    if not (first.streams and second.streams):
        return
    one, two = _minted(first), _minted(second)
    if one and two:
        taken = one & two or two & {str(each["id"]) for each in second.asked["messages"]}
        i.expect("R-086", not taken, f"The second run of a thread uses the id {next(iter(taken), '')} again.")


def _minted(exchange: Exchange) -> set[str]:
    return {str(each["messageId"]) for each in exchange.of("TEXT_MESSAGE_START", "TOOL_CALL_RESULT")}


@probe("R-104", "R-105", "R-106", "R-107", "R-110", "R-111", "R-071", needs=(SCRIPT,))
async def a_frontend_call_is_left_to_the_page(i: Inquiry) -> None:
    pick = call(_PICK["name"])
    asked = await i.script({"text": "Pick two.", "tool_calls": [pick, pick]}, {"text": "thanks"}, tools=[_PICK])
    calls = [event["toolCallId"] for event in asked.of("TOOL_CALL_START")]
    i.expect("R-104", not asked.of("TOOL_CALL_RESULT"), "The server answers a call of a tool of the page.")
    i.expect("R-105", asked.outcome == "success", f"A run that stops at a frontend call ends as {asked.outcome}.")
    i.expect("R-106", "thanks" not in asked.text, "The model is asked again before the page has answered.")
    if len(set(calls)) != 2:
        i.fault("R-102", f"Two calls of one tool have the ids {calls}.")
        return
    i.passed("R-107")
    answers = [{"id": new("o"), "role": "tool", "toolCallId": id_, "content": "blue"} for id_ in calls]
    answers[1]["error"] = "the user closed the dialog"
    goes_on = await i.run(next_body(i, asked, *answers, tools=[_PICK]))
    fine = goes_on.streams and goes_on.outcome == "success"
    i.expect("R-110", fine and "thanks" in goes_on.text, f"Answers of the page lead to {goes_on.answer}.")
    left = await i.script({"tool_calls": [pick]}, tools=[_PICK])
    passed_over = await i.run(next_body(i, left, user("Never mind"), tools=[_PICK]))
    i.expect("R-111", passed_over.status < 500, f"A call that is passed over leads to {passed_over.answer}.")


@probe("R-118", "R-112")
async def parameters_may_be_anything(i: Inquiry) -> None:
    odd = [
        tool("a", parameters=...),
        tool("b", parameters=True),
        tool("c", parameters="text"),
        tool("d", parameters={}),
    ]
    for each in odd:
        given = {name: value for name, value in each.items() if value is not ...}
        exchange = await i.run(i.body(tools=[given]))
        fine = exchange.streams and exchange.outcome != "error"
        i.expect(
            "R-118", fine, f"A tool with parameters {given.get('parameters', 'left out')!r} gets {exchange.answer}."
        )


@probe("R-100", "R-101", "R-112", needs=(SCRIPT,))
async def odd_calls_break_nothing(i: Inquiry) -> None:
    arguments = '{"key": tea, '
    broken = await i.script({"tool_calls": [call(_PICK["name"], arguments)]}, {"text": "on"}, tools=[_PICK])
    came = "".join(str(each["delta"]) for each in broken.of("TOOL_CALL_ARGS"))
    i.expect("R-100", broken.streams and broken.outcome != "nothing", f"Broken arguments lead to {broken.answer}.")
    if broken.of("TOOL_CALL_START"):
        i.expect("R-101", came == arguments, f"The arguments arrive as {came!r}, the model said {arguments!r}.")
    unknown = await i.script({"tool_calls": [call("agui_check_no_such_tool")]}, {"text": "on"})
    fine = unknown.streams and unknown.outcome not in ("nothing", "error")
    i.expect("R-112", fine, f"A call of a tool that nobody has leads to {unknown.answer}.")


@probe("R-102", "R-108", "R-113", "R-117", needs=(SCRIPT,))
async def every_call_of_the_server_gets_a_result(i: Inquiry) -> None:
    two = [call("get_time", {"tz": "Oslo"}), call("get_time", {"tz": "Tokyo"})]
    both = await i.script({"text": "Look.", "tool_calls": two}, {"text": "There"})
    results = both.of("TOOL_CALL_RESULT")
    if not any("time" in str(each.get("content")) for each in results):
        i.skip(_NO_TOOL, "R-108", "R-113", "R-117")
        return
    ids = {each["toolCallId"] for each in both.of("TOOL_CALL_START")}
    i.expect("R-102", len(ids) == 2, "Two calls of one tool have one id.")
    fails = await i.script({"tool_calls": [call("failing_tool")]}, {"text": "There"})
    for exchange, number in ((both, 2), (fails, 1)):
        got = len(exchange.of("TOOL_CALL_RESULT"))
        if exchange.outcome == "error":
            i.fault("R-108", "A tool that fails ends its run as RUN_ERROR, which is legal.", remark=True)
        else:
            i.expect("R-108", got == number, f"{number} calls of the server's tools get {got} results.")
    wrong = await i.script({"tool_calls": [call("get_time", {"tz": ["Oslo"]})]}, {"text": "There"})
    executed = any('"time"' in str(each.get("content")) for each in wrong.of("TOOL_CALL_RESULT"))
    i.expect("R-117", not executed, "A tool runs with arguments that its schema does not allow.")


@probe("R-049", "R-120", "R-121", "R-122", "R-123", needs=(SCRIPT,))
async def deltas_change_the_state_of_the_input(i: Inquiry) -> None:
    add = {"tool_calls": [call("add_todo", {"text": "milk"})]}
    body = i.body(scripted(add, {"text": "Done"}), state={"n": 1, "x": True})
    first = await i.run(body)
    if not first.of("STATE_DELTA", "STATE_SNAPSHOT"):
        i.skip(_NO_TOOL, "R-049", "R-123")
        return
    i.passed("R-049")
    again = i.body(scripted(add, {"text": "Done"}), state={"n": 2}, threadId=body["threadId"])
    await i.run(again)
    reset = await i.run(i.body(scripted(add, {"text": "Done"}), state={}, threadId=body["threadId"]))
    begins = [each["type"] for each in reset.of("STATE_DELTA", "STATE_SNAPSHOT")]
    i.expect("R-123", begins[:1] != ["STATE_DELTA"], "No snapshot comes first where the page has lost the state.")


@probe("R-135", "R-136", needs=(SCRIPT,))
async def reasoning_is_opened_and_closed(i: Inquiry) -> None:
    exchange = await i.script({"reasoning": "Weigh it.", "text": "Yes"})
    if not exchange.of("REASONING_MESSAGE_START", "REASONING_MESSAGE_CHUNK"):
        i.skip("the server shows no reasoning", "R-135", "R-136")


@probe("R-072", "R-073", "R-074", needs=(SCRIPT, CANCEL))
async def a_run_that_is_stopped_ends_as_cancelled(i: Inquiry) -> None:
    slow = {"text": "word " * 200, "delay_ms": 20}
    cut = {"tool_calls": [call(_PICK["name"], {"text": "word " * 400})], "delay_ms": 20}
    for script, opened in ((slow, "TEXT_MESSAGE_CONTENT"), (cut, "TOOL_CALL_ARGS")):
        exchange = await _stopped(i, scripted(script), opened)
        outcome = exchange.outcome
        i.expect("R-072", outcome == "cancelled", f"A run that was stopped ends as {outcome}.")
        i.expect("R-073", outcome == "cancelled", f"A run that was stopped within {opened} ends as {outcome}.")


async def _stopped(i: Inquiry, words: str, opened: str) -> Exchange:
    """Run these words, and cancel the run once such an event is there."""
    stops: list[asyncio.Task[Exchange]] = []

    def stop_once_open(exchange: Exchange) -> bool:
        location = exchange.headers.get("location")
        if not stops and location is not None and exchange.of(opened):
            url = urljoin(i.target.url, f"{location}/cancel")
            stops.append(asyncio.create_task(i.target.post({}, url)))
        return False

    exchange = await i.run(i.body(words, tools=[_PICK]), stop_once_open)
    for stop in stops:
        await stop
        i.extensions.add("cancel")
    return exchange


@probe("R-075", needs=(TOKENS,))
async def a_client_that_goes_away_leaves_a_thread_in_use(i: Inquiry) -> None:
    body = i.body("/tokens 500 20")
    await i.run(body, lambda exchange: bool(exchange.of("TEXT_MESSAGE_CONTENT")))
    again = i.body(None, threadId=body["threadId"], messages=[*body["messages"], user("/tokens 3")])
    exchange = await i.run(again)
    for _ in range(_TRIES):
        if not exchange.refused:
            break
        await asyncio.sleep(_PAUSE_S)
        exchange = await i.run(again)
    fine = exchange.streams and exchange.outcome == "success"
    i.expect("R-075", fine, f"After its client went away, the thread answers with {exchange.answer}.")


@probe("R-017", "R-018", needs=(BRIDGE, SCRIPT))
async def a_run_can_be_read_again_elsewhere(i: Inquiry) -> None:
    exchange = await i.script({"text": "Read me again"})
    location = urljoin(i.target.url, exchange.headers["location"])
    for after in (0, 3):
        replay = await i.target.get(f"{location}/events?format=agui&after_seq={after}")
        i.extensions.add("events")
        rest = exchange.events[-len(replay.events) :]
        i.expect("R-018", replay.events == rest, f"A replay behind {after} is not the rest of the stream.")
    back = await i.target.post(i.body(None), f"{i.target.url.rstrip('/')}/connect")
    if back.streams:
        i.extensions.add("connect")
        starts = [event["runId"] for event in back.of("RUN_STARTED")]
        i.expect("R-017", starts[-1:] == [back.asked["runId"]], "The last run of a page's return is not its own.")


PROBES: Final[tuple[Probe, ...]] = (
    ids_are_new_in_every_run_of_a_thread,
    a_frontend_call_is_left_to_the_page,
    parameters_may_be_anything,
    odd_calls_break_nothing,
    every_call_of_the_server_gets_a_result,
    deltas_change_the_state_of_the_input,
    reasoning_is_opened_and_closed,
    a_run_can_be_read_again_elsewhere,
    a_run_that_is_stopped_ends_as_cancelled,
    a_client_that_goes_away_leaves_a_thread_in_use,
)
