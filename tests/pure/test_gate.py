"""The gate: what each check denies, what the audit and the model are told."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot

from runtime.events import ToolCallCommitted
from runtime.gate import APPROVAL, CHECKS, HOOKS, Asked, Case, Ruling, Verdict, judge, judging
from runtime.interrupts import Approval
from runtime.tools.toolbox import Toolbox, tool


def get_weather(city: str, days: int = 1) -> str:
    """Tell the weather."""
    return f"{city} {days}"


def get_time() -> str:
    """Tell the time."""
    return "noon"


BOX = Toolbox([get_weather, get_time])


def _call(name: str, arguments: str, *, malformed: bool = False) -> ToolCallCommitted:
    return ToolCallCommitted("call_1", name, arguments, "server", malformed)


def test_a_good_call_is_allowed_by_every_check_in_order():
    verdict = judge(_call("get_weather", '{"city": "Oslo"}'), BOX)

    assert verdict.allowed
    assert verdict.checks == (
        ("declared", "allow", None),
        ("arguments", "allow", None),
        ("schema", "allow", None),
        ("budget", "allow", None),
        ("hook", "allow", None),
        ("approval", "allow", None),
    )
    assert verdict.arguments == {"city": "Oslo", "days": 1}
    assert verdict.message is None


def test_an_unknown_tool_is_denied_and_the_known_ones_are_named():
    verdict = judge(_call("get_wether", "{}"), BOX)

    assert not verdict.allowed
    assert verdict.checks == (("declared", "deny", "unknown tool"),)
    assert verdict.message == snapshot("There is no tool named 'get_wether'. The tools are: get_weather, get_time.")


def test_without_tools_the_model_is_told_that_there_are_none():
    assert (
        judge(_call("x" * 500, "{}"), Toolbox()).message == f"There is no tool named '{'x' * 80}'. There are no tools."
    )


@pytest.mark.parametrize(
    "text", ['{"city": "Os', "[1]", '"Oslo"', "7", "{'city': 1}", '{"city": "\\ud800"}', "NaN", "{}{}"]
)
def test_arguments_that_are_no_json_object_are_denied_without_looking_at_the_schema(text: str):
    verdict = judge(_call("get_weather", text), BOX)

    assert not verdict.allowed
    assert verdict.arguments is None
    assert [line.outcome for line in verdict.checks] == ["allow", "deny"]
    assert verdict.message is not None
    assert "not a well-formed JSON object" in verdict.message
    assert "was not run" in verdict.message


def test_a_call_that_was_committed_as_malformed_is_denied_whatever_its_text():
    verdict = judge(_call("get_time", "{}", malformed=True), BOX)

    assert verdict.checks[-1] == ("arguments", "deny", "malformed arguments")


@pytest.mark.parametrize("text", ["", "  ", "null", "{}"])
def test_no_arguments_may_be_written_in_several_ways(text: str):
    assert judge(_call("get_time", text), BOX).allowed


def test_arguments_that_do_not_fit_the_schema_are_denied_with_every_problem():
    verdict = judge(_call("get_weather", '{"days": "3", "town": "Oslo"}'), BOX)

    assert verdict.checks[-1] == ("schema", "deny", "invalid arguments")
    assert verdict.message == snapshot("""\
The arguments of get_weather do not fit its parameters:
- city is missing
- days: Input should be a valid integer (given: a string)
- town is no argument of this tool (its arguments: city, days)\
""")


@given(name=st.sampled_from(["get_weather", "get_time", "nope"]), text=st.text(), malformed=st.booleans())
def test_whatever_a_model_writes_there_is_a_verdict(name: str, text: str, malformed: bool):
    verdict = judge(_call(name, text, malformed=malformed), BOX)

    names = [line.name for line in verdict.checks]
    assert names == list(CHECKS)[: len(names)]
    assert verdict.allowed == all(line.outcome == "allow" for line in verdict.checks)
    assert (verdict.message is None) == verdict.allowed
    assert (verdict.arguments is None) == (not verdict.allowed)


@given(st.dictionaries(st.text(alphabet="abcity", max_size=5), st.none() | st.text(max_size=5) | st.integers(-9, 9)))
def test_only_what_fits_the_signature_is_allowed(arguments: dict[str, object]):
    verdict = judge(_call("get_weather", orjson.dumps(arguments).decode()), BOX)

    fits = arguments.keys() <= {"city"} and isinstance(arguments.get("city"), str)
    assert verdict.allowed == fits


# --- the place of the hooks ---------------------------------------------------------------------------------------


def _ruled(call: ToolCallCommitted, ruling: Ruling, *, affordable: bool = True) -> tuple[Verdict, int]:
    """The verdict when hooks say so, and how often they were asked."""
    case = Case(call, BOX, affordable=affordable, has_hooks=True)
    judgement = judging(case)
    asked = 0
    try:
        while True:
            assert next(judgement) == HOOKS
            assert case.arguments is not None
            asked += 1
            case.ruling = ruling
    except StopIteration as end:
        return end.value, asked


GOOD = _call("get_weather", '{"city": "Oslo"}')


def test_hooks_are_asked_once_behind_the_budget_and_let_a_call_be():
    verdict, asked = _ruled(GOOD, Ruling())
    assert (verdict.allowed, asked, verdict.changed) == (True, 1, False)
    assert [line.name for line in verdict.checks] == [*CHECKS]
    assert verdict.checks[-3:-1] == (("budget", "allow", None), ("hook", "allow", None))
    assert verdict.used == {"city": "Oslo"}


@pytest.mark.parametrize(
    ("call", "affordable"), [(_call("get_wether", "{}"), True), (_call("get_time", "[]"), True), (GOOD, False)]
)
def test_hooks_are_not_asked_about_what_is_denied_before(call: ToolCallCommitted, affordable: bool):
    verdict, asked = _ruled(call, Ruling("nobody", answer="never"), affordable=affordable)
    assert (verdict.allowed, verdict.answer, asked) == (False, None, 0)


@pytest.mark.parametrize(
    ("ruling", "reason"),
    [
        (Ruling("mine", denied="No."), "denied by mine"),
        (Ruling("mine", answer="noon"), "answered by mine"),
        (Ruling("mine", stop="enough"), "the run is stopped by mine"),
    ],
)
def test_a_ruling_against_a_call_is_a_denial_that_says_by_whom(ruling: Ruling, reason: str):
    verdict, _ = _ruled(GOOD, ruling)
    assert (verdict.allowed, verdict.arguments) == (False, None)
    assert verdict.checks[-1] == ("hook", "deny", reason)
    assert (verdict.message, verdict.answer, verdict.stop) == (ruling.denied, ruling.answer, ruling.stop)


@pytest.mark.parametrize("arguments", [{"city": "Bergen", "days": 2}, {}])
def test_changed_arguments_are_those_of_the_verdict(arguments: dict[str, object]):
    verdict, _ = _ruled(GOOD, Ruling("mine", parsed=dict(arguments), arguments=arguments))
    assert (verdict.allowed, verdict.arguments, verdict.used, verdict.changed) == (True, arguments, arguments, True)


# --- approvals ----------------------------------------------------------------------------------------------------

PAID = Toolbox([tool(approval=True)(get_weather)])


def _answered(asked: Asked, arguments: str = '{"city": "Oslo"}') -> Verdict:
    """The verdict when this is known of the question whether the call may run."""
    case = Case(_call("get_weather", arguments), PAID)
    judgement = judging(case)
    try:
        while True:
            assert next(judgement) == APPROVAL
            case.asked = asked
    except StopIteration as end:
        return end.value


def test_a_call_that_nobody_has_said_anything_of_asks_and_may_not_run():
    verdict = _answered(Asked(needed=True))
    assert (verdict.allowed, verdict.asks, verdict.used) == (False, True, {"city": "Oslo"})
    assert verdict.checks[-1].outcome == "ask"


@pytest.mark.parametrize("asked", [Asked(needed=False), Asked(needed=True, approval=Approval(True))])
def test_a_call_that_needs_none_or_has_an_approval_may_run(asked: Asked):
    verdict = _answered(asked)
    assert (verdict.allowed, verdict.asks, verdict.changed) == (True, False, False)


def test_a_call_that_was_declined_is_denied_with_the_reason():
    verdict = _answered(Asked(needed=True, approval=Approval(False, reason="too far")))
    assert (verdict.allowed, verdict.asks) == (False, False)
    assert verdict.message == "Declined by the user: too far. get_weather was not run."


def test_a_call_runs_with_the_arguments_of_whoever_approved_it():
    verdict = _answered(Asked(needed=True, approval=Approval(True, edited={"city": "Bergen"})))
    assert (verdict.allowed, verdict.changed, verdict.used) == (True, True, {"city": "Bergen"})
    assert verdict.arguments == {"city": "Bergen", "days": 1}


def test_arguments_of_an_approver_that_do_not_fit_let_nothing_run():
    verdict = _answered(Asked(needed=True, approval=Approval(True, edited={"town": "Bergen"})))
    assert (verdict.allowed, verdict.asks) == (False, False)


def test_nobody_is_asked_about_a_call_that_is_denied_before():
    judgement = judging(Case(_call("get_weather", "{}"), PAID))
    with pytest.raises(StopIteration) as end:
        next(judgement)
    assert not end.value.value.asks
