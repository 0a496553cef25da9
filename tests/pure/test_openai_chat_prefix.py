"""What consecutive Chat Completions requests of a thread have in common: servers cache that by themselves."""

from __future__ import annotations

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from runtime.canonical import JsonObject
from runtime.dialects.openai_chat import OpenAIChat
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, ToolSpec

TOOLS = (ToolSpec("t", "Does it.", {"type": "object"}), ToolSpec("u", "", {}))
PROVIDERS = st.sampled_from(["openai", "anthropic"])
WORDS = st.sampled_from(["", " ", "a", "Error: b", "é \U0001f600"])
CONTENT = st.one_of(
    WORDS,
    st.lists(st.builds(lambda text: {"type": "text", "text": text}, WORDS), max_size=2),
    st.just([{"type": "image", "source": {"type": "url", "value": "https://a.test/b.png"}}]),
)
ARGUMENTS = st.sampled_from(["{}", "", "null", '{"a":1}', '{"a":', "[1]"])
DETAILS = st.sampled_from([None, {"reasoning_details": [{"type": "reasoning.text", "text": "Hm", "index": 0}]}])


@st.composite
def steps(draw: st.DrawFn) -> list[list[Item]]:
    """What runs leave behind, cut where a model is asked: after a user's message, and after each round's outputs."""
    history: list[list[Item]] = []
    before: list[Item] = []
    for number in range(draw(st.integers(1, 4))):
        before.append(Message("user", draw(CONTENT)))
        for at in range(draw(st.integers(0, 3))):
            history.append(before)
            before = []
            provider = draw(PROVIDERS)
            if draw(st.booleans()):
                before.append(Reasoning("Hm", provider, None, None, draw(DETAILS)))
            if draw(st.booleans()):
                before.append(Message("assistant", draw(WORDS), "working_message"))
            ids = [draw(st.sampled_from([f"c{number}_{at}_{n}", "again"])) for n in range(draw(st.integers(1, 3)))]
            before += [FunctionCall(id_, "t", draw(ARGUMENTS), provider=provider) for id_ in ids]
            outputs = [FunctionCallOutput(id_, "t", draw(CONTENT), draw(st.booleans())) for id_ in ids]
            before += draw(st.permutations(outputs))
        history.append(before)
        before = [Message("assistant", draw(WORDS), "final_response")]
        if draw(st.booleans()):
            before.insert(0, Reasoning("So.", draw(PROVIDERS)))
    return history


def asked(history: list[list[Item]], upto: int, **options: object) -> list[bytes]:
    """All that the model reads of a request, message by message, tools first."""
    items = [item for step in history[:upto] for item in step]
    request = OpenAIChat().encode(items, TOOLS, {"model": "m", "instructions": "Be kind.", **options})
    messages: list[JsonObject] = request["messages"]
    return [orjson.dumps(request["tools"]), *(orjson.dumps(message) for message in messages)]


@pytest.mark.parametrize("replay", ["always", "never"])
@given(history=steps())
def test_the_requests_of_a_thread_begin_with_the_same_bytes(replay: str, history: list[list[Item]]) -> None:
    earlier: list[bytes] = []
    for upto in range(1, len(history) + 1):
        made = asked(history, upto, replay_reasoning=replay)
        assert made[: len(earlier)] == earlier
        earlier = made


@given(history=steps())
def test_where_thoughts_go_back_in_the_running_loop_alone_only_a_new_message_ends_what_is_common(
    history: list[list[Item]],
) -> None:
    earlier: list[bytes] = []
    for upto in range(1, len(history) + 1):
        made = asked(history, upto)
        speaks = any(isinstance(item, Message) and item.role == "user" for item in history[upto - 1])
        if speaks:
            earlier = _up_to_the_thoughts(earlier)
        assert made[: len(earlier)] == earlier
        earlier = made


def _up_to_the_thoughts(request: list[bytes]) -> list[bytes]:
    thinks = [
        at for at, message in enumerate(request) if b'"reasoning_content"' in message or b"reasoning_det" in message
    ]
    return request[: thinks[0]] if thinks else request
