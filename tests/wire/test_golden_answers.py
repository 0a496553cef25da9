# ruff: noqa: E501  an event is a line, however long
"""What a page is told when things go well, written down."""

from __future__ import annotations

import pytest
from inline_snapshot import snapshot

from tests.wire.scenes import golden_of


async def test_an_answer_streams_as_one_message_that_turns_out_to_be_final() -> None:
    assert await golden_of("plain answer") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Let "
TEXT_MESSAGE_CONTENT m1 "me "
TEXT_MESSAGE_CONTENT m1 "think"
TEXT_MESSAGE_END m1 final_response/1
CUSTOM agui-bridge:round 1 final_response m1
STEP_FINISHED round-1
RUN_FINISHED t1 r1 success {"usage":[{"provider":"testing","model":"scripted-provider","inputTokens":3,"outputTokens":2}]}\
""")


async def test_text_before_a_tool_is_a_working_message_and_text_behind_its_result_another_message() -> None:
    assert await golden_of("text, tool, text") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Looking. "
TEXT_MESSAGE_END m1 working_message/1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"key\\":\\"tea\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "tea is 42"
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "It "
TEXT_MESSAGE_CONTENT m2 "is "
TEXT_MESSAGE_CONTENT m2 "42"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success\
""")


@pytest.mark.requirement("R-096")
async def test_tools_at_once_answer_in_the_order_in_which_they_are_done() -> None:
    assert await golden_of("two tools at once") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 slow_lookup in m1
TOOL_CALL_ARGS c1 "{\\"key\\":\\"tea\\"}"
TOOL_CALL_START c2 lookup in m1
TOOL_CALL_ARGS c2 "{\\"key\\":\\"jam\\"}"
TOOL_CALL_END c1
TOOL_CALL_END c2
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c2 o1 "jam is 42"
TOOL_CALL_RESULT c1 o2 "tea is 43"
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Both "
TEXT_MESSAGE_CONTENT m2 "known"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success\
""")


@pytest.mark.requirement("R-087")
async def test_text_behind_a_call_of_the_same_round_reopens_the_message() -> None:
    assert await golden_of("text around a call") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Look: "
TEXT_MESSAGE_END m1 working_message/1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"key\\""
TOOL_CALL_ARGS c1 ":\\"tea\\"}"
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "there."
TOOL_CALL_END c1
TEXT_MESSAGE_END m1 working_message/1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "tea is 42"
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "done"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success\
""")


@pytest.mark.requirement("R-108")
async def test_a_tool_that_fails_answers_so_and_the_run_goes_on() -> None:
    assert await golden_of("failing tool") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 broken in m1
TOOL_CALL_ARGS c1 "{}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "RuntimeError: the shelf is empty"
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "It "
TEXT_MESSAGE_CONTENT m2 "failed"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success\
""")


@pytest.mark.requirement("R-135", "R-136", "R-137")
async def test_reasoning_is_a_message_of_its_own_before_the_text() -> None:
    assert await golden_of("reasoning, then text") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
REASONING_START r1
REASONING_MESSAGE_START r1 reasoning
REASONING_MESSAGE_CONTENT r1 "Weigh "
REASONING_MESSAGE_CONTENT r1 "it."
REASONING_MESSAGE_END r1
REASONING_ENCRYPTED_VALUE "sig" {"subtype":"message","entityId":"r1"}
REASONING_END r1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Yes"
TEXT_MESSAGE_END m1 final_response/1
CUSTOM agui-bridge:round 1 final_response m1
STEP_FINISHED round-1
RUN_FINISHED t1 r1 success\
""")


async def test_a_refusal_in_words_is_shown_as_text_and_succeeds() -> None:
    assert await golden_of("refusal with words") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "I would "
TEXT_MESSAGE_CONTENT m1 "rather not."
TEXT_MESSAGE_END m1 final_response/1
CUSTOM agui-bridge:round 1 final_response m1
STEP_FINISHED round-1
RUN_FINISHED t1 r1 success\
""")


async def test_text_cut_by_length_is_the_final_response() -> None:
    assert await golden_of("text cut by length") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "As "
TEXT_MESSAGE_CONTENT m1 "long "
TEXT_MESSAGE_CONTENT m1 "as"
TEXT_MESSAGE_END m1 final_response/1
CUSTOM agui-bridge:round 1 final_response m1
STEP_FINISHED round-1
RUN_FINISHED t1 r1 success\
""")


async def test_arguments_of_nothing_are_shown_as_they_are_committed() -> None:
    assert await golden_of("arguments of nothing") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "The arguments of lookup do not fit its parameters:\\n- key is missing"
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Fine"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success {"usage":[{"provider":"testing","model":"scripted-provider","inputTokens":3,"outputTokens":2}]}\
""")


async def test_a_call_without_a_name_is_shown_to_nobody() -> None:
    assert await golden_of("call without a name") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
CUSTOM agui-bridge:round 1 working_message
STEP_FINISHED round-1
STEP_STARTED round-2
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Sorry"
TEXT_MESSAGE_END m1 final_response/2
CUSTOM agui-bridge:round 2 final_response m1
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success {"usage":[{"provider":"testing","model":"scripted-provider","inputTokens":3,"outputTokens":2}]}\
""")


@pytest.mark.requirement("R-117")
async def test_malformed_arguments_are_answered_and_never_run() -> None:
    assert await golden_of("malformed arguments") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"key\\""
TOOL_CALL_ARGS c1 ": tea}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "The arguments of lookup are not a well-formed JSON object. The tool was not run; call it again with a JSON object."
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Sorry"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success {"usage":[{"provider":"testing","model":"scripted-provider","inputTokens":3,"outputTokens":2}]}\
""")


async def test_a_tool_that_nobody_has_is_answered_with_those_that_there_are() -> None:
    assert await golden_of("undeclared tool") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 launch in m1
TOOL_CALL_ARGS c1 "{"
TOOL_CALL_ARGS c1 "}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "There is no tool named 'launch'. The tools are: lookup, slow_lookup, broken."
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Sorry"
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success {"usage":[{"provider":"testing","model":"scripted-provider","inputTokens":3,"outputTokens":2}]}\
""")


@pytest.mark.requirement("R-072", "R-074")
async def test_rounds_beyond_the_budget_end_the_run_as_cancelled() -> None:
    assert await golden_of("budget of rounds") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"key\\":\\"tea\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
TOOL_CALL_RESULT c1 o1 "tea is 42"
RUN_FINISHED t1 r1 cancelled\
""")


@pytest.mark.requirement("R-049", "R-123")
async def test_a_change_of_state_is_told_and_a_page_that_lacks_the_state_is_told_it_first() -> None:
    assert await golden_of("shared state") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 add_todo in m1
TOOL_CALL_ARGS c1 "{\\"text\\":\\"mil"
TOOL_CALL_ARGS c1 "k\\"}"
TOOL_CALL_END c1
CUSTOM agui-bridge:round 1 working_message m1
STEP_FINISHED round-1
STATE_SNAPSHOT {"todos":[{"text":"milk","done":false}]}
TOOL_CALL_RESULT c1 o1 "Added. There are 1 things to do."
STEP_STARTED round-2
TEXT_MESSAGE_START m2 assistant
TEXT_MESSAGE_CONTENT m2 "Done, "
TEXT_MESSAGE_CONTENT m2 "it "
TEXT_MESSAGE_CONTENT m2 "is "
TEXT_MESSAGE_CONTENT m2 "on "
TEXT_MESSAGE_CONTENT m2 "your "
TEXT_MESSAGE_CONTENT m2 "list."
TEXT_MESSAGE_END m2 final_response/2
CUSTOM agui-bridge:round 2 final_response m2
STEP_FINISHED round-2
RUN_FINISHED t1 r1 success {"usage":[{"provider":"scripted","model":"scripted","inputTokens":45,"outputTokens":9,"totalTokens":54}]}

RUN_STARTED t1 r2 1.0
STATE_SNAPSHOT {"todos":[{"text":"milk","done":false}]}
STEP_STARTED round-1
TOOL_CALL_START c2 add_todo in m3
TOOL_CALL_ARGS c2 "{\\"text\\":\\"tea"
TOOL_CALL_ARGS c2 "\\"}"
TOOL_CALL_END c2
CUSTOM agui-bridge:round 1 working_message m3
STEP_FINISHED round-1
STATE_DELTA [{"op":"add","path":"/todos/1","value":{"text":"tea","done":false}}]
TOOL_CALL_RESULT c2 o2 "Added. There are 2 things to do."
STEP_STARTED round-2
TEXT_MESSAGE_START m4 assistant
TEXT_MESSAGE_CONTENT m4 "Done, "
TEXT_MESSAGE_CONTENT m4 "it "
TEXT_MESSAGE_CONTENT m4 "is "
TEXT_MESSAGE_CONTENT m4 "on "
TEXT_MESSAGE_CONTENT m4 "your "
TEXT_MESSAGE_CONTENT m4 "list."
TEXT_MESSAGE_END m4 final_response/2
CUSTOM agui-bridge:round 2 final_response m4
STEP_FINISHED round-2
RUN_FINISHED t1 r2 success {"usage":[{"provider":"scripted","model":"scripted","inputTokens":75,"outputTokens":9,"totalTokens":84}]}\
""")
