# ruff: noqa: E501  an event is a line, however long
"""What a page is told by an agent that answers with a value, written down."""

from __future__ import annotations

from inline_snapshot import snapshot

from tests.official_client import OfficialClient
from tests.wire.golden import golden_facts
from tests.wire.scenes import SCENES, golden_of, play, staged


async def test_a_value_is_text_and_the_result_of_the_run() -> None:
    assert await golden_of("value as text") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "{\\"thing\\":\\"tea\\"}"
TEXT_MESSAGE_END m1 final_response/1
CUSTOM agui-bridge:round 1 final_response m1
STEP_FINISHED round-1
RUN_FINISHED t1 r1 success {"result":{"thing":"tea","count":1},"usage":[{"provider":"testing","model":"scripted-provider","inputTokens":3,"outputTokens":2}]}\
""")


async def test_an_answer_that_did_not_fit_is_a_working_message_and_the_model_alone_is_told() -> None:
    assert await golden_of("value that was mended") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "42"
TEXT_MESSAGE_END m1 working_message/1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "{\\"thing\\":\\"tea\\"}"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success {"result":{"thing":"tea","count":1}}\
""")


async def test_a_second_answer_that_does_not_fit_is_an_error() -> None:
    assert await golden_of("value that never fits") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "42"
TEXT_MESSAGE_END m1 working_message/1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "43"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_ERROR output_invalid "The model gave no valid Seen, though it was told what was wrong: the answer: Input should be an object (given: a number)."\
""")


async def test_the_final_tool_is_shown_as_a_call_with_its_result() -> None:
    assert await golden_of("value by a tool") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"key\\":\\"tea\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "tea is 42"
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Done."
TEXT_MESSAGE_END m2 working_message/2
TOOL_CALL_START c2 final_response in m2
TOOL_CALL_ARGS c2 "{\\"thing\\":\\"tea\\"}"
TOOL_CALL_END c2
CUSTOM agui-bridge:round 2 working_message m2
STEP_FINISHED round-2
TOOL_CALL_RESULT c2 o2 "Accepted."
RUN_FINISHED t1 r1 success {"result":{"thing":"tea","count":1}}\
""")


async def test_a_call_that_did_not_fit_has_its_error_and_the_next_turn_goes_on() -> None:
    assert await golden_of("value that a tool mended") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 final_response in m1
TOOL_CALL_ARGS c1 "{}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "Not accepted: the arguments do not fit.\\n- thing is missing\\nCall final_response again."
STEP_STARTED round-2
TOOL_CALL_START c2 final_response in m2
TOOL_CALL_ARGS c2 "{\\"thing\\":\\"tea\\"}"
TOOL_CALL_END c2
CUSTOM agui-bridge:round 2 working_message m2
STEP_FINISHED round-2
TOOL_CALL_RESULT c2 o2 "Accepted."
RUN_FINISHED t1 r1 success {"result":{"thing":"tea","count":1}}

RUN_STARTED t1 r2 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m3 assistant
TEXT_MESSAGE_CONTENT m3 "You "
TEXT_MESSAGE_CONTENT m3 "are "
TEXT_MESSAGE_CONTENT m3 "welcome"
TEXT_MESSAGE_END m3 working_message/1
CUSTOM agui-bridge:round 1 working_message m3
STEP_FINISHED round-1
STEP_STARTED round-2
TOOL_CALL_START c3 final_response in m4
TOOL_CALL_ARGS c3 "{\\"thing\\":\\"tea\\"}"
TOOL_CALL_END c3
CUSTOM agui-bridge:round 2 working_message m4
STEP_FINISHED round-2
TOOL_CALL_RESULT c3 o3 "Accepted."
RUN_FINISHED t1 r2 success {"result":{"thing":"tea","count":1}}\
""")


async def test_a_list_is_the_result_without_the_object_around_it() -> None:
    assert await golden_of("list of values") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "{\\"value\\":[1,2]}"
TEXT_MESSAGE_END m1 final_response/1
CUSTOM agui-bridge:round 1 final_response m1
STEP_FINISHED round-1
RUN_FINISHED t1 r1 success {"result":[1,2]}\
""")


async def test_the_facts_of_an_answer_that_was_mended() -> None:
    async with staged("value that was mended") as served:
        answer = await served.run(SCENES["value that was mended"].asked[0]([]))
        facts = await served.get(answer.headers["location"] + "/events")
    assert golden_facts(facts.events) == snapshot("""\
1 run.started {"client_run_id":"r1","agent_id":"assistant","snapshots":[]}
2 message.completed {"message_id":"u1","role":"user","content":"Hi"}
3 message.started {"message_id":"m1","role":"assistant"}
4 round.started {"round":1,"model":"scripted-provider","provider":"testing"}
5 message.delta {"message_id":"m1","part_id":"p0","content_index":0,"delta":"42"}
6 round.completed {"round":1,"runtime_role":"working_message","finish":"stop","parts":[{"part_id":"p0","kind":"text"}],"tool_call_ids":[],"attempts":1}
7 message.completed {"message_id":"m2","role":"user","content":"This answer was not accepted:\\n- the answer: Input should be an object (given: a number)\\nAnswer again, with nothing but JSON that fits this schema:\\n{\\"description\\":\\"What was found out.\\",\\"properties\\":{\\"thing\\":{\\"type\\":\\"string\\"},\\"count\\":{\\"default\\":1,\\"type\\":\\"integer\\"}},\\"required\\":[\\"thing\\"],\\"type\\":\\"object\\"}","runtime_role":"output_rejection"}
8 round.started {"round":2,"model":"scripted-provider","provider":"testing"}
9 message.delta {"message_id":"m1","part_id":"p1","content_index":1,"delta":"{\\"thing\\":\\"tea\\"}"}
10 round.completed {"round":2,"runtime_role":"final_response","finish":"stop","parts":[{"part_id":"p1","kind":"text"}],"tool_call_ids":[],"attempts":1}
11 message.completed {"message_id":"m1","role":"assistant","content":[{"part_id":"p0","kind":"text","round":1,"committed":true,"text":"42"},{"part_id":"p1","kind":"text","round":2,"committed":true,"text":"{\\"thing\\":\\"tea\\"}"}]}
12 run.completed {"message_id":"m1","result":{"thing":"tea","count":1}}\
""")


async def test_the_official_client_gets_the_result(official_client: OfficialClient) -> None:
    for name, value in {
        "value as text": {"thing": "tea", "count": 1},
        "value by a tool": {"thing": "tea", "count": 1},
        "list of values": [1, 2],
    }.items():
        (played,) = await play(name)
        verdict = await official_client.replay(played.answer.body, played.asked)
        verdict.assert_clean()
        assert verdict.terminal is not None
        assert verdict.terminal["result"] == value
