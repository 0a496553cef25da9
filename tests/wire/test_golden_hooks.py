# ruff: noqa: E501  an event is a line, however long
"""What a page is told when hooks have a say, written down."""

from __future__ import annotations

from inline_snapshot import snapshot

from tests.wire.scenes import golden_of


async def test_what_a_hook_decided_stands_before_what_came_of_it() -> None:
    assert await golden_of("hooks that deny, change and answer") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"key\\":\\"tea\\"}"
TOOL_CALL_START c2 lookup in m1
TOOL_CALL_ARGS c2 "{\\"key\\":\\"jam\\"}"
TOOL_CALL_START c3 lookup in m1
TOOL_CALL_ARGS c3 "{\\"key\\":\\"egg\\"}"
TOOL_CALL_START c4 lookup in m1
TOOL_CALL_ARGS c4 "{\\"key\\":\\"ham\\"}"
TOOL_CALL_END c1
TOOL_CALL_END c2
TOOL_CALL_END c3
TOOL_CALL_END c4
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
CUSTOM agui-bridge.hook {"hook":"mind_the_shelf","point":"before_tool","decision":"deny","tool_call_id":"c1","reason":"No tea today."}
CUSTOM agui-bridge.hook {"hook":"mind_the_shelf","point":"before_tool","decision":"change_arguments","tool_call_id":"c2","reason":"out of jam","arguments":{"key":"honey"}}
CUSTOM agui-bridge.hook {"hook":"mind_the_shelf","point":"before_tool","decision":"answer","tool_call_id":"c3"}
TOOL_CALL_RESULT c1 o1 "No tea today."
TOOL_CALL_RESULT c3 o2 "two"
TOOL_CALL_RESULT c2 o3 "Ran with other arguments: {\\"key\\":\\"honey\\"}\\nhoney is 42"
TOOL_CALL_RESULT c4 o4 "ham is 42"
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Fine"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success\
""")


async def test_a_run_that_a_hook_stops_ends_as_cancelled_with_its_calls_closed() -> None:
    assert await golden_of("hook that stops") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Looking."
TEXT_MESSAGE_END m1 working_message/1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"key\\":\\"tea\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
CUSTOM agui-bridge.hook {"hook":"stop_behind_calls","point":"after_round","decision":"stop_run","round":1,"reason":"enough"}
TOOL_CALL_RESULT c1 o1 "Cancelled: the run was stopped before this call had a result."
RUN_FINISHED t1 r1 cancelled\
""")
