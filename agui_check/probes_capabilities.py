"""Probes of capabilities: their shape, and whether what is declared is so, as far as it can be provoked."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urljoin

from agui_check.findings import JsonObject, as_object, as_objects
from agui_check.inquiry import BRIDGE, LACKS, SCRIPT, Inquiry, Probe, call, new, probe, tool
from agui_check.schema import errors_of
from agui_check.target import PROTOBUF

_NOWHERE: Final = "no route for capabilities was found; the protocol defines none"
_GATED: Final = "send_email"
_MAIL: Final = {"to": "ada@example.org", "subject": "Hello", "body": "How are you?"}


def _about_capabilities(*requirements: str) -> Callable[[Callable[[Inquiry, Any], Awaitable[None]]], Probe]:
    """A probe that begins with the capabilities that are declared; left out if none are."""

    def made(work: Callable[[Inquiry, Any], Awaitable[None]]) -> Probe:
        async def begin(i: Inquiry) -> None:
            found, declared = await _declared(i)
            if found:
                i.extensions.add("capabilities")
                await work(i, declared)
            else:
                i.skip(_NOWHERE, *requirements)

        begin.__name__ = getattr(work, "__name__", "probe")
        return probe(*requirements)(begin)

    return made


async def _declared(i: Inquiry) -> tuple[bool, Any]:
    """Whether a route for capabilities was found, and the document there; None if it is no JSON."""
    for url in (f"{i.target.url.rstrip('/')}/capabilities", f"{i.target.origin}/capabilities"):
        answer = await i.target.get(url)
        if answer.status == 200 and answer.media_type == "application/json":
            try:
                return True, json.loads(answer.body)
            except ValueError:
                return True, None
    return False, None


@_about_capabilities("R-190", "R-191")
async def capabilities_have_their_shape(i: Inquiry, declared: Any) -> None:
    errors = errors_of("AgentCapabilities", declared)
    i.expect("R-191", not errors, f"Capabilities: {'; '.join(errors[:3])}")
    i.passed("R-190")


@_about_capabilities("R-194")
async def tools_of_the_page_are_never_listed(i: Inquiry, declared: Any) -> None:
    theirs = new("tool").replace("-", "_")
    await i.say(tools=[tool(theirs)])
    _, afterwards = await _declared(i)
    names = [str(each.get("name")) for each in as_objects(_at(afterwards, "tools", "items"))]
    i.expect("R-194", theirs not in names, "A tool of a page is listed among those of the agent.")
    twice = sorted({name for name in names if names.count(name) > 1})
    i.expect("R-194", not twice, f"The agent's tools are listed more than once: {', '.join(twice)}.")


@_about_capabilities("R-193")
async def who_declares_a_resumable_stream_resumes_it(i: Inquiry, declared: Any) -> None:
    if _at(declared, "transport", "resumable") is not True:
        i.skip("resumable streams are not declared", "R-193")
        return
    if BRIDGE not in i.facilities:
        i.skip(LACKS[BRIDGE], "R-193")
        return
    exchange = await i.say()
    if not exchange.stream.ids:
        i.fault("R-193", "Resumable streams are declared, and the frames have no ids to go on from.")
        return
    cursor = exchange.stream.ids[len(exchange.stream.ids) // 2]
    location = urljoin(i.target.url, exchange.headers["location"])
    rest = await i.target.get(f"{location}/events?format=agui", last_event_id=cursor)
    i.expect("R-193", rest.body != b"" and exchange.body.endswith(rest.body), "A stream does not go on at its cursor.")


# --- what is declared and can be seen ---------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class Claim:
    """A flag and a look at whether it holds; None if that could not be seen. `needs` as for a probe."""

    look: Callable[[Inquiry, JsonObject], Awaitable[bool | None]]
    needs: tuple[str, ...] = ()


async def _streams(i: Inquiry, declared: JsonObject) -> bool:
    return (await i.say()).streams


async def _is_binary(i: Inquiry, declared: JsonObject) -> bool:
    return (await i.target.post(i.body(), accept=PROTOBUF)).media_type == PROTOBUF


async def _takes_tools(i: Inquiry, declared: JsonObject) -> bool:
    pick = tool("agui_check_pick")
    exchange = await i.script({"tool_calls": [call(pick["name"])]}, tools=[pick])
    return bool(exchange.of("TOOL_CALL_START")) and not exchange.of("TOOL_CALL_RESULT")


async def _thinks(i: Inquiry, declared: JsonObject) -> bool:
    exchange = await i.script({"reasoning": "One two three", "text": "Yes"})
    return bool(exchange.of("REASONING_MESSAGE_CONTENT", "REASONING_MESSAGE_CHUNK"))


async def _asks(i: Inquiry, declared: JsonObject) -> bool | None:
    """Seen with the one tool that is known to ask, where the agent has it."""
    names = [each.get("name") for each in as_objects(_at(declared, "tools", "items"))]
    if _GATED not in names:
        return None
    exchange = await i.script({"tool_calls": [call(_GATED, _MAIL)]})
    return exchange.outcome == "interrupt" and bool(exchange.interrupts)


CLAIMS: Final[dict[str, Claim]] = {
    "transport.streaming": Claim(_streams),
    "transport.httpBinary": Claim(_is_binary),
    "tools.clientProvided": Claim(_takes_tools, (SCRIPT,)),
    "reasoning.supported": Claim(_thinks, (SCRIPT,)),
    "humanInTheLoop.interrupts": Claim(_asks, (SCRIPT,)),
}
"""The flags that can be seen from outside, as `group.name`."""


@_about_capabilities("R-192")
async def what_is_declared_is_so(i: Inquiry, declared: Any) -> None:
    seen = False
    for flag, claim in CLAIMS.items():
        said = _at(declared, *flag.split("."))
        if not isinstance(said, bool) or not i.facilities.issuperset(claim.needs):
            continue
        holds = await claim.look(i, as_object(declared))
        if holds is not None:
            seen = True
            i.expect(
                "R-192", holds is said, f"`{flag}` is declared as {str(said).lower()}, and is {str(holds).lower()}."
            )
    if not seen:
        i.skip("nothing is declared that could be seen", "R-192")


def _at(document: Any, *path: str) -> Any:
    for name in path:
        document = as_object(document).get(name)
    return document


PROBES: Final[tuple[Probe, ...]] = (
    capabilities_have_their_shape,
    tools_of_the_page_are_never_listed,
    who_declares_a_resumable_stream_resumes_it,
    what_is_declared_is_so,
)
