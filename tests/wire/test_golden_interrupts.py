# ruff: noqa: E501  an event is a line, however long

"""What a page is told of runs that stop to ask, written down."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from tests.wire.scenes import golden_of


@pytest.mark.requirement("R-160", "R-162", "R-164")
async def test_an_approval_is_asked_for_and_its_call_answers_in_the_next_run() -> None:
    assert await golden_of("approval") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Sending."
TEXT_MESSAGE_END m1 working_message/1
TOOL_CALL_START c1 send in m1
TOOL_CALL_ARGS c1 "{\\"to\\":\\"Ann\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 "Sending." c1=send{"to":"Ann"} working_message/1
RUN_FINISHED t1 r1 interrupt [i1 tool_call c1 "May send run?" schema {"metadata":{"toolName":"send","args":{"to":"Ann"}}}]

RUN_STARTED t1 r2 1.0
TOOL_CALL_RESULT c1 o1 "Sent to Ann."
STEP_STARTED round-1
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "It "
TEXT_MESSAGE_CONTENT m2 "is "
TEXT_MESSAGE_CONTENT m2 "sent"
TEXT_MESSAGE_END m2 final_response/1
CUSTOM agui-bridge:round 1 final_response m2
STEP_FINISHED round-1
RUN_FINISHED t1 r2 success\
""")


async def test_a_call_that_ran_with_other_arguments_says_so() -> None:
    assert await golden_of("approval with other arguments") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 send in m1
TOOL_CALL_ARGS c1 "{\\"to\\":\\"Ann\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=send{"to":"Ann"}
RUN_FINISHED t1 r1 interrupt [i1 tool_call c1 "May send run?" schema {"metadata":{"toolName":"send","args":{"to":"Ann"}}}]

RUN_STARTED t1 r2 1.0
TOOL_CALL_RESULT c1 o1 "Ran with other arguments: {\\"to\\":\\"Bob\\"}\\nSent to Bob."
STEP_STARTED round-1
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "It "
TEXT_MESSAGE_CONTENT m2 "is "
TEXT_MESSAGE_CONTENT m2 "sent"
TEXT_MESSAGE_END m2 final_response/1
CUSTOM agui-bridge:round 1 final_response m2
STEP_FINISHED round-1
RUN_FINISHED t1 r2 success\
""")


async def test_a_declined_call_is_answered_and_the_run_goes_on() -> None:
    assert await golden_of("approval that is declined") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 send in m1
TOOL_CALL_ARGS c1 "{\\"to\\":\\"Ann\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=send{"to":"Ann"}
RUN_FINISHED t1 r1 interrupt [i1 tool_call c1 "May send run?" schema {"metadata":{"toolName":"send","args":{"to":"Ann"}}}]

RUN_STARTED t1 r2 1.0
TOOL_CALL_RESULT c1 o1 "Declined by the user. send was not run."
STEP_STARTED round-1
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "As "
TEXT_MESSAGE_CONTENT m2 "you "
TEXT_MESSAGE_CONTENT m2 "like"
TEXT_MESSAGE_END m2 final_response/1
CUSTOM agui-bridge:round 1 final_response m2
STEP_FINISHED round-1
RUN_FINISHED t1 r2 success\
""")


@pytest.mark.requirement("R-161", "R-169")
async def test_what_was_not_answered_is_asked_again() -> None:
    assert await golden_of("two approvals, one by one") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 send in m1
TOOL_CALL_ARGS c1 "{\\"to\\":\\"Ann\\"}"
TOOL_CALL_START c2 send in m1
TOOL_CALL_ARGS c2 "{\\"to\\":\\"Bob\\"}"
TOOL_CALL_END c1
TOOL_CALL_END c2
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=send{"to":"Ann"} c2=send{"to":"Bob"}
RUN_FINISHED t1 r1 interrupt [i1 tool_call c1 "May send run?" schema {"metadata":{"toolName":"send","args":{"to":"Ann"}}}] [i2 tool_call c2 "May send run?" schema {"metadata":{"toolName":"send","args":{"to":"Bob"}}}]

RUN_STARTED t1 r2 1.0
TOOL_CALL_RESULT c1 o1 "Sent to Ann."
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=send{"to":"Ann"} c2=send{"to":"Bob"} | tool o1 c1 "Sent to Ann."
RUN_FINISHED t1 r2 interrupt [i2 tool_call c2 "May send run?" schema {"metadata":{"toolName":"send","args":{"to":"Bob"}}}]

RUN_STARTED t1 r3 1.0
TOOL_CALL_RESULT c2 o2 "Sent to Bob."
STEP_STARTED round-1
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Both "
TEXT_MESSAGE_CONTENT m2 "are "
TEXT_MESSAGE_CONTENT m2 "sent"
TEXT_MESSAGE_END m2 final_response/1
CUSTOM agui-bridge:round 1 final_response m2
STEP_FINISHED round-1
RUN_FINISHED t1 r3 success\
""")


async def test_a_new_message_is_kept_and_the_question_restated() -> None:
    assert await golden_of("a message while something is asked") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 send in m1
TOOL_CALL_ARGS c1 "{\\"to\\":\\"Ann\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=send{"to":"Ann"}
RUN_FINISHED t1 r1 interrupt [i1 tool_call c1 "May send run?" schema {"metadata":{"toolName":"send","args":{"to":"Ann"}}}]

RUN_STARTED t1 r2 1.0
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=send{"to":"Ann"} | user u2 "Well?"
RUN_FINISHED t1 r2 interrupt [i1 tool_call c1 "May send run?" schema {"metadata":{"toolName":"send","args":{"to":"Ann"}}}]

RUN_STARTED t1 r3 1.0
TOOL_CALL_RESULT c1 o1 "Sent to Ann."
STEP_STARTED round-1
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "It "
TEXT_MESSAGE_CONTENT m2 "is "
TEXT_MESSAGE_CONTENT m2 "sent"
TEXT_MESSAGE_END m2 final_response/1
CUSTOM agui-bridge:round 1 final_response m2
STEP_FINISHED round-1
RUN_FINISHED t1 r3 success\
""")


async def test_a_tool_asks_and_gets_its_answer() -> None:
    assert await golden_of("a question") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 ask_colour in m1
TOOL_CALL_ARGS c1 "{}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=ask_colour{}
RUN_FINISHED t1 r1 interrupt [i1 input_required c1 "Which colour?" schema]

RUN_STARTED t1 r2 1.0
TOOL_CALL_RESULT c1 o1 "blue"
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


@pytest.mark.requirement("R-175")
async def test_a_call_of_the_page_beside_an_approval_still_waits_when_that_was_given() -> None:
    assert await golden_of("approval and a frontend tool") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 send in m1
TOOL_CALL_ARGS c1 "{\\"to\\":\\"Ann\\"}"
TOOL_CALL_START c2 pick_color in m1
TOOL_CALL_ARGS c2 "{}"
TOOL_CALL_END c1
TOOL_CALL_END c2
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=send{"to":"Ann"} c2=pick_color{}
RUN_FINISHED t1 r1 interrupt [i1 tool_call c1 "May send run?" schema {"metadata":{"toolName":"send","args":{"to":"Ann"}}}]

RUN_STARTED t1 r2 1.0
TOOL_CALL_RESULT c1 o1 "Sent to Ann."
RUN_FINISHED t1 r2 success\
""")


@pytest.mark.requirement("R-174")
async def test_a_child_is_suspended_and_gone_on_with() -> None:
    assert await golden_of("a child that asks") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 helper in m1
TOOL_CALL_ARGS c1 "{\\"prompt\\":\\"Send it\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
SUBAGENT_STARTED helper of s1 for c1 {"description":"Sends things."}
STEP_STARTED round-1 of s1
TEXT_MESSAGE_START m2 assistant of s1
TEXT_MESSAGE_CONTENT m2 of s1 "Sending."
TEXT_MESSAGE_END m2 of s1 working_message/1
TOOL_CALL_START c2 send of s1 in m2
TOOL_CALL_ARGS c2 of s1 "{\\"to\\":\\"Ann\\"}"
TOOL_CALL_END c2 of s1
CUSTOM agui-bridge:round of s1 1 working_message m2
STEP_FINISHED round-1 of s1
SUBAGENT_FINISHED of s1 suspended i1
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=helper{"prompt":"Send it"} | assistant m2 "Sending." c2=send{"to":"Ann"} working_message/1 of s1
RUN_FINISHED t1 r1 interrupt [i1 tool_call c2 "May send run?" of s1 schema {"metadata":{"toolName":"send","args":{"to":"Ann"}}}]

RUN_STARTED t1 r2 1.0
SUBAGENT_STARTED helper of s2 {"description":"Sends things."}
TOOL_CALL_RESULT c2 o1 of s2 "Sent to Ann."
STEP_STARTED round-1 of s2
TEXT_MESSAGE_START m3 assistant of s2
TEXT_MESSAGE_CONTENT m3 of s2 "It "
TEXT_MESSAGE_CONTENT m3 of s2 "is "
TEXT_MESSAGE_CONTENT m3 of s2 "sent"
TEXT_MESSAGE_END m3 of s2 final_response/1
CUSTOM agui-bridge:round of s2 1 final_response m3
STEP_FINISHED round-1 of s2
SUBAGENT_FINISHED of s2 success
TOOL_CALL_RESULT c1 o2 "It is sent"
STEP_STARTED round-1
TEXT_MESSAGE_START m4 assistant
TEXT_MESSAGE_CONTENT m4 "Done"
TEXT_MESSAGE_END m4 final_response/1
CUSTOM agui-bridge:round 1 final_response m4
STEP_FINISHED round-1
RUN_FINISHED t1 r2 success\
""")


async def test_a_page_is_let_go_of_its_question_when_the_answered_run_fails() -> None:
    assert await golden_of("an answered run that fails") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 send in m1
TOOL_CALL_ARGS c1 "{\\"to\\":\\"Ann\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STATE_SNAPSHOT {}
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 c1=send{"to":"Ann"}
RUN_FINISHED t1 r1 interrupt [i1 tool_call c1 "May send run?" schema {"metadata":{"toolName":"send","args":{"to":"Ann"}}}]

RUN_STARTED t1 r2 1.0
TOOL_CALL_RESULT c1 o1 "Sent to Ann."
STEP_STARTED round-1
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Half "
TEXT_MESSAGE_END m2
STEP_FINISHED round-1
RUN_FINISHED t1 r2
RUN_ERROR stream_cut "The provider's stream broke off."\
""")
