"""One run, end to end, over a real socket."""

from __future__ import annotations

from agui_bridge.demo import demo_agent
from tests.serving import ask, serving


async def test_a_question_is_answered_in_a_legal_stream_and_remembered():
    async with serving(demo_agent()) as served:
        answer = await served.run(ask('/script {"rounds": [{"text": "Two words"}]}'))
        assert answer.status == 200
        assert answer.types == [
            "RUN_STARTED",
            "STEP_STARTED",
            "TEXT_MESSAGE_START",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_CONTENT",
            "TEXT_MESSAGE_END",
            "CUSTOM",
            "STEP_FINISHED",
            "RUN_FINISHED",
        ]
        run = await served.get(answer.headers["location"])
        assert run.document["status"] == "succeeded"
        facts = await served.get(answer.headers["location"] + "/events")
        assert [fact["seq"] for fact in facts.events] == list(range(1, run.document["last_event_seq"] + 1))
