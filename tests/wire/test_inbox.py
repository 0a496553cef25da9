"""The inbox: what is asked is listed for those who may answer, and answered from outside the page."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from agui_bridge import Agent, Bridge, Settings, ToolContext, tool
from runtime.testing import ScriptedProvider, calls, says
from tests.serving import Answer, JsonObject, Served, ask, listening
from tests.stores import Home
from tests.wire.test_owners import by_name

YES = {"status": "resolved", "payload": {"approved": True}}


class Office:
    """A server where people are known by name, and what its tools did."""

    def __init__(self, served: Served, done: list[str]) -> None:
        self.served = served
        self.done = done

    async def ask(self, text: str = "Pay", thread: str = "t1", who: str = "ann", **more: Any) -> Answer:
        answer = await self.served.run(ask(text, thread=thread, protocolVersion="1.0", **more), x_user=who)
        assert answer.status == 200, answer.body
        return answer

    async def open(self, who: str = "ann", **query: Any) -> list[JsonObject]:
        found = await self.served.http.get("/api/interrupts", params=query, headers={"x-user": who})
        assert found.status_code == 200, found.content
        return found.json()["interrupts"]

    async def answer(self, interrupt: JsonObject | str, body: Any = YES, who: str = "ann") -> Any:
        id_ = interrupt if isinstance(interrupt, str) else interrupt["interrupt_id"]
        return await self.served.http.post(f"/api/interrupts/{id_}/answer", json=body, headers={"x-user": who})

    async def facts(self, taken: Any, who: str = "ann") -> list[JsonObject]:
        """The facts of the run that an answer began, to its end."""
        assert taken.status_code == 202, taken.content
        return (await self.served.get(taken.json()["events_url"], x_user=who)).events


@asynccontextmanager
async def office(store: Any = "memory:", approvers: Any = None, **settings: Any) -> AsyncGenerator[Office, None]:
    done: list[str] = []

    @tool(approval=True, approvers=approvers)
    async def pay(amount: int) -> str:
        """Pay."""
        done.append(f"paid {amount}")
        return "Paid."

    @tool
    async def pick(ctx: ToolContext) -> str:
        """Ask for a colour."""
        return str(await ctx.interrupt(message="Which colour?", response_schema={"type": "string"}))

    rounds = [calls(("pay", '{"amount": 5}')), says("It is paid")] * 3
    clerk = Agent("clerk", model=ScriptedProvider(*rounds), tools=[pay])
    painter = Agent("painter", model=ScriptedProvider(calls(("pick", "{}")), says("Painted")), tools=[pick])
    given = Settings.model_validate({"drain_s": 0, **settings})
    bridge = Bridge({"clerk": clerk, "painter": painter}, store=store, settings=given, authenticate=by_name)
    async with listening(bridge.app) as url:
        served = Served(bridge, url)
        async with served.http:
            yield Office(served, done)


async def test_what_is_asked_is_listed_and_answered_without_the_page(home: Home):
    async with office(home.store()) as place:
        await place.ask()
        [interrupt] = await place.open()
        assert (interrupt["reason"], interrupt["tool_name"], interrupt["session_id"]) == ("tool_call", "pay", "t1")
        assert (interrupt["agent_name"], interrupt["owner_id"], interrupt["expired"]) == ("clerk", "ann", False)
        facts = await place.facts(await place.answer(interrupt))
        assert [fact["event_type"] for fact in facts][:2] == ["run.started", "interrupt.answered"]
        assert facts[1]["payload"]["answered_by"] == "ann"
        assert facts[-1]["event_type"] == "run.completed"
        assert place.done == ["paid 5"]
        assert await place.open() == []


async def test_the_same_answer_again_gives_the_same_run_and_another_one_is_refused():
    async with office() as place:
        await place.ask()
        [interrupt] = await place.open()
        taken, again = await place.answer(interrupt), await place.answer(interrupt)
        assert taken.json() == again.json()
        await place.facts(taken)
        refused = await place.answer(interrupt, {"status": "cancelled"})
        assert (refused.status_code, refused.json()["code"]) == (409, "interrupt_answered")
        assert refused.json()["details"]["run_id"] == taken.json()["run_id"]
        assert place.done == ["paid 5"]


async def test_many_who_answer_at_once_are_answered_by_one_run():
    async with office() as place:
        await place.ask()
        [interrupt] = await place.open()
        taken = await asyncio.gather(*(place.answer(interrupt) for _ in range(5)))
        assert len({each.json()["run_id"] for each in taken}) == 1
        await place.facts(taken[0])
        assert place.done == ["paid 5"]


async def test_what_somebody_else_is_asked_does_not_exist():
    async with office() as place:
        await place.ask()
        [interrupt] = await place.open()
        assert await place.open("bob") == []
        refused, missing = await place.answer(interrupt, who="bob"), await place.answer("int_nowhere", who="bob")
        assert (refused.status_code, refused.content) == (404, missing.content)
        assert place.done == []


async def test_where_another_person_has_to_approve_the_requester_is_refused_and_the_other_one_is_asked():
    async with office(approvers=lambda principal, requester: principal.id in ("bob", "cy")) as place:
        await place.ask()
        assert await place.open("ann") == []
        [interrupt] = await place.open("bob")
        assert interrupt["owner_id"] == "ann"
        refused = await place.answer(interrupt, who="ann")
        assert (refused.status_code, refused.json()["code"]) == (403, "not_an_approver")
        assert (await place.answer(interrupt, who="dan")).status_code == 404
        taken = await place.answer(interrupt, who="bob")
        facts = await place.facts(taken, who="ann")
        assert facts[1]["payload"]["answered_by"] == "bob"
        assert place.done == ["paid 5"]
        assert (await place.served.get(taken.json()["events_url"], x_user="bob")).status == 404


@pytest.mark.parametrize(
    ("body", "code"),
    [
        ({"status": "resolved", "payload": {"approved": 1}}, "answer_unfit"),
        ({"status": "resolved"}, "answer_unfit"),
        ({"status": "maybe"}, "invalid_input"),
        ({}, "invalid_input"),
        ([], "invalid_input"),
        ({"status": "resolved", "answer": True}, "invalid_input"),
    ],
)
async def test_an_answer_that_does_not_fit_is_refused_and_nothing_happens(body: Any, code: str):
    async with office() as place:
        await place.ask()
        [interrupt] = await place.open()
        refused = await place.answer(interrupt, body)
        assert (refused.status_code, refused.json()["code"]) == (422, code)
        assert await place.open() == [interrupt]
        assert place.done == []


async def test_questions_are_paged_from_the_newest():
    async with office() as place:
        for number in range(5):  # every other one pays
            await place.ask(thread=f"t{number}", run=f"r{number}")
        first = await place.served.http.get("/api/interrupts?limit=2", headers={"x-user": "ann"})
        assert [each["session_id"] for each in first.json()["interrupts"]] == ["t4", "t2"]
        rest = await place.open(limit=2, cursor=first.json()["next_cursor"])
        assert [each["session_id"] for each in rest] == ["t0"]


async def test_a_text_that_was_asked_for_is_what_the_tool_gets():
    async with office() as place:
        painted = await place.served.run(ask("Paint", protocolVersion="1.0"), "/agents/painter", x_user="ann")
        assert painted.events[-1]["outcome"]["type"] == "interrupt"
        [interrupt] = await place.open()
        facts = await place.facts(await place.answer(interrupt, {"status": "resolved", "payload": "blue"}))
        [output] = [fact["payload"]["result"] for fact in facts if fact["event_type"] == "tool.call.completed"]
        assert output == "blue"


async def test_a_page_sees_what_was_answered_elsewhere():
    async with office() as place:
        first = await place.ask()
        [interrupt] = first.events[-1]["outcome"]["interrupts"]
        await place.facts(await place.answer(interrupt["id"]))
        entry = {"interruptId": interrupt["id"], "status": "resolved", "payload": {"approved": True}}
        again = await place.ask("", run="r2", messages=[{"id": "u1", "role": "user", "content": "Pay"}], resume=[entry])
        assert again.events[-1]["outcome"] == {"type": "success"}
        assert place.done == ["paid 5"]
