"""A provider that pauses its turn: the loop asks it to go on, and what it says is one message."""

from __future__ import annotations

from runtime import events as e
from runtime import samples as s
from runtime.mock_http import HttpAnswer
from runtime.testing import says
from tests.contract.anthropic_cases import PAUSED, bodies_of
from tests.contract.test_provider_runs import running, texts_of
from tests.contract.workshop import only, types, workshop


async def test_a_paused_turn_goes_on_by_itself_and_is_billed_as_one_run_C_067():
    answers = [HttpAnswer([body]) for body in bodies_of(PAUSED)]
    async with running("anthropic", *answers, "You are welcome.") as (shop, provider):
        events = await shop.run("How is the air?")
        assert types(events)[-1] == "run.completed"
        assert [one.runtime_role for one in only(events, e.RoundCompleted)] == ["working_message", "final_response"]
        assert len(only(events, e.MessageStarted)) == 1
        assert texts_of(events) == ["Air is good."]
        (completed,) = only(events, e.RunCompleted)
        (usage,) = completed.usage
        assert (usage["input_tokens"], usage["output_tokens"]) == (41, 28)
        await shop.run("Thanks")
        use = provider.requests[1]["messages"][-1]["content"][0]
        assert use["type"] == "server_tool_use"
        assert provider.requests[2]["messages"][1]["content"][0] == use


async def test_a_provider_that_pauses_for_ever_fails_the_run():
    pause = [s.TextDelta("hm "), s.AssistantMessageDone(), s.Completed("pause_turn")]
    async with workshop(*[pause] * 20, says("never asked")) as shop:
        events = await shop.run()
        (failed,) = only(events, e.RunFailed)
        assert failed.error["code"] == "turn_paused"
        assert len(only(events, e.RoundCompleted)) == 11
