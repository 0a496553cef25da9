# ruff: noqa: E501  an event is a line, however long
"""What a page is told of child runs, written down."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from tests.wire.scenes import golden_of


@pytest.mark.requirement("R-142", "R-143", "R-144", "R-145", "R-146", "R-149")
async def test_a_child_is_announced_its_work_is_marked_and_its_end_is_told() -> None:
    assert await golden_of("child run") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Asking."
TEXT_MESSAGE_END m1 working_message/1
TOOL_CALL_START c1 helper in m1
TOOL_CALL_ARGS c1 "{\\"prompt\\":\\"Tea?\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
SUBAGENT_STARTED helper of s1 for c1 {"description":"Looks things up."}
STEP_STARTED round-1 of s1
TEXT_MESSAGE_START m2 assistant of s1
TEXT_MESSAGE_CONTENT m2 of s1 "Looking."
TEXT_MESSAGE_END m2 of s1 working_message/1
TOOL_CALL_START c2 lookup of s1 in m2
TOOL_CALL_ARGS c2 of s1 "{\\"key\\":\\"tea\\"}"
TOOL_CALL_END c2 of s1
CUSTOM agui-bridge:round of s1 1 working_message m2
STEP_FINISHED round-1 of s1
TOOL_CALL_RESULT c2 o1 of s1 "tea is 42"
STEP_STARTED round-2 of s1
TEXT_MESSAGE_START m3 assistant of s1
TEXT_MESSAGE_CONTENT m3 of s1 "Tea "
TEXT_MESSAGE_CONTENT m3 of s1 "is "
TEXT_MESSAGE_CONTENT m3 of s1 "42"
TEXT_MESSAGE_END m3 of s1 final_response/2
CUSTOM agui-bridge:round of s1 2 final_response m3
STEP_FINISHED round-2 of s1
SUBAGENT_FINISHED of s1 success
TOOL_CALL_RESULT c1 o2 "Tea is 42"
STEP_STARTED round-2
TEXT_MESSAGE_START m4 assistant
TEXT_MESSAGE_CONTENT m4 "It "
TEXT_MESSAGE_CONTENT m4 "says "
TEXT_MESSAGE_CONTENT m4 "42"
TEXT_MESSAGE_END m4 final_response/2
CUSTOM agui-bridge:round 2 final_response m4
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success

RUN_STARTED t1 r2 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m5 assistant
TEXT_MESSAGE_CONTENT m5 "done"
TEXT_MESSAGE_END m5 final_response/1
CUSTOM agui-bridge:round 1 final_response m5
STEP_FINISHED round-1
RUN_FINISHED t1 r2 success\
""")


@pytest.mark.requirement("R-147")
async def test_a_child_of_a_child_names_its_parent() -> None:
    assert await golden_of("child of a child") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 middle in m1
TOOL_CALL_ARGS c1 "{\\"prompt\\":\\"Ask on\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
SUBAGENT_STARTED middle of s1 for c1
STEP_STARTED round-1 of s1
TOOL_CALL_START c2 helper of s1 in m2
TOOL_CALL_ARGS c2 of s1 "{\\"prompt\\":\\"Tea?\\"}"
TOOL_CALL_END c2 of s1
CUSTOM agui-bridge:round of s1 1 working_message m2
STEP_FINISHED round-1 of s1
SUBAGENT_STARTED helper of s2 below s1 for c2 {"description":"Looks things up."}
STEP_STARTED round-1 of s2
TEXT_MESSAGE_START m3 assistant of s2
TEXT_MESSAGE_CONTENT m3 of s2 "Looking."
TEXT_MESSAGE_END m3 of s2 working_message/1
TOOL_CALL_START c3 lookup of s2 in m3
TOOL_CALL_ARGS c3 of s2 "{\\"key\\":\\"tea\\"}"
TOOL_CALL_END c3 of s2
CUSTOM agui-bridge:round of s2 1 working_message m3
STEP_FINISHED round-1 of s2
TOOL_CALL_RESULT c3 o1 of s2 "tea is 42"
STEP_STARTED round-2 of s2
TEXT_MESSAGE_START m4 assistant of s2
TEXT_MESSAGE_CONTENT m4 of s2 "Tea "
TEXT_MESSAGE_CONTENT m4 of s2 "is "
TEXT_MESSAGE_CONTENT m4 of s2 "42"
TEXT_MESSAGE_END m4 of s2 final_response/2
CUSTOM agui-bridge:round of s2 2 final_response m4
STEP_FINISHED round-2 of s2
SUBAGENT_FINISHED of s2 success
TOOL_CALL_RESULT c2 o2 of s1 "Tea is 42"
STEP_STARTED round-2 of s1
TEXT_MESSAGE_START m5 assistant of s1
TEXT_MESSAGE_CONTENT m5 of s1 "42"
TEXT_MESSAGE_END m5 of s1 final_response/2
CUSTOM agui-bridge:round of s1 2 final_response m5
STEP_FINISHED round-2 of s1
SUBAGENT_FINISHED of s1 success
TOOL_CALL_RESULT c1 o3 "42"
STEP_STARTED round-2
TEXT_MESSAGE_START m6 assistant
TEXT_MESSAGE_CONTENT m6 "Done"
TEXT_MESSAGE_END m6 final_response/2
CUSTOM agui-bridge:round 2 final_response m6
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success\
""")


@pytest.mark.requirement("R-144", "R-145")
async def test_a_child_that_fails_is_closed_and_the_run_goes_on() -> None:
    assert await golden_of("child that fails") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 helper in m1
TOOL_CALL_ARGS c1 "{\\"prompt\\":\\"Tea?\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
SUBAGENT_STARTED helper of s1 for c1 {"description":"Looks things up."}
STEP_STARTED round-1 of s1
TEXT_MESSAGE_START m2 assistant of s1
TEXT_MESSAGE_CONTENT m2 of s1 "Half "
TEXT_MESSAGE_END m2 of s1
STEP_FINISHED round-1 of s1
SUBAGENT_ERROR stream_cut of s1 "The provider's stream broke off."
TOOL_CALL_RESULT c1 o1 "helper failed. The provider's stream broke off."
STEP_STARTED round-2
TEXT_MESSAGE_START m3 assistant
TEXT_MESSAGE_CONTENT m3 "A "
TEXT_MESSAGE_CONTENT m3 "pity"
TEXT_MESSAGE_END m3 final_response/2
CUSTOM agui-bridge:round 2 final_response m3
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success\
""")


@pytest.mark.requirement("R-107")
async def test_a_cut_call_of_a_child_is_taken_back_at_the_end_of_the_run() -> None:
    assert await golden_of("child whose call was cut") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 helper in m1
TOOL_CALL_ARGS c1 "{\\"prompt\\":\\"Tea?\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
SUBAGENT_STARTED helper of s1 for c1 {"description":"Looks things up."}
STEP_STARTED round-1 of s1
TOOL_CALL_START c2 lookup of s1 in m2
TOOL_CALL_ARGS c2 of s1 "{\\"k"
TOOL_CALL_ARGS c2 of s1 "ey\\":"
TOOL_CALL_END c2 of s1
STEP_FINISHED round-1 of s1
SUBAGENT_ERROR stream_cut of s1 "The provider's stream broke off."
TOOL_CALL_RESULT c1 o1 "helper failed. The provider's stream broke off."
STEP_STARTED round-2
TEXT_MESSAGE_START m3 assistant
TEXT_MESSAGE_CONTENT m3 "A "
TEXT_MESSAGE_CONTENT m3 "pity"
TEXT_MESSAGE_END m3 final_response/2
CUSTOM agui-bridge:round 2 final_response m3
STEP_FINISHED round-2
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=helper{"prompt":"Tea?"} | tool o1 c1 "helper failed. The provider's stream broke off." | assistant m3 "A pity" final_response/2
RUN_FINISHED t1 r1 success\
""")
