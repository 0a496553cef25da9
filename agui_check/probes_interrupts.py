"""Probes of interrupts and resume."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable
from typing import Any, Final

from agui_check.findings import JsonObject, as_object
from agui_check.inquiry import SCRIPT, Inquiry, Probe, call, new, probe, scripted, user
from agui_check.probes_runs import next_body
from agui_check.target import Exchange

_TOOL: Final = "send_email"
_MAIL: Final = {"to": "ada@example.org", "subject": "Hello", "body": "How are you?"}
_REFUSED: Final = re.compile(
    r"declin|denied|deny|reject|refus|cancel|abandon|not (?:approved|run|answered|sent)|error", re.I
)
_NONE: Final = "the server's agent has no tool that asks for approval, or it does not interrupt"


def entry(interrupt: JsonObject, status: str = "resolved", payload: Any = None) -> JsonObject:
    """A resume entry; without a payload one is made that an approval would accept."""
    made: JsonObject = {"interruptId": interrupt["id"], "status": status}
    if status == "resolved":
        made["payload"] = payload if payload is not None else _approval(interrupt.get("responseSchema"))
    return made


def _approval(schema: Any) -> Any:
    """An approval of the advertised shape: the first boolean member is true."""
    properties = as_object(as_object(schema).get("properties"))
    names = [name for name, each in properties.items() if as_object(each).get("type") == "boolean"]
    return {names[0] if names else "approved": True}


@probe("R-167")
async def an_answer_to_nothing_is_passed_over(i: Inquiry) -> None:
    resume = [{"interruptId": new("interrupt"), "status": "resolved", "payload": {"approved": True}}]
    exchange = await i.say("Hello", resume=resume)
    fine = exchange.streams and exchange.outcome == "success"
    what = exchange.last.get("code") or exchange.answer
    i.expect("R-167", fine, f"A resume that names nothing is answered with {exchange.answer} ({what}).")
    plain = await i.say("Hello")
    if fine and plain.text and not exchange.text:
        i.fault("R-167", "A user message beside a resume that names nothing is not answered.", remark=True)


async def _asked(i: Inquiry, number: int = 1) -> tuple[Exchange, list[JsonObject]]:
    """A run that stops to ask for approval of so many calls, and its interrupts."""
    calls = [call(_TOOL, {**_MAIL, "subject": f"Mail {n}"}) for n in range(number)]
    exchange = await i.run(i.body(scripted({"tool_calls": calls}, {"text": "Sent."})))
    return exchange, exchange.interrupts


def _with_interrupts(number: int, *requirements: str) -> Callable[[Callable[..., Awaitable[None]]], Probe]:
    """A probe that begins with a run that asked for approval; left out if none did."""

    def made(work: Callable[..., Awaitable[None]]) -> Probe:
        async def begin(i: Inquiry) -> None:
            exchange, interrupts = await _asked(i, number)
            if len(interrupts) != number:
                if interrupts:
                    i.fault("R-161", f"{number} gated calls lead to {len(interrupts)} interrupts.", remark=True)
                asks = [each["name"] for each in exchange.of("CUSTOM") if "interrupt" in each["name"].lower()]
                if asks and exchange.outcome == "success":
                    i.fault(
                        "R-160", f"A run that stops to ask ends as success, and CUSTOM {asks[0]} says why it stopped."
                    )
                i.skip(_NONE, *requirements, "R-160", "R-161", "R-162", "R-163", "R-164", "R-175")
                return
            i.expect("R-201", not _done(exchange), "A gated call is answered before anybody approved it.")
            await work(i, exchange, interrupts)

        begin.__name__ = getattr(work, "__name__", "probe")
        return probe(*requirements, "R-201", needs=(SCRIPT,))(begin)

    return made


def _done(exchange: Exchange) -> list[JsonObject]:
    """The results of calls that were executed, as far as words tell: those that were refused say so."""
    return [each for each in exchange.of("TOOL_CALL_RESULT") if _REFUSED.search(str(each.get("content"))) is None]


@_with_interrupts(1, "R-164", "R-165", "R-170")
async def an_approval_does_the_work_once(i: Inquiry, asked: Exchange, interrupts: list[JsonObject]) -> None:
    i.passed("R-164")
    body = next_body(i, asked, resume=[entry(interrupts[0])])
    first = await i.run(body)
    i.expect("R-165", bool(_done(first)), f"An approval leads to {first.answer}, and no result of the call.")
    again = await i.run(next_body(i, asked, resume=[entry(interrupts[0])]))
    new_results = {each["messageId"] for each in _done(again)} - {each["messageId"] for each in _done(first)}
    i.expect("R-170", not new_results, "The same answer a second time does the work again.")


@_with_interrupts(1, "R-165")
async def a_cancelled_approval_leaves_the_work_undone(
    i: Inquiry, asked: Exchange, interrupts: list[JsonObject]
) -> None:
    exchange = await i.run(next_body(i, asked, resume=[entry(interrupts[0], "cancelled")]))
    i.expect("R-165", not _done(exchange), "A cancelled interrupt does the work all the same.")


@_with_interrupts(2, "R-168", "R-169")
async def an_interrupt_without_an_answer_stays_open(i: Inquiry, asked: Exchange, interrupts: list[JsonObject]) -> None:
    exchange = await i.run(next_body(i, asked, resume=[entry(interrupts[0])]))
    i.expect("R-168", len(_done(exchange)) < 2, "An interrupt that nobody answered releases its call.")
    _still_open(i, exchange, interrupts[1]["id"], "A partial resume")


@_with_interrupts(1, "R-168", "R-169")
async def a_new_message_is_no_approval(i: Inquiry, asked: Exchange, interrupts: list[JsonObject]) -> None:
    exchange = await i.run(next_body(i, asked, user("Hello again")))
    i.expect("R-168", not _done(exchange), "A new message while an interrupt is open does the gated work.")
    _still_open(i, exchange, interrupts[0]["id"], "A new message while an interrupt is open")


@_with_interrupts(1, "R-168", "R-169")
async def a_foreign_answer_is_no_approval(i: Inquiry, asked: Exchange, interrupts: list[JsonObject]) -> None:
    foreign = entry({**interrupts[0], "id": new("interrupt")})
    exchange = await i.run(next_body(i, asked, resume=[foreign]))
    i.expect("R-168", not _done(exchange), "A resume under an unknown id does the gated work.")
    _still_open(i, exchange, interrupts[0]["id"], "A resume under an unknown id")


@_with_interrupts(1, "R-172")
async def a_payload_of_another_shape_is_no_approval(i: Inquiry, asked: Exchange, interrupts: list[JsonObject]) -> None:
    if "responseSchema" not in interrupts[0]:
        i.skip("the interrupt advertises no responseSchema", "R-172")
        return
    wrong = entry(interrupts[0], payload=["not", "an", "answer"])
    exchange = await i.run(next_body(i, asked, resume=[wrong]))
    i.expect("R-172", not _done(exchange), "A payload that breaks the advertised schema does the gated work.")


def _still_open(i: Inquiry, exchange: Exchange, id_: str, what: str) -> None:
    open_again = any(each.get("id") == id_ for each in exchange.interrupts)
    refused = exchange.refused or (exchange.streams and [each["type"] for each in exchange.events] == ["RUN_ERROR"])
    fine = refused or exchange.outcome == "error" or open_again
    i.expect("R-169", fine, f"{what} ends as {exchange.outcome} though an interrupt is open.")


PROBES: Final[tuple[Probe, ...]] = (
    an_answer_to_nothing_is_passed_over,
    an_approval_does_the_work_once,
    a_cancelled_approval_leaves_the_work_undone,
    an_interrupt_without_an_answer_stays_open,
    a_new_message_is_no_approval,
    a_foreign_answer_is_no_approval,
    a_payload_of_another_shape_is_no_approval,
)
