"""The one gate that every call passes before it may run: an ordered table of checks, each allow, deny or ask.

Pure: a call and a toolbox in, a verdict out. The first denial ends the judgement; the checks behind it are not
evaluated and not listed. An ask does not: a later check may still deny. Only a call that every check allows may run.
The verdict's list of checks is what the audit records.

Hooks and the tool's own policy have to be waited for, and nothing waits here: at their place the judgement yields what
it wants to know, and is sent the hooks' ruling, or the case's approval.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias, cast

import orjson

from runtime.canonical import Json, JsonObject
from runtime.interrupts import Approval
from runtime.items import Content
from runtime.tools.toolbox import InvalidArguments, Tool, Toolbox

ALLOW = "allow"
DENY = "deny"
ASK = "ask"

_NO_ARGUMENTS = frozenset({"", "null"})
_MAX_NAME = 80


class Call(Protocol):
    """What the gate looks at of a committed call (`events.ToolCallCommitted` is one)."""

    @property
    def tool_name(self) -> str: ...
    @property
    def arguments_json(self) -> str: ...
    @property
    def malformed(self) -> bool: ...


HOOKS = "hooks"
APPROVAL = "approval"
"""What a judgement wants to know."""


class Checked(NamedTuple):
    """One line of the audit: a check, its outcome (`allow`, `deny`, `ask`), and why if it did not allow."""

    name: str
    outcome: str
    reason: str | None


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says. `checks` are in the order of their evaluation.

    `arguments` are the tool's keyword arguments as far as the call was not denied; `message` is what the model is
    told if it was. `used` are the arguments as JSON, `changed` says that they are a hook's and not the model's.
    `answer` is the output that a hook gave in the tool's place, `stop` why it wants the run to be stopped. `asks` if
    nobody denies the call, and somebody has to be asked for it.
    """

    allowed: bool
    checks: tuple[Checked, ...]
    arguments: dict[str, object] | None
    message: str | None
    used: JsonObject | None = None
    changed: bool = False
    answer: Content | None = None
    stop: str | None = None
    asks: bool = False


@dataclass(slots=True)
class Case:
    """One call under judgement, and what the checks so far found out: each builds on those before it."""

    call: Call
    toolbox: Toolbox
    client_tools: Collection[str] = ()
    affordable: bool = True
    has_hooks: bool = False
    at_provider: bool = False
    """Whether the provider performs it: then there is no tool of ours, and only an approval counts."""
    tool: Tool | None = None
    parsed: JsonObject | None = None
    arguments: dict[str, object] | None = None
    used: JsonObject | None = None
    """The arguments as JSON with which it would run: the model's, or what a hook or a person made of them."""
    ruling: Ruling | None = None
    asked: Asked | None = None
    offered: Collection[str] = ()
    """What else the model was offered; calls of it are answered elsewhere."""

    @property
    def is_asked_about(self) -> bool:
        """Whether it may need an approval."""
        return self.at_provider or (self.tool is not None and self.tool.approval is not False)


@dataclass(frozen=True, slots=True)
class Ruling:
    """What the hooks came to, one after the other: at most one of `denied` (what the model is told), `answer`, `stop`.

    `by` is the hook that decided so. `parsed` and `arguments` are those that a hook changed the call's to, validated.
    """

    by: str | None = None
    denied: str | None = None
    answer: Content | None = None
    stop: str | None = None
    parsed: JsonObject | None = None
    arguments: dict[str, object] | None = None


@dataclass(frozen=True, slots=True)
class Asked:
    """What is known of the question whether a call may run: whether it has to be asked, and what was answered."""

    needed: bool
    approval: Approval | None = None


@dataclass(frozen=True, slots=True)
class Finding:
    """The answer of one check: `reason` for the audit, `message` for the model."""

    outcome: str
    reason: str | None = None
    message: str | None = None


_FINE = Finding(ALLOW)

Check: TypeAlias = Callable[[Case], Finding]


def judge(call: Call, toolbox: Toolbox, client_tools: Collection[str] = (), *, affordable: bool = True) -> Verdict:
    """The verdict on a call that no hook is asked about.

    `client_tools` names the client's own tools: there are such tools, but a call of one that comes here, malformed, is
    never ours to run. `affordable` says whether the run's budget has a tool call left.
    """
    judgement = judging(Case(call, toolbox, client_tools, affordable))
    try:
        next(judgement)
    except StopIteration as end:
        return end.value
    raise AssertionError("a judgement without hooks and policies asks nobody")


def judging(case: Case) -> Generator[str, None, Verdict]:
    """Pass a call through every check, in order, until one denies it.

    What a check has to know that must be waited for is yielded at its place: with `HOOKS` the case is to be given its
    `ruling`, with `APPROVAL` what was `asked`. Neither comes for a case that needs none, or was denied before.
    """
    checked: list[Checked] = []
    for name, check in CHECKS.items():
        if check is _hook and case.has_hooks and not case.at_provider:
            yield HOOKS
        elif check is _approval and case.is_asked_about:
            yield APPROVAL
        finding = check(case)
        checked.append(Checked(name, finding.outcome, finding.reason))
        if finding.outcome == DENY:
            return _verdict(case, checked, denied=finding)
    return _verdict(case, checked)


def _verdict(case: Case, checked: list[Checked], denied: Finding | None = None) -> Verdict:
    ruling = case.ruling or Ruling()
    outcomes = [line.outcome for line in checked]
    return Verdict(
        allowed=all(outcome == ALLOW for outcome in outcomes),
        checks=tuple(checked),
        arguments=case.arguments if denied is None else None,
        message=denied.message if denied is not None else None,
        used=case.used,
        changed=case.used is not case.parsed,
        answer=ruling.answer,
        stop=ruling.stop,
        asks=ASK in outcomes and DENY not in outcomes,
    )


def _declared(case: Case) -> Finding:
    if case.at_provider:
        return _FINE
    case.tool = case.toolbox.get(case.call.tool_name)
    if case.tool is not None:
        return _FINE
    if case.call.tool_name in case.client_tools:
        return _FINE
    known = [*case.toolbox.names, *case.client_tools, *case.offered]
    offer = f"The tools are: {', '.join(known)}." if known else "There are no tools."
    return Finding(DENY, "unknown tool", f"There is no tool named {case.call.tool_name[:_MAX_NAME]!r}. {offer}")


def _arguments(case: Case) -> Finding:
    if case.call.malformed:
        return _not_an_object(case, "")
    text = case.call.arguments_json
    try:
        parsed: Json = {} if text.strip() in _NO_ARGUMENTS else orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return _not_an_object(case, f" ({error})")
    if not isinstance(parsed, dict):
        return _not_an_object(case, "")
    case.parsed = case.used = cast("JsonObject", parsed)
    return _FINE


def _not_an_object(case: Case, where: str) -> Finding:
    message = (
        f"The arguments of {case.call.tool_name} are not a well-formed JSON object{where}. "
        "The tool was not run; call it again with a JSON object."
    )
    return Finding(DENY, "malformed arguments", message)


def _schema(case: Case) -> Finding:
    if case.at_provider:
        return _FINE
    if case.tool is None:
        return Finding(DENY, "the client's tool", f"{case.call.tool_name} is the client's to run.")
    assert case.parsed is not None, "stands behind arguments"
    try:
        case.arguments = case.tool.validate(case.parsed)
    except InvalidArguments as error:
        return Finding(DENY, "invalid arguments", error.message)
    return _FINE


def _budget(case: Case) -> Finding:
    if case.affordable:
        return _FINE
    return Finding(DENY, "over budget", "The run has used up its tool calls; this one was not run.")


def _hook(case: Case) -> Finding:
    ruling = case.ruling
    if ruling is None:
        return _FINE
    if ruling.denied is not None:
        return Finding(DENY, f"denied by {ruling.by}", ruling.denied)
    if ruling.answer is not None:
        return Finding(DENY, f"answered by {ruling.by}")
    if ruling.stop is not None:
        return Finding(DENY, f"the run is stopped by {ruling.by}")
    if ruling.arguments is not None:
        case.arguments, case.used = ruling.arguments, ruling.parsed
    return _FINE


def _approval(case: Case) -> Finding:
    asked = case.asked
    if asked is None or not asked.needed:
        return _FINE
    if (given := asked.approval) is None:
        return Finding(ASK, "nobody has said yet whether it may run")
    if not given.approved:
        why = f": {given.reason}" if given.reason else ""
        return Finding(DENY, "declined by the user", f"Declined by the user{why}. {case.call.tool_name} was not run.")
    if given.edited is not None and case.tool is not None:
        try:
            case.arguments, case.used = case.tool.validate(given.edited), given.edited
        except InvalidArguments as error:
            return Finding(DENY, "invalid arguments of the user", f"{error.message}\nThe tool was not run.")
    return _FINE


CHECKS: dict[str, Check] = {
    "declared": _declared,
    "arguments": _arguments,
    "schema": _schema,
    "budget": _budget,
    "hook": _hook,
    "approval": _approval,
}
"""The gate, in order."""
