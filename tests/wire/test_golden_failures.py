# ruff: noqa: E501  an event is a line, however long
"""What a page is told when the model fails it, written down."""

from __future__ import annotations

from inline_snapshot import snapshot

from tests.wire.scenes import golden_of


async def test_a_provider_that_fails_at_once_leaves_no_message() -> None:
    assert await golden_of("provider fails at once") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
STEP_FINISHED round-1
RUN_ERROR provider_refused "The provider said no."\
""")


async def test_a_provider_that_fails_in_mid_sentence_leaves_the_half_sentence_unclassified() -> None:
    assert await golden_of("provider fails after a delta") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Half "
TEXT_MESSAGE_END m1
STEP_FINISHED round-1
RUN_ERROR provider_unavailable "The provider is away."\
""")


async def test_text_that_was_never_completed_is_not_an_answer() -> None:
    assert await golden_of("text never completed") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Half "
TEXT_MESSAGE_END m1
STEP_FINISHED round-1
RUN_ERROR provider_protocol_error "The provider streamed text but never completed the message."\
""")


async def test_a_call_that_was_never_committed_is_taken_back_before_the_error() -> None:
    assert await golden_of("call never committed") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Let "
TEXT_MESSAGE_CONTENT m1 "me"
TEXT_MESSAGE_END m1 working_message/1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"key\\""
TOOL_CALL_ARGS c1 ":\\"tea\\"}"
TOOL_CALL_END c1
STEP_FINISHED round-1
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 "Let me" working_message/1
RUN_ERROR provider_protocol_error "The provider streamed tool arguments but never completed the call." {"usage":[{"provider":"testing","model":"scripted-provider","inputTokens":3,"outputTokens":2}]}\
""")


async def test_a_stream_that_broke_off_within_a_call_takes_the_call_back() -> None:
    assert await golden_of("cut stream") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"k"
TOOL_CALL_ARGS c1 "ey\\":"
TOOL_CALL_END c1
STEP_FINISHED round-1
MESSAGES_SNAPSHOT user u1 "Hi"
RUN_ERROR stream_cut "The provider's stream broke off."\
""")


async def test_arguments_cut_by_length_are_taken_back_and_the_text_before_them_stays() -> None:
    assert await golden_of("arguments cut by length") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Writing. "
TEXT_MESSAGE_END m1 working_message/1
TOOL_CALL_START c1 lookup in m1
TOOL_CALL_ARGS c1 "{\\"key"
TOOL_CALL_ARGS c1 "\\": \\"te"
TOOL_CALL_END c1
STEP_FINISHED round-1
MESSAGES_SNAPSHOT user u1 "Hi" | assistant m1 "Writing. " working_message/1
RUN_ERROR output_truncated "The answer was cut by its length limit within a tool call." {"usage":[{"provider":"testing","model":"scripted-provider","inputTokens":3,"outputTokens":2}]}\
""")


async def test_a_content_filter_fails_the_run() -> None:
    assert await golden_of("content filter") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
TEXT_MESSAGE_START m1 assistant
TEXT_MESSAGE_CONTENT m1 "Well "
TEXT_MESSAGE_CONTENT m1 "then"
TEXT_MESSAGE_END m1
STEP_FINISHED round-1
RUN_ERROR content_filter "The provider's content filter stopped the answer."\
""")


async def test_a_refusal_without_words_fails_the_run() -> None:
    assert await golden_of("refusal without words") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
STEP_FINISHED round-1
RUN_ERROR refusal "The model refused to answer."\
""")


async def test_an_answer_of_nothing_fails_the_run() -> None:
    assert await golden_of("empty response") == snapshot("""\
RUN_STARTED t1 r1 1.0
STEP_STARTED round-1
STEP_FINISHED round-1
RUN_ERROR empty_response "The model answered with nothing." {"usage":[{"provider":"testing","model":"scripted-provider","inputTokens":3,"outputTokens":2}]}\
""")
