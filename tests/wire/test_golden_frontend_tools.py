# ruff: noqa: E501  an event is a line, however long
"""What a page is told of the tools that are its own, written down."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from tests.wire.scenes import golden_of


async def test_a_frontend_tool_ends_the_run_and_its_answer_begins_the_next() -> None:
    assert await golden_of("frontend tool") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Choose."
TEXT_MESSAGE_END m1 working_message/1
TOOL_CALL_START c1 pick_color in m1
TOOL_CALL_ARGS c1 "{}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
RUN_FINISHED t1 r1 success pending c1

RUN_STARTED t1 r2 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Blue "
TEXT_MESSAGE_CONTENT m2 "it "
TEXT_MESSAGE_CONTENT m2 "is"
TEXT_MESSAGE_END m2 final_response/1
CUSTOM agui-bridge:round 1 final_response m2
STEP_FINISHED round-1
RUN_FINISHED t1 r2 success\
""")


@pytest.mark.requirement("R-104", "R-105", "R-107")
async def test_of_mixed_tools_ours_are_run_and_the_page_owes_the_rest() -> None:
    assert await golden_of("frontend and server tools") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 pick_color in m1
TOOL_CALL_ARGS c1 "{}"
TOOL_CALL_START c2 lookup in m1
TOOL_CALL_ARGS c2 "{\\"key\\":\\"tea\\"}"
TOOL_CALL_END c1
TOOL_CALL_END c2
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c2 o1 "tea is 42"
RUN_FINISHED t1 r1 success pending c1

RUN_STARTED t1 r2 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Blue, "
TEXT_MESSAGE_CONTENT m2 "42"
TEXT_MESSAGE_END m2 final_response/1
CUSTOM agui-bridge:round 1 final_response m2
STEP_FINISHED round-1
RUN_FINISHED t1 r2 success\
""")


async def test_a_malformed_call_of_a_frontend_tool_is_answered_so_that_the_page_does_not_run_it() -> None:
    assert await golden_of("malformed frontend call") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 pick_color in m1
TOOL_CALL_ARGS c1 "{b"
TOOL_CALL_ARGS c1 "lue"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "The arguments of pick_color are not a well-formed JSON object. The tool was not run; call it again with a JSON object."
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Sorry"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success {"usage":[{"provider":"testing","model":"scripted-provider","inputTokens":3,"outputTokens":2}]}\
""")


async def test_a_page_that_put_its_answer_elsewhere_is_told_nothing_again() -> None:
    assert await golden_of("answer put elsewhere") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"key\\":\\"tea\\"}"
TOOL_CALL_START c2 pick_color in m1
TOOL_CALL_ARGS c2 "{}"
TOOL_CALL_END c1
TOOL_CALL_END c2
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "tea is 42"
RUN_FINISHED t1 r1 success pending c2

RUN_STARTED t1 r2 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Blue, "
TEXT_MESSAGE_CONTENT m2 "42"
TEXT_MESSAGE_END m2 final_response/1
CUSTOM agui-bridge:round 1 final_response m2
STEP_FINISHED round-1
RUN_FINISHED t1 r2 success\
""")
