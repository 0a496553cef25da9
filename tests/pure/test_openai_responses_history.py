"""Any history at all as a Responses request, before a judge."""

from __future__ import annotations

import orjson
from hypothesis import given
from hypothesis import strategies as st

from runtime.budget import Budget
from runtime.canonical import JsonObject
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from runtime.sampling import Sampling
from runtime.thread import Thread
from tests.examples import examples
from tests.pure.responses_events import call, completed, done, heard, message, reasoning
from tests.pure.responses_histories import MEDIA, answered, called, sent, thought

WORDS = st.sampled_from(["", " ", "a", "Error: b", "\U0001f600"])
IDS = st.sampled_from(["c1", "c2", "", "x" * 80, "x" * 80 + "y"])
PROVIDERS = st.sampled_from(["openai", "anthropic", "google"])
CONTENT = st.one_of(
    WORDS,
    st.lists(
        st.one_of(
            st.builds(lambda text: {"type": "text", "text": text}, WORDS),
            st.builds(lambda one: {"type": one[0], "source": one[1]}, st.sampled_from(MEDIA)),
        ),
        max_size=3,
    ),
)
ARGUMENTS = st.sampled_from(["{}", "", "null", '{"a":1}', '{"a":', "[1]", '{"input":"x"}', '"x"', '{"a":"\\ud83d"}'])
OPAQUE_CALL = st.sampled_from([None, {"type": "custom_tool_call"}, {"type": "function_call", "x": 1}, {"extra": {}}])
OPAQUE = st.sampled_from(
    [
        None,
        {},
        {"type": "reasoning", "id": "rs_1", "summary": [{"type": "summary_text", "text": "Hm"}]},
        {"type": "reasoning", "id": "rs_2"},
        {"type": "reasoning", "id": "", "summary": None},
        {"type": "web_search_call", "id": "ws_1"},
        {"type": "shell_call", "id": "sh_1", "call_id": "s1"},
        {"type": "shell_call_output", "id": "so_1", "call_id": "s1"},
        {"type": "local_shell_call", "id": "ls_1", "call_id": "l1"},
        {"type": "local_shell_call_output", "id": "ls_1"},
        {"type": "compaction", "encrypted_content": "A"},
        {"type": 7},
        {"reasoning_details": []},
    ]
)
REASONINGS = st.builds(Reasoning, WORDS, PROVIDERS, st.just(None), st.sampled_from([None, "", "E"]), OPAQUE)
FUNCTION_CALLS = st.builds(
    FunctionCall,
    IDS,
    st.sampled_from(["t", "a.b", "", "n" * 70]),
    ARGUMENTS,
    st.booleans(),
    OPAQUE_CALL,
    st.one_of(st.none(), PROVIDERS),
)
RESULTS = st.builds(FunctionCallOutput, IDS, st.just("t"), CONTENT, st.booleans())
SPOKEN = st.builds(
    Message,
    st.sampled_from(["user", "system", "assistant"]),
    CONTENT,
    st.sampled_from([None, "working_message", "final_response", "late_tool_answer"]),
    st.sampled_from([None, "commentary", "final_answer", "moon"]),
    st.booleans(),
)
ITEMS = st.lists(st.one_of(SPOKEN, FUNCTION_CALLS, RESULTS, REASONINGS), max_size=14)


@examples(500)
@given(ITEMS)
def test_any_history_is_one_that_the_api_accepts(items: list[Item]) -> None:
    made = sent(*items)
    assert orjson.dumps(made)
    assert [one["type"] for one in made if one["type"] in ("function_call", "custom_tool_call")] == [
        made_as(item) for item in items if isinstance(item, FunctionCall)
    ]
    said = [item for item in items if isinstance(item, Message) and item.role != "assistant"]
    assert len([one for one in made if one.get("role") in ("user", "system")]) == len(said)


def made_as(call: FunctionCall) -> str:
    custom = call.provider == "openai" and (call.opaque or {}).get("type") == "custom_tool_call"
    return "custom_tool_call" if custom and call.arguments_json == '{"input":"x"}' else "function_call"


@st.composite
def turns(draw: st.DrawFn) -> list[list[Item]]:
    """What runs leave behind: a user's message, rounds of thought, text and answered calls, an answer."""
    history: list[list[Item]] = []
    number = 0
    for _ in range(draw(st.integers(1, 4))):
        history.append([Message("user", draw(st.sampled_from(["x", "y"])))])
        for _ in range(draw(st.integers(0, 3))):
            provider = draw(PROVIDERS)
            round_: list[Item] = []
            if draw(st.booleans()):
                round_.append(thought(f"rs_{number}", draw(st.sampled_from([None, "E"])), provider))
            if draw(st.booleans()):
                round_.append(Message("assistant", "Well.", "working_message", "commentary"))
            ids = [f"c{number}_{at}" for at in range(draw(st.integers(1, 3)))]
            round_ += [called(call_id, provider=provider) for call_id in ids]
            round_ += [answered(call_id, draw(WORDS), is_error=draw(st.booleans())) for call_id in ids]
            history.append(round_)
            number += 1
        if draw(st.booleans()):
            history.append([thought(f"rs_{number}"), Message("assistant", "Done.", "final_response", "final_answer")])
            number += 1
    return history


@examples(200)
@given(turns())
def test_the_requests_of_a_thread_begin_with_the_same_bytes(history: list[list[Item]]) -> None:
    earlier: list[JsonObject] = []
    for upto in range(1, len(history) + 1):
        made = sent(*(item for round_ in history[:upto] for item in round_))
        assert orjson.dumps(made[: len(earlier)]) == orjson.dumps(earlier)
        earlier = made
    kept = [item for round_ in history for item in round_ if isinstance(item, Reasoning)]
    ours = [item for item in kept if item.provider == "openai" and item.encrypted_value]
    assert len([one for one in earlier if one["type"] == "reasoning"]) == len(ours)


def test_what_a_response_said_goes_back_item_by_item_after_it_was_stored() -> None:
    output: list[JsonObject] = [
        reasoning("Plan", "Check", id="rs_1", encrypted_content="E1"),
        {"type": "web_search_call", "id": "ws_1", "status": "completed", "action": {"query": "oslo"}},
        message("I will ask.", phase="commentary", id="msg_1"),
        reasoning(id="rs_2", encrypted_content="E2"),
        call('{"a": 1}', "t", "c1", id="fc_1"),
        {"type": "custom_tool_call", "name": "sql", "call_id": "c2", "id": "ct_1", "input": "SELECT 1"},
    ]
    sampling = Sampling(
        message_id="m1",
        provider="openai",
        target=lambda _: "server",
        taken=set(),
        mint=lambda _: "x",
        budget=Budget(),
        elapsed=lambda: 0.0,
    )
    facts = [*sampling.start(), *sampling.round_started("m-1", {})]
    facts += sampling.feed(heard(*(done(at, **item) for at, item in enumerate(output)), completed(*output)))
    facts += [event for id_ in ("c1", "c2") for event in sampling.tool_output(id_, "ok", "result")]
    thread = Thread("t1")
    for at, fact in enumerate(facts, 1):
        thread.apply("run_1", 0, at, fact)
    assert sent(*thread.items()) == [
        output[0],
        output[1],
        {"type": "message", "role": "assistant", "content": "I will ask.", "phase": "commentary"},
        output[3],
        {"type": "function_call", "call_id": "c1", "name": "t", "arguments": '{"a": 1}'},
        {"type": "custom_tool_call", "call_id": "c2", "name": "sql", "input": "SELECT 1"},
        {"type": "function_call_output", "call_id": "c1", "output": "ok"},
        {"type": "custom_tool_call_output", "call_id": "c2", "output": "ok"},
    ]
