"""Runs that stop to ask, and what answers them: a page with its stock client, over a real socket."""

from __future__ import annotations

import asyncio
import copy
import itertools
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import orjson
import pytest

from runtime import samples as s
from runtime.agent import Agent
from runtime.errors import ProviderError
from runtime.hooks import BeforeTool, Hook, before_tool
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import Declined, ToolError, tool
from tests.contract.workshop import until
from tests.serving import Answer, JsonObject, ask, serving
from tests.wire.desk import Desk

SENT: list[tuple[str, str]] = []


def mail_tools() -> tuple[list[str], list[Any]]:
    """Tools that write down what they did."""
    done: list[str] = []

    @tool(approval=True)
    async def send(to: str, body: str = "") -> str:
        """Send a message."""
        done.append(f"sent to {to}")
        return f"Sent to {to}."

    @tool
    async def note(text: str) -> str:
        """Write something down."""
        done.append(f"noted {text}")
        return "Noted."

    return done, [send, note]


class Page(Desk):
    """A page that can also answer what it is asked."""

    done: list[str]
    run = 0

    async def turn(self, text: str | None = None, **more: Any) -> Answer:
        """What the page sends next, by saying something or without."""
        self.run += 1
        if text is not None:
            users = sum(message["role"] == "user" for message in self.page.messages)
            self.page.messages.append({"id": f"u{users + 1}", "role": "user", "content": text})
        body = ask("", run=more.pop("run", f"r{self.run}"), messages=self.page.messages, protocolVersion="1.0", **more)
        answer = await self.served.run(body)
        assert answer.status == 200, answer.body
        self.page.apply(answer.events)
        assert not self.page.surprises
        return answer


@asynccontextmanager
async def page(
    *rounds: Any, tools: Sequence[Any] | None = None, hooks: Sequence[Hook] = (), **settings: Any
) -> AsyncGenerator[Page, None]:
    """A page on an agent whose model plays these rounds."""
    done, ours = mail_tools()
    model = ScriptedProvider(*rounds)
    agent = Agent("a", model=model, tools=ours if tools is None else tools, hooks=hooks)
    async with serving(agent, **settings) as served:
        opened = Page(served, model)
        opened.done = done
        yield opened


def outcome(answer: Answer) -> JsonObject:
    finished = answer.events[-1]
    assert finished["type"] == "RUN_FINISHED"
    return finished["outcome"]


def asked(answer: Answer) -> list[JsonObject]:
    """The interrupts with which a run ended."""
    told = outcome(answer)
    assert told["type"] == "interrupt"
    return told["interrupts"]


def resolved(interrupt: JsonObject, **payload: Any) -> JsonObject:
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


def answered(interrupt: JsonObject, payload: Any) -> JsonObject:
    return {"interruptId": interrupt["id"], "status": "resolved", "payload": payload}


def cancelled(interrupt: JsonObject) -> JsonObject:
    return {"interruptId": interrupt["id"], "status": "cancelled"}


def results(answer: Answer) -> dict[str, str]:
    told = [event for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]
    return {event["toolCallId"]: event["content"] for event in told}


SEND = calls(("send", '{"to": "Ann"}'), text="Sending.")


@pytest.mark.requirement("R-160", "R-161", "R-162", "R-164", "R-165", "R-173", "R-201")
async def test_a_call_that_needs_an_approval_runs_only_when_it_was_approved():
    async with page(SEND, says("It is sent")) as desk:
        first = await desk.turn("Write to Ann")
        [interrupt] = asked(first)
        assert desk.done == []
        assert (interrupt["reason"], interrupt["toolCallId"]) == ("tool_call", "call_0")
        assert interrupt["responseSchema"]["required"] == ["approved"]
        assert first.types[-3:] == ["STATE_SNAPSHOT", "MESSAGES_SNAPSHOT", "RUN_FINISHED"]
        second = await desk.turn(resume=[resolved(interrupt, approved=True)])
        assert desk.done == ["sent to Ann"]
        assert results(second) == {"call_0": "Sent to Ann."}
        assert "TOOL_CALL_START" not in second.types
        assert outcome(second) == {"type": "success"}
        assert desk.prompt == ["user: Write to Ann", "assistant: Sending.", "call send", "output Sent to Ann."]
        assert [m["role"] for m in desk.page.messages] == ["user", "assistant", "tool", "assistant"]
        assert desk.page.messages == await desk.held()


@pytest.mark.parametrize(
    "entry",
    [cancelled, lambda interrupt: resolved(interrupt, approved=False)],
    ids=["cancelled", "not approved"],
)
async def test_a_call_that_was_declined_does_not_run_and_the_model_is_told(entry: Any):
    async with page(SEND, says("As you like")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        answer = await desk.turn(resume=[entry(interrupt)])
        assert desk.done == []
        assert results(answer) == {"call_0": "Declined by the user. send was not run."}
        assert outcome(answer) == {"type": "success"}


async def test_a_call_runs_with_the_arguments_that_the_user_made_of_it():
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        answer = await desk.turn(resume=[resolved(interrupt, approved=True, editedArgs={"to": "Bob"})])
        assert desk.done == ["sent to Bob"]
        assert results(answer)["call_0"].endswith("\nSent to Bob.")
        assert '{"to":"Bob"}' in results(answer)["call_0"].replace(" ", "")
        [assistant] = [message for message in desk.page.messages if message.get("toolCalls")]
        assert assistant["toolCalls"][0]["function"]["arguments"] == '{"to": "Ann"}'


@pytest.mark.requirement("R-172")
@pytest.mark.parametrize(
    "payload",
    [{}, {"approved": "yes"}, {"approved": True, "editedArgs": {"to": 7}}, {"approved": True, "editedArgs": {}}],
)
async def test_an_answer_that_does_not_fit_does_nothing_and_the_question_is_asked_again(payload: JsonObject):
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        assert asked(await desk.turn(resume=[resolved(interrupt, **payload)])) == [interrupt]
        assert desk.done == []
        assert outcome(await desk.turn(resume=[resolved(interrupt, approved=True)])) == {"type": "success"}
        assert desk.done == ["sent to Ann"]


TWO = calls(("send", '{"to": "Ann"}'), ("send", '{"to": "Bob"}'))


@pytest.mark.requirement("R-161", "R-168", "R-169")
async def test_all_calls_of_a_round_are_asked_about_together_and_may_be_answered_one_by_one():
    async with page(TWO, says("Both are sent")) as desk:
        ann, bob = asked(await desk.turn("Write to both"))
        assert ann["id"] != bob["id"]
        second = await desk.turn(resume=[resolved(ann, approved=True)])
        assert desk.done == ["sent to Ann"]
        assert asked(second) == [bob]
        third = await desk.turn(resume=[resolved(bob, approved=True)])
        assert desk.done == ["sent to Ann", "sent to Bob"]
        assert outcome(third) == {"type": "success"}
        assert len(desk.model.prompts) == 2


async def test_calls_behind_one_that_is_asked_about_wait_with_it():
    behind = calls(("note", '{"text": "before"}'), ("send", '{"to": "Ann"}'), ("note", '{"text": "after"}'))
    async with page(behind, says("Done")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        assert desk.done == ["noted before"]
        await desk.turn(resume=[resolved(interrupt, approved=True)])
        assert desk.done == ["noted before", "sent to Ann", "noted after"]


@pytest.mark.requirement("R-169")
async def test_a_new_message_while_something_is_asked_is_kept_and_the_question_is_asked_again():
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        assert asked(await desk.turn("Are you there?")) == [interrupt]
        assert desk.done == []
        await desk.turn(resume=[resolved(interrupt, approved=True)])
        assert desk.done == ["sent to Ann"]
        assert desk.prompt[-2:] == ["output Sent to Ann.", "user: Are you there?"]


async def test_a_page_that_was_loaded_again_is_asked_again():
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        reloaded = Page(desk.served, desk.model)
        reloaded.run = 50
        body = ask("", run="c1", messages=[], protocolVersion="1.0")
        connected = await desk.served.run(body, "/connect")
        assert connected.events[-1]["outcome"]["interrupts"] == [interrupt]
        reloaded.page.apply(connected.events)
        assert outcome(await reloaded.turn(resume=[resolved(interrupt, approved=True)])) == {"type": "success"}
        assert desk.done == ["sent to Ann"]


@pytest.mark.requirement("R-167")
async def test_an_answer_to_nothing_is_left_out_and_the_run_goes_on():
    stray = {"id": "int_nowhere"}
    async with page(says("Hello"), says("Again")) as desk:
        assert outcome(await desk.turn("Hi", resume=[resolved(stray, approved=True)])) == {"type": "success"}
        assert outcome(await desk.turn("Hi again", resume=[cancelled(stray)])) == {"type": "success"}
        assert len(desk.model.prompts) == 2


@pytest.mark.requirement("R-170")
async def test_the_same_answer_again_is_answered_by_the_run_that_took_it():
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        before = copy.deepcopy(desk.page.messages)
        entry = resolved(interrupt, approved=True)
        first = await desk.turn(resume=[entry])
        body = ask("", run="r2", messages=before, protocolVersion="1.0", resume=[entry])
        again = await desk.served.run(body)
        elsewhere = await desk.served.run({**body, "runId": "r9"})
        assert desk.done == ["sent to Ann"]
        assert len(desk.model.prompts) == 2
        assert again.headers["x-run-id"] == elsewhere.headers["x-run-id"] == first.headers["x-run-id"]
        assert outcome(again) == outcome(elsewhere) == {"type": "success"}


async def test_two_answers_at_the_same_moment_run_the_call_once():
    async with page(SEND, says("It is sent"), says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        entry = resolved(interrupt, approved=True)
        bodies = [
            ask(
                "",
                run=f"r{n}",
                messages=desk.page.messages,
                protocolVersion="1.0",
                resume=[entry],
            )
            for n in (7, 8)
        ]
        answers = await asyncio.gather(*(desk.served.run(body) for body in bodies))
        assert desk.done == ["sent to Ann"]
        assert {answer.status for answer in answers} <= {200, 409}
        assert any(outcome(answer) == {"type": "success"} for answer in answers if answer.status == 200)


@pytest.mark.requirement("R-170")
async def test_of_two_entries_for_one_interrupt_the_first_counts():
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        await desk.turn(resume=[cancelled(interrupt), resolved(interrupt, approved=True)])
        assert desk.done == []


async def test_another_answer_to_what_was_answered_is_left_out_and_the_thread_restated():
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        await desk.turn(resume=[resolved(interrupt, approved=True)])
        late = await desk.turn(resume=[cancelled(interrupt)])
        assert outcome(late) == {"type": "success"}
        assert desk.done == ["sent to Ann"]
        assert len(desk.model.prompts) == 2


@pytest.mark.requirement("R-175")
async def test_a_call_of_the_page_beside_one_that_is_asked_about_is_answered_by_its_message():
    pick = {"name": "pick", "description": "Pick", "parameters": {"type": "object"}}
    both = calls(("send", '{"to": "Ann"}'), ("pick", "{}"))
    async with page(both, says("Sent, and blue")) as desk:
        [interrupt] = asked(first := await desk.turn("Write and pick", tools=[pick]))
        assert "pendingToolCallIds" not in outcome(first)
        desk.page.messages.append({"id": "a1", "role": "tool", "toolCallId": "call_1", "content": "blue"})
        answer = await desk.turn(resume=[resolved(interrupt, approved=True)], tools=[pick])
        assert outcome(answer) == {"type": "success"}
        assert desk.prompt[-2:] == ["output Sent to Ann.", "output blue"]


# --- tools that ask -----------------------------------------------------------------------------------------------


def asking_tools(done: list[str]) -> list[Any]:
    @tool
    async def order(ctx: ToolContext, item: str) -> str:
        """Order something."""
        number = await ctx.once("number", lambda: done.append("counted") or len(done))
        size = await ctx.interrupt(message="Which size?", response_schema={"enum": ["S", "L"]})
        try:
            sure = await ctx.interrupt("confirmation", f"Order {item} in {size}?")
        except Declined:
            return "Not ordered."
        done.append(f"ordered {item} {size}")
        return f"No. {number}: {item} in {size}, {sure}."

    @tool
    def order_in_a_thread(ctx: ToolContext, item: str) -> str:
        """Order something."""
        size = ctx.wait(ctx.interrupt(message="Which size?"))
        return f"{item} in {size}."

    return [order, order_in_a_thread]


async def test_a_tool_that_asks_is_called_again_with_the_answers_so_far():
    done: list[str] = []
    async with page(calls(("order", '{"item": "tea"}')), says("Ordered"), tools=asking_tools(done)) as desk:
        [size] = asked(await desk.turn("Order tea"))
        assert (size["reason"], size["message"]) == ("input_required", "Which size?")
        assert asked(await desk.turn(resume=[answered(size, "M")])) == [size]
        answer = await desk.turn(resume=[answered(size, "L")])
        [sure] = asked(answer)
        assert sure["message"] == "Order tea in L?"
        last = await desk.turn(resume=[answered(sure, "yes")])
        assert results(last) == {"call_0": "No. 1: tea in L, yes."}
        assert done == ["counted", "ordered tea L"]


async def test_a_tool_may_make_something_of_being_declined():
    done: list[str] = []
    async with page(calls(("order", '{"item": "tea"}')), says("No"), tools=asking_tools(done)) as desk:
        [size] = asked(await desk.turn("Order tea"))
        [sure] = asked(await desk.turn(resume=[answered(size, "S")]))
        assert results(await desk.turn(resume=[cancelled(sure)])) == {"call_0": "Not ordered."}


async def test_a_synchronous_tool_asks_as_well():
    async with page(calls(("order_in_a_thread", '{"item": "tea"}')), says("Ok"), tools=asking_tools([])) as desk:
        [size] = asked(await desk.turn("Order tea"))
        answer = await desk.turn(resume=[answered(size, "L")])
        assert results(answer) == {"call_0": "tea in L."}


# --- time, forks, stops -------------------------------------------------------------------------------------------


@pytest.mark.requirement("R-163", "R-171")
async def test_after_its_time_a_question_is_declined_by_the_next_message():
    @tool
    async def pay(ctx: ToolContext) -> str:
        """Pay."""
        return str(await ctx.interrupt("confirmation", "Pay?", expires_in=0.001))

    async with page(calls(("pay", "{}")), says("It was not paid"), tools=[pay]) as desk:
        [interrupt] = asked(await desk.turn("Pay it"))
        await until(lambda: datetime.fromisoformat(interrupt["expiresAt"]) < datetime.now(UTC))
        assert asked(await desk.turn(resume=[answered(interrupt, True)])) == [interrupt]
        answer = await desk.turn("Well?")
        assert results(answer) == {"call_0": "Declined by the user."}
        assert outcome(answer) == {"type": "success"}
        assert desk.prompt[-2:] == ["output Declined by the user.", "user: Well?"]


async def test_after_its_time_a_question_can_still_be_cancelled():
    @tool
    async def pay(ctx: ToolContext) -> str:
        """Pay."""
        return str(await ctx.interrupt("confirmation", "Pay?", expires_in=0.001))

    async with page(calls(("pay", "{}")), says("As you like"), tools=[pay]) as desk:
        [interrupt] = asked(await desk.turn("Pay it"))
        await until(lambda: datetime.fromisoformat(interrupt["expiresAt"]) < datetime.now(UTC))
        answer = await desk.turn(resume=[cancelled(interrupt)])
        assert results(answer) == {"call_0": "Declined by the user."}


async def test_a_user_who_says_something_else_instead_takes_the_question_back():
    async with page(SEND, says("Good morning"), says("Nothing to send")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        del desk.page.messages[:]
        desk.page.messages.append({"id": "u1", "role": "user", "content": "Say good morning"})
        answer = await desk.turn()
        assert outcome(answer) == {"type": "success"}
        assert desk.prompt == ["user: Say good morning"]
        assert outcome(await desk.turn(resume=[resolved(interrupt, approved=True)])) == {"type": "success"}
        assert desk.done == []


async def test_asking_for_the_same_again_asks_the_same_question_again():
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        del desk.page.messages[1:]
        assert asked(await desk.turn()) == [interrupt]
        assert len(desk.model.prompts) == 1


CUT = [s.TextDelta("Half"), ProviderError("The provider's stream broke off.", code="stream_cut")]


async def test_a_run_that_fails_behind_the_answer_is_gone_on_with_by_the_same_answer():
    async with page(SEND, CUT, says("It is sent"), model_retries=0) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        entry = resolved(interrupt, approved=True)
        failed = await desk.turn(resume=[entry])
        assert failed.types[-2:] == ["RUN_FINISHED", "RUN_ERROR"]
        assert desk.done == ["sent to Ann"]
        assert outcome(await desk.turn(resume=[entry])) == {"type": "success"}
        assert desk.done == ["sent to Ann"], "it is not sent again"


@pytest.mark.requirement("R-069")
async def test_a_page_goes_on_holding_what_is_asked_when_the_run_that_took_one_answer_fails():
    troubled: list[bool] = []

    @before_tool
    def nervous(call: BeforeTool) -> None:
        if troubled:
            raise RuntimeError("not now")

    async with page(TWO, says("Both are sent"), hooks=[nervous]) as desk:
        ann, bob = asked(await desk.turn("Write to both"))
        troubled.append(True)
        failed = await desk.turn(resume=[resolved(ann, approved=True)])
        assert failed.events[-1]["code"] == "hook_failed"
        assert "RUN_FINISHED" not in failed.types, "it would take both questions from the page"
        troubled.clear()
        answer = await desk.turn(resume=[resolved(ann, approved=True), resolved(bob, approved=True)])
        assert outcome(answer) == {"type": "success"}
        assert desk.done == ["sent to Ann", "sent to Bob"]


async def test_a_stop_while_an_approved_call_runs_closes_what_was_asked():
    begun, never = asyncio.Event(), asyncio.Event()

    @tool(approval=True)
    async def slow(name: str) -> str:
        """Take long."""
        begun.set()
        await never.wait()
        return name

    both = calls(("slow", '{"name": "a"}'), ("slow", '{"name": "b"}'))
    async with page(both, says("Stopped"), tools=[slow]) as desk:
        first, _ = asked(await desk.turn("Both"))
        going = asyncio.create_task(desk.turn(resume=[resolved(first, approved=True)]))
        await asyncio.wait_for(begun.wait(), 10)
        [run] = await desk.served.bridge.supervisor.journal.active_runs()
        assert (await desk.served.http.post(f"/api/agent-runs/{run.run_id}/cancel")).status_code in (200, 202)
        answer = await going
        assert outcome(answer) == {"type": "cancelled"}
        assert len(results(answer)) == 2
        assert outcome(await desk.turn("And now?")) == {"type": "success"}


# --- policies -----------------------------------------------------------------------------------------------------


async def test_a_policy_says_which_calls_need_an_approval():
    done: list[str] = []

    @tool(approval=lambda args, ctx: args["amount"] > 100)
    async def pay(amount: int) -> str:
        """Pay."""
        done.append(f"paid {amount}")
        return "Paid."

    rounds = (calls(("pay", '{"amount": 5}')), calls(("pay", '{"amount": 500}')), says("Paid"))
    async with page(*rounds, tools=[pay]) as desk:
        [interrupt] = asked(await desk.turn("Pay"))
        assert done == ["paid 5"]
        assert interrupt["metadata"] == {"toolName": "pay", "args": {"amount": 500}}


async def test_a_policy_that_fails_lets_nothing_run():
    @tool(approval=lambda args, ctx: args["nowhere"])
    async def pay() -> str:
        """Pay."""
        raise AssertionError("never")

    async with page(calls(("pay", "{}")), tools=[pay]) as desk:
        answer = await desk.turn("Pay")
        assert (answer.events[-1]["type"], answer.events[-1]["code"]) == ("RUN_ERROR", "hook_failed")


async def test_calls_that_may_run_together_do_not_wait_for_the_one_that_is_asked_about():
    done: list[str] = []

    @tool(parallel=True, approval=lambda args, ctx: args["key"] == "secret")
    async def look(key: str) -> str:
        """Look."""
        done.append(key)
        return key

    both = calls(("look", '{"key": "secret"}'), ("look", '{"key": "open"}'))
    async with page(both, says("Seen"), tools=[look]) as desk:
        [interrupt] = asked(await desk.turn("Look"))
        assert done == ["open"]
        await desk.turn(resume=[resolved(interrupt, approved=True)])
        assert done == ["open", "secret"]


async def test_an_approver_policy_keeps_the_one_who_asked_from_approving():
    @tool(approval=True, approvers=lambda principal, requester: principal.id != requester)
    async def pay() -> str:
        """Pay."""
        raise AssertionError("never")

    async with page(calls(("pay", "{}")), tools=[pay]) as desk:
        [interrupt] = asked(await desk.turn("Pay"))
        assert asked(await desk.turn(resume=[resolved(interrupt, approved=True)])) == [interrupt]


# --- children -----------------------------------------------------------------------------------------------------


def a_family(done: list[str]) -> Agent:
    @tool(approval=True)
    async def publish(title: str) -> str:
        """Publish."""
        done.append(f"published {title}")
        return "Published."

    model = ScriptedProvider(calls(("publish", '{"title": "Tea"}'), text="Publishing."), says("It is out"))
    return Agent("writer", model=model, tools=[publish])


@pytest.mark.requirement("R-174")
async def test_what_a_child_asks_is_asked_of_the_page_and_answered_through_its_parent():
    done: list[str] = []
    async with page(calls(("writer", '{"prompt": "Write"}')), says("All done"), tools=[a_family(done)]) as desk:
        first = await desk.turn("Write about tea")
        [interrupt] = asked(first)
        [closed] = [event for event in first.events if event["type"] == "SUBAGENT_FINISHED"]
        assert closed["outcome"] == {"type": "suspended", "interruptIds": [interrupt["id"]]}
        assert interrupt["subagentRunId"] == closed["subagentRunId"]
        second = await desk.turn(resume=[resolved(interrupt, approved=True)])
        assert done == ["published Tea"]
        assert results(second)["call_0"] == "It is out"
        assert outcome(second) == {"type": "success"}
        assert desk.prompt[-1] == "output It is out"
        assert [m["id"] for m in desk.page.messages] == [m["id"] for m in await desk.held()]


async def test_a_child_that_asks_is_declined_through_its_parent():
    done: list[str] = []
    async with page(calls(("writer", '{"prompt": "Write"}')), says("A pity"), tools=[a_family(done)]) as desk:
        [interrupt] = asked(await desk.turn("Write about tea"))
        assert outcome(await desk.turn(resume=[cancelled(interrupt)])) == {"type": "success"}
        assert done == []


# --- the way back -------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("event", [True, False], ids=["with the event", "with the run's id"])
async def test_a_page_made_for_langgraph_answers_by_a_value(event: bool):
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        command: JsonObject = {"resume": '{"approved": true}'}
        if event:
            command["interruptEvent"] = orjson.dumps(interrupt).decode()
        run = "r77" if event else "r1"
        answer = await desk.turn(run=run, forwardedProps={"command": command})
        assert outcome(answer) == {"type": "success"}
        assert desk.done == ["sent to Ann"]


async def test_a_value_that_is_not_certainly_meant_for_the_question_answers_nothing():
    async with page(SEND, says("It is sent")) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        answer = await desk.turn(run="r77", forwardedProps={"command": {"resume": {"approved": True}}})
        assert asked(answer) == [interrupt]
        assert desk.done == []


async def test_an_open_question_survives_the_process(tmp_path: Path):
    store = f"sqlite:///{tmp_path}/s.db"
    async with page(SEND, store=store) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        shown = desk.page
    async with page(says("It is sent"), store=store) as again:
        again.page, again.run = shown, 10
        assert outcome(await again.turn(resume=[resolved(interrupt, approved=True)])) == {"type": "success"}
        assert again.done == ["sent to Ann"]


async def test_a_tool_that_is_gone_or_other_when_the_answer_comes_releases_nothing(tmp_path: Path):
    store = f"sqlite:///{tmp_path}/s.db"
    async with page(SEND, store=store) as desk:
        [interrupt] = asked(await desk.turn("Write to Ann"))
        shown = desk.page

    @tool(approval=True)
    async def send(address: str) -> str:
        """Send a message."""
        raise AssertionError("never")

    async with page(says("It could not be sent"), store=store, tools=[send]) as again:
        again.page, again.run = shown, 10
        answer = await again.turn(resume=[resolved(interrupt, approved=True)])
        assert "address" in results(answer)["call_0"]


async def test_a_tool_that_asks_for_something_else_the_second_time_fails():
    times = itertools.count(1)

    @tool
    async def order(ctx: ToolContext) -> str:
        """Order."""
        try:
            return str(await ctx.interrupt(message=f"Question {next(times)}?"))
        except ToolError:
            return "as if nothing had happened"

    async with page(calls(("order", "{}")), says("Failed"), tools=[order]) as desk:
        [interrupt] = asked(await desk.turn("Order"))
        answer = await desk.turn(resume=[answered(interrupt, "yes")])
        assert "asked for something else than when it was suspended" in results(answer)["call_0"]


@pytest.mark.requirement("R-202")
async def test_the_journal_alone_says_who_let_which_call_run_and_what_came_of_it():
    async with page(SEND, says("Sent")) as desk:
        asking = await desk.turn("Write to Ann")
        [interrupt] = asked(asking)
        answer = await desk.turn(resume=[resolved(interrupt, approved=True)])
        facts: dict[str, JsonObject] = {}
        for run in (asking, answer):
            journal = await desk.served.get(f"/api/agent-runs/{run.headers['x-run-id']}/events")
            for line in journal.body.decode().split("\n"):
                if line.startswith("data: "):
                    event = orjson.loads(line[6:])
                    facts.setdefault(event["event_type"], event["payload"])
        call = facts["tool.call.committed"]["tool_call_id"]
        assert facts["interrupt.raised"]["tool_call_id"] == call
        assert facts["interrupt.raised"]["interrupt_id"] == interrupt["id"]
        given = facts["interrupt.answered"]
        assert (given["interrupt_id"], given["payload"]) == (interrupt["id"], {"approved": True})
        assert given["answered_by"] == "anonymous"
        assert facts["tool.execution.started"]["tool_call_id"] == call
        output = facts["tool.call.completed"]
        assert (output["tool_call_id"], output["result"], output["kind"]) == (call, "Sent to Ann.", "result")
