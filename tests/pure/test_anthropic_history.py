"""Any history at all as a request of the Messages API, before a judge."""

from __future__ import annotations

from typing import Any

import orjson
from hypothesis import given
from hypothesis import strategies as st

from runtime.budget import Budget
from runtime.canonical import JsonObject
from runtime.dialects.anthropic import Anthropic
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, ToolSpec
from runtime.sampling import Sampling
from runtime.thread import Thread
from tests.examples import examples
from tests.pure.anthropic_events import args as piece
from tests.pure.anthropic_events import begun, block, call, delta, ends, heard, signature, text, thinking
from tests.pure.anthropic_events import stop as over
from tests.pure.anthropic_histories import MEDIA, answered, called, encode, found, search, sent, thought, words
from tests.pure.anthropic_rules import breakpoints, judge

WORDS = st.sampled_from(["", " ", "\n", "a", "Error: b", "b ", "\U0001f600"])
IDS = st.sampled_from(["c1", "c1-2", "c2", "", "a.b", "a:b", "x" * 80, "s1"])
PROVIDERS = st.sampled_from(["anthropic", "anthropic", "openai"])
CONTENT = st.one_of(
    WORDS,
    st.lists(
        st.one_of(
            st.builds(lambda said: {"type": "text", "text": said}, WORDS),
            st.builds(lambda one: {"type": one[0], "source": one[1]}, st.sampled_from(MEDIA)),
        ),
        max_size=3,
    ),
)
ARGUMENTS = st.sampled_from(["{}", "", "null", '{"a":1}', '{"a":', "[1]", '"x"', '{"a":"\\ud83d"}'])
CALLER = {"caller": {"type": "code_execution_20250825", "tool_id": "s1"}}
OPAQUE_CALL = st.sampled_from([None, CALLER, {"caller": {"type": "direct"}}, {"id": "no", "type": "no", "input": 1}])
OPAQUE = st.sampled_from(
    [
        None,
        {},
        {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {}},
        {"type": "server_tool_use", "id": "s2", "name": "web_search", "input": {}},
        {"type": "server_tool_use", "id": "", "name": "web_search", "input": {}},
        {"type": "mcp_tool_use"},
        {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []},
        {"type": "web_search_tool_result", "tool_use_id": "s2", "content": []},
        {"type": "web_search_tool_result", "tool_use_id": 7, "content": []},
        {"type": "fallback", "to": {"model": "b"}},
        {"type": "text", "text": "a", "citations": [{"x": 1, "file_id": None}]},
        {"type": "text", "text": 7, "citations": 7},
        {"type": "text"},
        {"type": "tool_use", "id": "c1", "name": "t", "input": {}},
        {"type": "thinking"},
        {"type": 7},
    ]
)
SIGNATURES = st.sampled_from([None, "", "S"])
REASONINGS = st.builds(Reasoning, WORDS, PROVIDERS, SIGNATURES, st.sampled_from([None, None, "", "R"]), OPAQUE)
FUNCTION_CALLS = st.builds(
    FunctionCall,
    IDS,
    st.sampled_from(["t", "a.b", "", "n" * 140]),
    ARGUMENTS,
    st.booleans(),
    OPAQUE_CALL,
    st.one_of(st.none(), PROVIDERS),
)
RESULTS = st.builds(FunctionCallOutput, IDS, st.just("t"), CONTENT, st.booleans())
SPOKEN = st.builds(
    Message,
    st.sampled_from(["user", "system", "assistant", "assistant"]),
    CONTENT,
    st.sampled_from([None, "working_message", "final_response", "late_tool_answer"]),
    st.none(),
    st.booleans(),
)
ITEMS = st.lists(st.one_of(SPOKEN, FUNCTION_CALLS, RESULTS, REASONINGS, REASONINGS), max_size=14)
TOOLS = st.lists(st.builds(ToolSpec, st.sampled_from(["t", "a.b", "a_b", ""]), WORDS, st.just({})), max_size=3)
OPTIONS = st.fixed_dictionaries(
    {},
    optional={
        "instructions": WORDS,
        "thinking": st.sampled_from([{"type": "enabled", "budget_tokens": 2000}, {"type": "adaptive"}]),
        "replay_reasoning": st.sampled_from(["always", "loop", "never"]),
        "cache_ttl": st.sampled_from(["5m", "1h", None]),
        "tool_choice": st.just({"type": "auto"}),
    },
)


@examples(500)
@given(ITEMS, TOOLS, OPTIONS)
def test_any_history_is_one_that_the_api_accepts(items: list[Item], tools: list[ToolSpec], options: Any) -> None:
    request = Anthropic().encode(items, tools, {"model": "m", **options})
    judge(request)
    assert orjson.dumps(request) == orjson.dumps(Anthropic().encode(items, tools, {"model": "m", **options}))
    made = [block for message in request["messages"] for block in message["content"]]
    calls = [item for item in items if isinstance(item, FunctionCall)]
    assert [block["type"] for block in made].count("tool_use") == len(calls)
    assert [block["type"] for block in made].count("tool_result") == len(calls)
    thoughts = [block for block in made if block["type"] == "thinking"]
    ours = [item for item in items if isinstance(item, Reasoning) and item.provider == "anthropic" and item.signature]
    assert all(any((one["thinking"], one["signature"]) == (o.text, o.signature) for o in ours) for one in thoughts)


@st.composite
def turns(draw: st.DrawFn) -> list[list[Item]]:
    """What runs leave behind: a user's message, rounds of thought, text and answered calls, an answer."""
    history: list[list[Item]] = []
    number = 0
    for _ in range(draw(st.integers(1, 5))):
        history.append([Message("user", draw(st.sampled_from(["x", "", "y "])))])
        for _ in range(draw(st.integers(0, 3))):
            provider = draw(PROVIDERS)
            round_: list[Item] = []
            if draw(st.booleans()):
                round_.append(thought("Hm", draw(st.sampled_from([None, "S"])), provider))
            if draw(st.booleans()):
                round_ += [search(f"s{number}"), found(f"s{number}")]
            if draw(st.booleans()):
                round_.append(Message("assistant", draw(WORDS), "working_message"))
            ids = [draw(st.sampled_from([f"c{number}_{at}", "again", f"a.{number}"])) for at in range(draw(ROUND))]
            round_ += [called(call_id, arguments=draw(ARGUMENTS), provider=provider) for call_id in ids]
            outputs = [answered(call_id, draw(CONTENT), is_error=draw(st.booleans())) for call_id in ids]
            history.append(round_ + draw(st.permutations(outputs)))
            number += 1
        if draw(st.booleans()):
            history.append([thought(), words(draw(st.sampled_from(["Done.", "Done. ", ""])))])
    return history


ROUND = st.integers(1, 3)


def plain(value: Any) -> Any:
    """Without cache breakpoints, which are no part of what is cached."""
    if isinstance(value, dict):
        return {name: plain(one) for name, one in value.items() if name != "cache_control"}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


def flat(request: JsonObject) -> list[bytes]:
    """All that the model reads, block by block, as bytes."""
    said = [(message["role"], block) for message in request["messages"] for block in message["content"]]
    return [orjson.dumps(plain(one)) for one in [request.get("tools", []), request.get("system", []), *said]]


@examples(300)
@given(turns())
def test_the_requests_of_a_thread_begin_with_the_same_bytes(history: list[list[Item]]) -> None:
    tools = (ToolSpec("t", "Does it.", {}),)
    earlier: JsonObject | None = None
    for upto in range(1, len(history) + 1):
        items = [item for round_ in history[:upto] for item in round_]
        if isinstance(items[-1], (Message, Reasoning)) and getattr(items[-1], "role", "") != "user":
            continue  # nothing is asked behind a final answer
        made = encode(*items, tools=tools, instructions="Be kind.")
        if earlier is not None:
            assert flat(made)[: len(flat(earlier))] == flat(earlier)
            ends = flat({"messages": [{"role": "user", "content": [list(breakpoints(earlier))[-1]]}]})[-1]
            marked = [flat({"messages": [{"role": "user", "content": [one]}]})[-1] for one in breakpoints(made)]
            assert ends in marked, "what was cached is looked for"
        earlier = made


def test_what_a_response_said_goes_back_block_by_block_after_it_was_stored() -> None:
    use = {"type": "server_tool_use", "id": "s1", "name": "web_search", "input": {"q": 1}}
    result = {"type": "web_search_tool_result", "tool_use_id": "s1", "content": []}
    chunks = [
        *block(0, "thinking", thinking(0, "Plan"), thinking(0, " it"), signature(0, "S1")),
        *block(1, "redacted_thinking", data="R1"),
        {"type": "content_block_start", "index": 2, "content_block": {**use, "input": {}}},
        piece(2, '{"q":1}'),
        over(2),
        {"type": "content_block_start", "index": 3, "content_block": result},
        over(3),
        *block(4, "text", text(4, "It is ")),
        *block(5, "text", delta(5, "citations_delta", citation={"x": 1}), text(5, "so")),
        call(6),
        piece(6, '{"a": 1}'),
        over(6),
        *block(7, "thinking", signature(7, "S2")),
        call(8, "u", "c2", caller={"type": "direct"}),
        over(8),
        *block(9, "text", text(9, "Wait.")),
    ]
    sampling = Sampling(
        message_id="m1",
        provider="anthropic",
        target=lambda _: "server",
        taken=set(),
        mint=lambda _: "x",
        budget=Budget(),
        elapsed=lambda: 0.0,
    )
    facts = [*sampling.start(), *sampling.round_started("m-1", {})]
    facts += sampling.feed(heard(begun(), *chunks, *ends("tool_use")))
    facts += [event for id_ in ("c1", "c2") for event in sampling.tool_output(id_, "ok", "result")]
    thread = Thread("t1")
    for at, fact in enumerate(facts, 1):
        thread.apply("run_1", 0, at, fact)
    assistant, user = sent(Message("user", "x"), *thread.items())[1:]
    assert assistant["content"] == [
        {"type": "thinking", "thinking": "Plan it", "signature": "S1"},
        {"type": "redacted_thinking", "data": "R1"},
        use,
        result,
        {"type": "text", "text": "It is "},
        {"type": "text", "text": "so", "citations": [{"x": 1}]},
        {"type": "tool_use", "id": "c1", "name": "t", "input": {"a": 1}},
        {"type": "thinking", "thinking": "", "signature": "S2"},
        {"type": "tool_use", "id": "c2", "name": "u", "input": {}, "caller": {"type": "direct"}},
        {"type": "text", "text": "Wait."},
    ]
    assert [(one["tool_use_id"], one["content"]) for one in user["content"]] == [("c1", "ok"), ("c2", "ok")]
