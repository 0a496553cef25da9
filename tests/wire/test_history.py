"""Pages that lost something of the history, over a real socket, with the official client as the page where order and
ids matter."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from runtime.authority import ANONYMOUS
from runtime.errors import ProviderError
from runtime.samples import AssistantMessageDone, Completed, TextDelta
from runtime.testing import calls, says
from tests.official_client import OfficialClient, Verdict
from tests.pure.stock_page import Page
from tests.serving import JsonObject, ask
from tests.wire.desk import PICK, desk, two_turns

# --- the official client as a page that lost something ----------------------------------------------------------------


LOSSES: dict[str, Callable[[list[JsonObject]], list[JsonObject]]] = {
    "nothing": lambda shown: shown,
    "everything": lambda shown: [],
    "the last answer": lambda shown: shown[:-1],
    "the answer of the first turn": lambda shown: [shown[0], *shown[-2:]],
    "what came of a tool": lambda shown: [m for m in shown if m["role"] != "tool"],
    "thoughts": lambda shown: [m for m in shown if m["role"] != "reasoning"],
    "the first message and the last thought's place": lambda shown: shown[1:],
    "its ids": lambda shown: [{**m, "id": f"own-{i}"} for i, m in enumerate(shown)],
    "its ids and an answer": lambda shown: [{**m, "id": f"own-{i}"} for i, m in enumerate(shown) if m is not shown[-1]],
}


@pytest.mark.parametrize("loss", LOSSES)
async def test_whatever_the_official_client_lost_it_ends_with_what_the_server_holds(
    loss: str, official_client: OfficialClient
):
    async with two_turns() as open_desk:
        shown = LOSSES[loss](open_desk.page.messages)
        new: JsonObject = {"id": "u3", "role": "user", "content": "third"}
        verdict = await official_client.run(
            open_desk.served.url, thread_id="t1", run_id="back", messages=[*shown, new], state={}
        )
        verdict.assert_clean()
        held = await open_desk.held()
        ids = {message["id"] for message in verdict.messages}
        if loss == "thoughts":
            held = [message for message in held if message["role"] != "reasoning"]
        if loss.startswith("its ids"):
            assert {f"own-{i}" for i in range(len(shown))} <= ids
            assert without_ids(verdict) == [{k: v for k, v in m.items() if k != "id"} for m in held]
        else:
            assert verdict.messages == held
        assert open_desk.prompt[-3:] == ["user: second", "assistant: two", "user: third"]
        assert len(open_desk.prompt) == 8


def without_ids(verdict: Verdict) -> list[JsonObject]:
    """The client's messages without their ids."""
    return [{name: value for name, value in message.items() if name != "id"} for message in verdict.messages]


async def test_the_official_client_that_shows_an_older_answer_keeps_it(official_client: OfficialClient):
    async with desk(says("one"), says("two"), says("three")) as open_desk:
        await open_desk.say("first")
        older = list(open_desk.page.messages)
        del open_desk.page.messages[1:]
        await open_desk.post()
        assert open_desk.page.messages[1]["content"] == "two"
        verdict = await official_client.run(
            open_desk.served.url,
            thread_id="t1",
            run_id="back",
            messages=[*older, {"id": "u2", "role": "user", "content": "go on"}],
        )
        verdict.assert_clean()
        assert [event["type"] for event in verdict.events].count("MESSAGES_SNAPSHOT") == 0
        assert open_desk.prompt == ["user: first", "assistant: one", "user: go on"]
        assert verdict.messages == await open_desk.held()


# --- a stream that was lost -------------------------------------------------------------------------------------------


async def test_a_page_that_never_saw_the_answer_gets_it_before_its_next_message_is_answered_C_141():
    async with two_turns() as open_desk:
        open_desk.page.messages = [open_desk.page.messages[0], {"id": "u2-new", "role": "user", "content": "next"}]
        answer = await open_desk.post()
        assert answer.types[:3] == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "MESSAGES_SNAPSHOT"]
        assert open_desk.page.messages == await open_desk.held()
        assert open_desk.prompt == [
            *("user: first", "assistant: wait", "call look", "output seen there", "assistant: one"),
            "user: next",
        ]


async def test_nothing_new_is_one_run_that_says_so_C_114():
    async with two_turns() as open_desk:
        answer = await open_desk.post()
        assert answer.types == ["RUN_STARTED", "RUN_FINISHED"]
        assert len(open_desk.model.prompts) == 3


async def test_a_result_of_nothing_alone_is_nothing_new_and_the_page_is_told_what_there_is_C_114():
    async with two_turns() as open_desk:
        whole = open_desk.page.messages
        open_desk.page = Page([{"id": "m9", "role": "tool", "toolCallId": "nobody", "content": "?"}])
        answer = await open_desk.post()
        assert answer.types == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        assert open_desk.page.messages == whole


async def test_an_unknown_thread_without_messages_is_not_made():
    async with desk() as open_desk:
        answer = await open_desk.post()
        assert answer.types == ["RUN_STARTED", "RUN_FINISHED"]
        session, _ = await open_desk.served.bridge.supervisor.open(ANONYMOUS, "t1")
        assert session is None


async def test_what_is_in_the_request_is_never_streamed_again():
    async with two_turns() as open_desk:
        shown = {message["id"] for message in open_desk.page.messages}
        answer = await open_desk.say("third")
        streamed = {event["messageId"] for event in answer.events if "messageId" in event}
        assert streamed
        assert not streamed & shown


# --- restarts and runs at work ----------------------------------------------------------------------------------------


async def test_a_history_is_the_same_after_a_restart(tmp_path: Path):
    store = f"sqlite:///{tmp_path / 'store.db'}"
    async with two_turns(store=store) as before:
        page, prompt = before.page, before.prompt
    async with desk(says("three"), store=store) as after:
        after.page = page
        answer = await after.say("third")
        assert "MESSAGES_SNAPSHOT" not in answer.types
        assert after.prompt == [*prompt, "assistant: two", "user: third"]
        assert page.messages == await after.held()


async def test_both_boundaries_of_a_run_name_the_thread_and_the_run_of_the_request_C_115():
    async with desk(says("one"), calls(("pick", "{}")), [ProviderError("Away.", code="provider_refused")]) as open_desk:
        for run in ("mine-1", "mine-2", "mine-3"):
            answer = await open_desk.served.run(ask(run, run=run, message=run, tools=[PICK]))
            ids = [(event.get("threadId"), event.get("runId")) for event in (answer.events[0], answer.events[-1])]
            assert ids[0] == ("t1", run)
            assert ids[1] == (("t1", run) if answer.types[-1] == "RUN_FINISHED" else (None, None))


async def test_a_page_that_is_loaded_again_behind_its_tools_answer_follows_the_run_that_works_with_it():
    gate = asyncio.Event()
    waits = [TextDelta("Blue "), gate, TextDelta("it is"), AssistantMessageDone(), Completed("stop")]
    async with desk(calls(("pick", "{}")), waits) as open_desk:
        first = await open_desk.say("pick", tools=[PICK])
        (call,) = first.events[-1]["outcome"]["pendingToolCallIds"]
        open_desk.page.put_result({"id": "a1", "role": "tool", "toolCallId": call, "content": "blue"})
        shown = list(open_desk.page.messages)
        async with open_desk.served.streaming(ask("", run="r2", messages=shown, tools=[PICK])) as before:
            async for event in before:
                if event["type"] == "TEXT_MESSAGE_CONTENT":
                    break
            async with open_desk.served.streaming(ask("", run="after-reload", messages=shown, tools=[PICK])) as again:
                gate.set()
                seen = [event async for event in again]
        page = Page(shown)
        page.apply(seen)
        assert seen[-1]["runId"] == "after-reload"
        assert page.messages == await open_desk.held()
        assert len(open_desk.model.prompts) == 2
