"""A check of one endpoint: find out what it offers, then ask it everything that can be asked."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Final

from agui_check import probes_capabilities, probes_input, probes_interrupts, probes_runs, probes_transport
from agui_check.inquiry import BRIDGE, CANCEL, FAIL, LACKS, SCRIPT, TOKENS, Inquiry, Probe, scripted
from agui_check.report import Report
from agui_check.requirements import REQUIREMENTS
from agui_check.target import Target, Unreachable

PROBES: Final[tuple[Probe, ...]] = (
    *probes_transport.PROBES,
    *probes_input.PROBES,
    *probes_runs.PROBES,
    *probes_interrupts.PROBES,
    *probes_capabilities.PROBES,
)

_NO_ENDPOINT: Final = (401, 403, 404, 405, 501)
"""What a server answers that has no such route, or does not let us in."""

_WORDS = "agui-check says so"


async def check(
    url: str,
    *,
    headers: Mapping[str, str] | None = None,
    only: Collection[str] = tuple(REQUIREMENTS),
    timeout: float = 20,
    on_probe: Callable[[Probe, int, int], None] | None = None,
) -> Report:
    """Check an AG-UI endpoint; `only` are the ids of the wanted requirements, `timeout` bounds a request in seconds.

    `on_probe` is told of each probe before it begins, with its number from 0 and how many there are. Raises
    Unreachable when there is nothing to check.
    """
    target = Target(url, headers or {}, timeout)
    inquiry = Inquiry(target)
    try:
        await _discover(inquiry)
        probes = _probes_for(set(only))
        for number, each in enumerate(probes):
            if on_probe is not None:
                on_probe(each, number, len(probes))
            await _probe(inquiry, each)
    finally:
        await target.close()
    results = inquiry.ledger.results(
        [id_ for id_ in REQUIREMENTS if id_ in only], departing=BRIDGE in inquiry.facilities
    )
    facilities, extensions = tuple(sorted(inquiry.facilities)), tuple(sorted(inquiry.extensions))
    return Report(url, results, facilities, extensions, inquiry.streams)


def _probes_for(only: set[str]) -> Sequence[Probe]:
    """The probes of these requirements; all of them when one is judged by every stream."""
    wanted = [each for each in PROBES if only & set(each.requirements)]
    return wanted if only <= {id_ for each in wanted for id_ in each.requirements} else PROBES


async def _probe(inquiry: Inquiry, each: Probe) -> None:
    inquiry.probe = each.name
    lacking = next((need for need in each.needs if need not in inquiry.facilities), None)
    if lacking is None:
        await each.work(inquiry)
    else:
        inquiry.skip(LACKS[lacking], *each.requirements)


async def _discover(i: Inquiry) -> None:
    """What the server understands. Raises Unreachable if it is no AG-UI endpoint that lets us in."""
    i.probe = probes_transport.a_plain_question_is_answered.name
    await probes_transport.a_plain_question_is_answered.work(i)
    first = i.first
    if first is None or first.status in _NO_ENDPOINT or first.media_type == "text/html":
        answer = "nothing" if first is None else first.answer
        closed = first is not None and first.status in (401, 403)
        hint = "give credentials with --header" if closed else "there is no AG-UI endpoint"
        raise Unreachable(f"POST {i.target.url} is answered with {answer}: {hint}.")
    i.probe = "what the server understands"
    if (await i.say(scripted({"text": _WORDS}))).text == _WORDS:
        i.facilities.add(SCRIPT)
    if (await i.say("/tokens 3")).text == "tok " * 3:
        i.facilities.add(TOKENS)
    if first.outcome == "success" and (await i.say("/fail 1")).outcome != "success":
        i.facilities.add(FAIL)
    if SCRIPT in i.facilities:
        i.extensions.add("scripted model")
    if first.headers.get("location", "").startswith("/api/agent-runs/"):
        i.facilities |= {BRIDGE, CANCEL}
