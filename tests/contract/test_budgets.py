"""What a run may use, and what becomes of it when that is used up."""

from __future__ import annotations

import pytest

from agui_bridge import Budget, Price, keep_last_turns
from runtime.agent import Agent
from runtime.budget import cost_of
from runtime.items import Message
from runtime.samples import Completed, Sample
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.toolbox import tool
from runtime.usage import tokens_of
from tests.serving import Answer, ask, serving

USAGE = {"input_tokens": 1000, "output_tokens": 500, "total_tokens": 1500, "cached_input_tokens": 400}


@tool(parallel=True)
async def look(place: str) -> str:
    """Look somewhere."""
    return f"seen {place}"


def looking(times: int) -> list[list[Sample]]:
    """Rounds that look somewhere, two places at a time, each with usage."""
    said = calls(("look", '{"place": "a"}'), ("look", '{"place": "b"}'))[:-1]
    return [[*said, Completed("tool_calls", USAGE)] for _ in range(times)]


async def run(budget: Budget) -> tuple[Answer, ScriptedProvider]:
    """A run that would go on for five rounds."""
    model = ScriptedProvider(*looking(5))
    async with serving(Agent("a", model=model, tools=[look], budget=budget)) as served:
        answer = await served.run(ask("go", protocolVersion="1.0"))
        document = (await served.get(answer.headers["location"])).document
        facts = (await served.get(answer.headers["location"] + "/events")).events
        assert document["status"] in ("cancelled", "succeeded")
        reasons = [fact["payload"]["reason"] for fact in facts if fact["event_type"] == "run.cancelled"]
        assert bool(reasons) == (document["status"] == "cancelled")
        answer.events.append({"type": "reason", "reason": reasons[0] if reasons else None})
        return answer, model


@pytest.mark.parametrize(
    ("budget", "reason", "rounds"),
    [
        (Budget(rounds=2), "max_rounds", 2),
        (Budget(tokens=3000), "max_tokens", 2),
        (Budget(tokens=3001), "max_tokens", 3),
        (Budget(cost=0.0027, prices={"scripted-provider": Price(1.0, 2.0)}), "max_cost", 2),
        (Budget(seconds=0), "max_seconds", 0),
        (Budget(), None, 6),
    ],
)
async def test_a_budget_that_is_used_up_stops_the_run_on_purpose(budget: Budget, reason: str | None, rounds: int):
    answer, model = await run(budget)
    assert answer.events[-1]["reason"] == reason
    assert len(model.requests) == rounds
    outcome = answer.events[-2]["outcome"]
    assert outcome == ({"type": "cancelled"} if reason else {"type": "success"})


async def test_tool_calls_beyond_the_budget_are_refused_and_told_so():
    answer, model = await run(Budget(tool_calls=3))
    results = [event["content"] for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]
    refused = "The run has used up its tool calls; this one was not run."
    assert sorted(results) == sorted(["seen a", "seen b", "seen a", refused])
    assert answer.events[-1]["reason"] == "max_tool_calls"
    assert len(model.requests) == 2


async def test_a_run_may_use_its_last_tool_call_and_answer():
    model = ScriptedProvider(calls(("look", '{"place": "a"}')), says("there it is"))
    async with serving(Agent("a", model=model, tools=[look], budget=Budget(tool_calls=1))) as served:
        assert (await served.run(ask("go"))).events[-1]["outcome"] == {"type": "success"}


def test_costs_are_counted_by_kind_of_token_and_unknown_models_cost_nothing():
    entry = {"provider": "p", "model": "m", **USAGE, "cache_write_input_tokens": 100}
    price = Price(input=1.0, output=10.0, cached_input=0.1, cache_write=2.0)
    assert price.of(entry) == pytest.approx((500 * 1.0 + 400 * 0.1 + 100 * 2.0 + 500 * 10.0) / 1e6)
    assert cost_of([entry, {**entry, "model": "other"}], {"m": price}) == price.of(entry)
    assert tokens_of([entry, {"input_tokens": 3}]) == 1503


async def test_a_history_policy_changes_what_is_asked_and_never_what_is_stored():
    model = ScriptedProvider(says("one"), says("two"), says("three"))
    async with serving(Agent("a", model=model, history_policy=keep_last_turns(1))) as served:
        for n in (1, 2, 3):
            await served.run(ask(f"say {n}", run=f"r{n}", message=f"u{n}"))
        assert model.prompts[-1] == [Message("user", "say 3")]
        (thread,) = served.bridge.supervisor._folds._kept.values()
        assert len(thread.items()) == 6
