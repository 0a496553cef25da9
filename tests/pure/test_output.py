"""A run that owes a value: what the loop makes of rounds that give it, miss it, or do something else."""

from __future__ import annotations

from itertools import count
from typing import Any

import pytest
from pydantic import BaseModel

from runtime import events as e
from runtime import samples as s
from runtime.agent import Agent
from runtime.budget import Budget
from runtime.errors import ConfigurationError
from runtime.items import REJECTED, FunctionCallOutput, Message
from runtime.output import FINAL_TOOL, NATIVE, TOOL, Output, output_for, usual_mode
from runtime.output_type import read_output_type
from runtime.sampling import Sampling
from runtime.steps import CallModel, Fail, RunTools, Stop, Succeed
from runtime.testing import ScriptedProvider
from runtime.thread import Thread
from runtime.tools.toolbox import tool

TARGETS = {"get_time": "server", "confirm": "client"}


class Point(BaseModel):
    x: int


GOOD, BAD, WORSE = '{"x": 1}', '{"x": "one"}', "one"


class Loop:
    """A loop that owes a `Point`, and the thread that its events make."""

    def __init__(self, mode: str, type_: Any = Point, budget: Budget | None = None) -> None:
        numbers = count(1)
        self.sampling = Sampling(
            message_id="m1",
            provider="p",
            target=lambda name: TARGETS.get(name, "nobody"),
            taken=set(),
            mint=lambda prefix: f"{prefix}_{next(numbers)}",
            budget=budget or Budget(rounds=50),
            elapsed=lambda: 0.0,
            output=Output(read_output_type(type_), mode),
        )
        self.thread = Thread("t1")
        self.events: list[e.Event] = []
        self._told(self.sampling.start())

    def round(self, *samples: s.Sample) -> list[e.Event]:
        """One more round of these samples."""
        self._told(self.sampling.round_started("m", {}))
        return self._told(self.sampling.feed(samples))

    def says(self, text: str, finish: str = "stop") -> list[e.Event]:
        """One more round, of a text."""
        return self.round(s.TextDelta(text), s.AssistantMessageDone(), s.Completed(finish))

    def calls(self, *made: tuple[str, str]) -> list[e.Event]:
        """One more round, of calls."""
        commits = [s.ToolCallCommitted(str(i), name, arguments, "") for i, (name, arguments) in enumerate(made)]
        return self.round(*commits, s.Completed("tool_calls"))

    def _told(self, events: list[e.Event]) -> list[e.Event]:
        for event in events:
            self.events.append(event)
            self.thread.apply("r1", 0, len(self.events), event)
        return events

    @property
    def roles(self) -> list[str]:
        return [one.runtime_role for one in self.events if isinstance(one, e.RoundCompleted)]

    @property
    def outputs(self) -> list[tuple[str, bool]]:
        """What was put out for the calls: the first words, and whether it is an error."""
        made = [one for one in self.thread.items() if isinstance(one, FunctionCallOutput)]
        return [(str(one.output).partition(":")[0], one.is_error) for one in made]


def failure(loop: Loop) -> str:
    step = loop.sampling.next()
    assert isinstance(step, Fail)
    return step.error.code


# --- native -------------------------------------------------------------------------------------------------------


def test_a_text_that_fits_is_the_final_response_and_its_value_the_result():
    loop = Loop(NATIVE)
    loop.says(GOOD)
    assert loop.sampling.next() == Succeed([], {"x": 1})
    assert loop.roles == ["final_response"]


@pytest.mark.parametrize("mode", [NATIVE, TOOL])
def test_a_text_that_does_not_fit_is_told_back_to_the_model_once(mode: str):
    loop = Loop(mode)
    loop.says(BAD)
    assert loop.sampling.next() == CallModel(2)
    assert loop.roles == ["working_message"]
    said = loop.thread.items()[-1]
    assert isinstance(said, Message)
    assert (said.role, said.runtime_role) == ("user", "output_rejection")
    assert str(said.content).startswith(REJECTED)
    assert "x: Input should be a valid integer" in str(said.content)
    loop.says(GOOD)
    assert loop.sampling.next() == Succeed([], {"x": 1})
    assert loop.roles == ["working_message", "final_response"]


def test_a_rejection_stands_between_the_rounds_and_is_nobodys_message():
    loop = Loop(NATIVE)
    loop.says(BAD)
    loop.says(GOOD)
    assert [(one.role, one.runtime_role) for one in loop.thread.items() if isinstance(one, Message)] == [
        ("assistant", "working_message"),
        ("user", "output_rejection"),
        ("assistant", "final_response"),
    ]
    assert loop.thread.users() == []


@pytest.mark.parametrize("mode", [NATIVE, TOOL])
def test_a_second_text_that_does_not_fit_fails_the_run(mode: str):
    loop = Loop(mode)
    loop.says(BAD)
    loop.says(WORSE)
    assert failure(loop) == "output_invalid"
    assert loop.roles == ["working_message", "final_response"]
    assert sum(isinstance(one, e.MessageCompleted) for one in loop.events) == 1


def test_the_schema_goes_with_the_rejection_for_servers_that_did_not_heed_it():
    loop = Loop(NATIVE, list[int])
    loop.says("[1]")
    assert '"required":["value"]' in str(loop.thread.items()[-1])
    loop.says('{"value": [1]}')
    assert loop.sampling.next() == Succeed([], [1])


def test_what_is_said_before_the_answer_is_no_part_of_it():
    loop = Loop(NATIVE)
    first = [s.TextDelta("Let me see. "), s.AssistantMessageDone("commentary")]
    loop.round(*first, s.TextDelta('{"x"'), s.TextDelta(": 1}"), s.AssistantMessageDone(), s.Completed("stop"))
    assert loop.sampling.next() == Succeed([], {"x": 1})


def test_an_answer_in_pieces_is_read_as_one():
    loop = Loop(NATIVE)
    halves = [s.TextDelta('{"x"'), s.AssistantMessageDone(), s.TextDelta(": 1}"), s.AssistantMessageDone()]
    loop.round(*halves, s.Completed("stop"))
    assert loop.sampling.next() == Succeed([], {"x": 1})


def test_a_thought_alone_is_no_value():
    loop = Loop(NATIVE)
    loop.round(s.ReasoningDelta("Hm"), s.ReasoningDone(), s.Completed("stop"))
    assert loop.sampling.next() == CallModel(2)
    assert "is empty" in str(loop.thread.items()[-1])


@pytest.mark.parametrize("mode", [NATIVE, TOOL])
def test_ordinary_calls_go_on_as_ever_and_are_no_answer(mode: str):
    loop = Loop(mode)
    loop.calls(("get_time", "{}"))
    assert isinstance(loop.sampling.next(), RunTools)
    loop.sampling.tool_output("call_1", "noon", "result")
    assert loop.sampling.next() == CallModel(2)
    loop.says(BAD)
    assert loop.sampling.next() == CallModel(3)


@pytest.mark.parametrize("mode", [NATIVE, TOOL])
def test_a_paused_turn_is_no_answer(mode: str):
    loop = Loop(mode)
    loop.says("Still at it", finish="pause_turn")
    assert loop.sampling.next() == CallModel(2)
    assert not any(isinstance(one, e.MessageCompleted) for one in loop.events)


@pytest.mark.parametrize("mode", [NATIVE, TOOL])
def test_a_refusal_is_an_answer_without_a_value(mode: str):
    loop = Loop(mode)
    loop.round(s.RefusalDelta("I would rather not."), s.AssistantMessageDone(), s.Completed("stop"))
    assert loop.sampling.next() == Succeed([])
    assert loop.roles == ["final_response"]


def test_a_value_that_was_cut_by_its_length_is_not_told_back():
    loop = Loop(NATIVE)
    loop.says('{"x": ', finish="length")
    assert failure(loop) == "output_truncated"
    assert loop.roles == ["final_response"]


def test_a_value_that_was_whole_when_the_limit_came_counts():
    loop = Loop(NATIVE)
    loop.says(GOOD, finish="length")
    assert loop.sampling.next() == Succeed([], {"x": 1})


@pytest.mark.parametrize("mode", [NATIVE, TOOL])
@pytest.mark.parametrize(("finish", "code"), [("content_filter", "content_filter"), ("refusal", "refusal")])
def test_what_the_provider_stopped_fails_as_ever(mode: str, finish: str, code: str):
    loop = Loop(mode)
    loop.says(GOOD, finish=finish)
    assert failure(loop) == code


# --- by a tool ----------------------------------------------------------------------------------------------------


def test_the_call_of_the_final_tool_has_one_output_and_ends_the_run():
    loop = Loop(TOOL)
    events = loop.calls((FINAL_TOOL, GOOD))
    assert loop.sampling.next() == Succeed([], {"x": 1})
    assert [one.event_type for one in events][-3:] == ["tool.call.committed", "round.completed", "tool.call.completed"]
    assert [one.target for one in events if isinstance(one, e.ToolCallCommitted)] == ["server"]
    assert loop.outputs == [("Accepted.", False)]


@pytest.mark.parametrize("arguments", [BAD, "[1]", '{"x"', "", "null"])
def test_arguments_that_do_not_fit_are_the_calls_error_and_may_be_mended_once(arguments: str):
    loop = Loop(TOOL)
    loop.calls((FINAL_TOOL, arguments))
    assert loop.sampling.next() == CallModel(2)
    loop.calls((FINAL_TOOL, GOOD))
    assert loop.sampling.next() == Succeed([], {"x": 1})
    assert loop.outputs == [("Not accepted", True), ("Accepted.", False)]


def test_arguments_that_do_not_fit_a_second_time_fail_the_run_with_every_call_answered():
    loop = Loop(TOOL)
    loop.calls((FINAL_TOOL, BAD))
    loop.calls((FINAL_TOOL, BAD), (FINAL_TOOL, WORSE))
    assert failure(loop) == "output_invalid"
    assert loop.outputs == [("Not accepted", True)] * 3


def test_a_text_and_a_call_share_the_one_chance():
    loop = Loop(TOOL)
    loop.says("It is one.")
    assert FINAL_TOOL in str(loop.thread.items()[-1])
    loop.calls((FINAL_TOOL, BAD))
    assert failure(loop) == "output_invalid"


def test_a_text_that_fits_is_as_good_as_the_call():
    loop = Loop(TOOL)
    loop.says(GOOD)
    assert loop.sampling.next() == Succeed([], {"x": 1})


def test_of_several_final_calls_the_first_that_fits_counts():
    loop = Loop(TOOL)
    loop.calls((FINAL_TOOL, BAD), (FINAL_TOOL, GOOD), (FINAL_TOOL, '{"x": 2}'))
    assert loop.sampling.next() == Succeed([], {"x": 1})
    assert loop.outputs == [("Not accepted", True), ("Accepted.", False), ("Not taken", True)]


def test_a_final_call_beside_others_waits_for_what_they_say():
    loop = Loop(TOOL)
    loop.calls((FINAL_TOOL, GOOD), ("get_time", "{}"))
    step = loop.sampling.next()
    assert isinstance(step, RunTools)
    assert [one.tool_name for one in step.calls] == ["get_time"]
    assert loop.outputs == [("Not taken", True)]
    loop.sampling.tool_output(step.calls[0].tool_call_id, "noon", "result")
    assert loop.sampling.next() == CallModel(2)
    loop.calls((FINAL_TOOL, BAD))
    assert loop.sampling.next() == CallModel(3)  # the chance to mend is still there


def test_a_final_call_beside_one_of_the_page_waits_for_the_page():
    loop = Loop(TOOL)
    loop.calls((FINAL_TOOL, GOOD), ("confirm", "{}"))
    assert loop.sampling.next() == Succeed(["call_2"])


def test_final_calls_are_no_calls_of_tools_but_their_rounds_are_rounds():
    loop = Loop(TOOL, budget=Budget(rounds=2, tool_calls=0))
    loop.calls((FINAL_TOOL, BAD))
    loop.calls((FINAL_TOOL, GOOD))
    assert loop.sampling.next() == Succeed([], {"x": 1})
    short = Loop(TOOL, budget=Budget(rounds=1))
    short.calls((FINAL_TOOL, BAD))
    assert short.sampling.next() == Stop("max_rounds")


def test_a_tool_of_that_name_is_any_other_in_native_mode():
    loop = Loop(NATIVE)
    loop.calls((FINAL_TOOL, GOOD))
    assert isinstance(loop.sampling.next(), RunTools)


# --- how it is asked for ------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("provider", "model", "mode"),
    [
        ("openai", "gpt-5-mini", NATIVE),
        ("openai", "gpt-4o-mini", NATIVE),
        ("openai", "gpt-4.1", NATIVE),
        ("openai", "o3", NATIVE),
        ("openai", "gpt-4", TOOL),
        ("openai", "gpt-4-turbo", TOOL),
        ("openai", "ft:gpt-3.5-turbo:me", TOOL),
        ("anthropic", "claude-sonnet-4-5", NATIVE),
        ("anthropic", "claude-opus-4-1-20250805", NATIVE),
        ("anthropic", "claude-haiku-4-5", NATIVE),
        ("anthropic", "claude-sonnet-4-20250514", TOOL),
        ("anthropic", "claude-3-7-sonnet-latest", TOOL),
        ("my-server", "gpt-5", TOOL),
    ],
)
def test_a_model_is_asked_for_a_schema_if_it_is_known_to_know_them(provider: str, model: str, mode: str):
    assert usual_mode(provider, model) == mode


def test_a_schema_that_a_dialect_cannot_say_is_asked_for_by_a_tool_unless_the_author_insists():
    opened, plain = read_output_type(dict[str, int]), read_output_type(Point)
    assert output_for(opened, None, NATIVE, "anthropic").mode == TOOL
    assert output_for(opened, NATIVE, NATIVE, "anthropic").mode == NATIVE
    assert output_for(opened, None, NATIVE, "openai-chat").mode == NATIVE
    assert output_for(plain, None, NATIVE, "anthropic").mode == NATIVE
    assert output_for(plain, TOOL, NATIVE, "anthropic").mode == TOOL


def test_the_snapshot_of_an_agent_holds_what_it_is_asked_for():
    model = ScriptedProvider()
    assert "output" not in Agent("a").snapshot(model)
    taken = Agent("a", output_type=Point).snapshot(model)["output"]
    assert (taken["mode"], taken["name"], taken["schema"]["required"]) == (TOOL, "Point", ["x"])
    assert Agent("a", output_type=Point, output_mode=NATIVE).snapshot(model)["output"]["mode"] == NATIVE


def test_an_agent_that_cannot_be_asked_so_is_refused():
    @tool(name=FINAL_TOOL)
    def mine() -> str:
        return ""

    model = ScriptedProvider()
    for agent in (
        Agent("a", output_type=Point, output_mode="json"),
        Agent("a", output_type=Loop),
        Agent("a", output_type=Point, tools=[mine]),
    ):
        with pytest.raises(ConfigurationError):
            agent.snapshot(model)
    assert Agent("a", output_type=Point, tools=[mine], output_mode=NATIVE).output(model) is not None
