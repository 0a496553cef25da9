"""What goes back of the responses in the case log, and its restored histories as requests of the Messages API."""

from __future__ import annotations

import json

import pytest

from runtime import samples as s
from runtime.anthropic_model import AnthropicModel
from runtime.canonical import JsonObject
from runtime.dialects.anthropic import Anthropic
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from runtime.testing import HttpAnswer
from runtime.usage import add_usage
from tests.contract.anthropic_cases import CASES, PAUSED, Response, bodies_of, chunks_of, listen, playing
from tests.pure.anthropic_rules import judge

# --- what goes back -----------------------------------------------------------------------------------------------


def sent(items: list[Item], **options: object) -> list[JsonObject]:
    """The messages of the request, judged, without cache breakpoints."""
    request = Anthropic().encode(items, [], {"model": "m", "cache_ttl": None, **options})
    judge(request)
    return request["messages"]


def items_in(samples: list[s.Sample]) -> list[Item]:
    """What the loop and the thread make of a response."""
    items: list[Item] = []
    thought = text = ""
    ids: dict[str, int] = {}
    for sample in samples:
        if text and not isinstance(sample, s.TextDelta):
            items.append(Message("assistant", text, "final_response"))
            text = ""
        match sample:
            case s.TextDelta(piece):
                text += piece
            case s.ReasoningDelta(piece):
                thought += piece
            case s.ReasoningDone(signature, encrypted, opaque):
                items.append(Reasoning(thought, "anthropic", signature, encrypted, opaque))
                thought = ""
            case s.ToolCallDelta(key) if key not in ids:
                ids[key] = len(items)
                items.append(Message("assistant", ""))
            case s.ToolCallCommitted(key, name, arguments, call_id, opaque):
                items[ids[key]] = FunctionCall(call_id, name, arguments, False, opaque, "anthropic")
            case _:
                pass
    return items


def sent_back(heard: Response) -> list[JsonObject]:
    """The content of the assistant's message, when somebody has spoken since."""
    messages = sent([Message("user", "x"), *items_in(heard.samples), Message("user", "y")])
    assert [message["role"] for message in messages] == ["user", "assistant", "user"]
    return messages[1]["content"]


def test_thoughts_go_back_byte_for_byte_C_064_C_065() -> None:
    assert sent_back(listen(chunks_of("C-064"))) == [
        {"type": "thinking", "thinking": "Easy.", "signature": "U0lHMQ=="},
        {"type": "thinking", "thinking": "", "signature": "U0lHMg=="},
        {"type": "text", "text": "4"},
    ]
    assert sent_back(listen(chunks_of("C-065"))) == [
        {"type": "redacted_thinking", "data": "UkVEMQ=="},
        {"type": "redacted_thinking", "data": "UkVEMg=="},
        {"type": "text", "text": "Hello."},
    ]


def test_the_parts_of_a_round_go_back_in_their_order_C_077() -> None:
    assert [block["type"] for block in sent_back(listen(chunks_of("C-077")))] == ["text", "tool_use", "text"]


def test_a_server_tools_blocks_go_back_in_their_place_with_what_the_text_cites_C_066() -> None:
    chunks = chunks_of("C-066")
    result = next(chunk["content_block"] for chunk in chunks if chunk.get("index") == 1)
    citation = next(chunk["delta"]["citation"] for chunk in chunks if "citation" in chunk.get("delta", {}))
    assert sent_back(listen(chunks)) == [
        {"type": "server_tool_use", "id": "srvtoolu_1", "name": "web_search", "input": {"query": "oslo"}},
        result,
        {"type": "text", "text": "Oslo has "},
        {"type": "text", "text": "about 700 000 people", "citations": [citation]},
        {"type": "text", "text": "."},
    ]


def test_a_fallback_is_kept_and_names_the_model_C_073() -> None:
    heard = listen(chunks_of("C-073"))
    assert heard.ends[0].model == "b"
    assert sent_back(heard)[0] == {"type": "fallback", "from": {"model": "a"}, "to": {"model": "b"}}


def test_an_empty_text_is_not_sent_back_C_074() -> None:
    assert [block["type"] for block in sent_back(listen(chunks_of("C-074")))] == ["tool_use"]


def test_malformed_arguments_go_back_as_an_object_C_063() -> None:
    assert sent_back(listen(chunks_of("C-063")))[0]["input"] == {"INVALID_JSON": '{"keywords": Dave, "limit": 3}'}


async def test_a_paused_turn_goes_on_with_the_same_content_as_one_message_C_067() -> None:
    history: list[Item] = [Message("user", "How is the air?")]
    usage: list[JsonObject] = []
    text = ""
    requests: list[JsonObject] = []
    async with playing(*(HttpAnswer([body]) for body in bodies_of(PAUSED))) as (server, client):
        model = AnthropicModel("m-1", client=client)
        for finish in ("pause_turn", "stop"):
            request = model.dialect.encode(history, [], {"model": "m-1"})
            judge(request)
            decoder = model.dialect.decoder([])
            heard = Response()
            async for chunk in model.stream(request):
                heard.feed(decoder.feed(chunk))
            heard.feed(decoder.finish())
            assert heard.ends[0].finish == finish
            assert not heard.calls
            add_usage(usage, {"provider": "anthropic", "model": "m-1", **(heard.ends[0].usage or {})})
            history += items_in(heard.samples)
            text += heard.text
        requests = server.requests
    use = {"type": "server_tool_use", "id": "srvtoolu_7", "name": "web_search", "input": {"query": "aqi"}}
    assert [one["messages"][1:] for one in requests] == [[], [{"role": "assistant", "content": [use]}]]
    assert text == "Air is good."
    assert (usage[0]["input_tokens"], usage[0]["output_tokens"]) == (41, 28)
    later = sent([*history, Message("user", "Thanks")])
    result = {"type": "web_search_tool_result", "tool_use_id": "srvtoolu_7", "content": []}
    assert later[1]["content"] == [use, result, {"type": "text", "text": "Air is good."}]


# --- restored histories -------------------------------------------------------------------------------------------


def items_of(name: str) -> list[Item]:
    """The case's transcript as items."""
    here = CASES / f"{name}.json"
    others = (CASES.parent / folder / f"{name}.json" for folder in ("cases", "cases_responses"))
    path = here if here.exists() else next(path for path in others if path.exists())
    document = json.loads(path.read_bytes())
    if "blocks" in document:
        said = [_block(block) for block in document["blocks"]]
        return [Message("user", "x"), *said, Message("user", document["next"])]
    return [_item(message["role"], part) for message in document["transcript"] for part in message["parts"]]


def _block(block: JsonObject) -> Item:
    if block["type"] == "text":
        return Message("assistant", block["text"])
    return Reasoning("", "anthropic", opaque=block)


def _item(role: str, part: JsonObject) -> Item:
    match part["type"]:
        case "text":
            return Message(role, part["text"])
        case "reasoning":
            text = part.get("text") or "".join(part.get("summary", []))
            provider = "anthropic" if part["provider"] == "anthropic" else "openai"
            encrypted = part.get("redacted") or part.get("encrypted")
            return Reasoning(text, provider, part.get("signature"), encrypted)
        case "tool_call":
            return FunctionCall(part["id"], part["name"], part["args"], provider="anthropic")
        case _:
            return FunctionCallOutput(part["id"], "", part["content"] or "", part.get("outcome") == "failed")


def shape(messages: list[JsonObject]) -> list[str]:
    """Each message's blocks in short."""
    return [f"{message['role']}: {', '.join(map(_short, message['content']))}" for message in messages]


def _short(block: JsonObject) -> str:
    match block["type"]:
        case "text":
            return block["text"]
        case "tool_use":
            return f"call {block['id']}"
        case "tool_result":
            return f"{'error' if block.get('is_error') else 'result'} {block['tool_use_id']}"
        case kind:
            return kind


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("C-089", ["user: Weather?", "assistant: call c1", "user: error c1, never mind, hi"]),
        ("C-090", ["user: Both", "assistant: call c1, call c2", "user: result c1, error c2, go on"]),
        ("C-091", ["user: Hi", "assistant: Hello", "user: next"]),
        (
            "C-092",
            [
                "user: 1",
                "assistant: call d1",
                "user: result d1",
                "assistant: ok",
                "user: 2",
                "assistant: call d1-2",
                "user: result d1-2, 3",
            ],
        ),
        ("C-093", ["user: Hi", "assistant: call c1", "user: result c1, thanks"]),
        ("C-094", ["user: first, second"]),
        ("C-095", ["user: x", "assistant: call c1, call c2, call c3", "user: result c1, result c2, result c3, y"]),
        ("C-096", ["user: x", "assistant: call c1", "user: result c1, are you there?", "assistant: yes"]),
        ("C-099", ["user: x, y"]),
        ("C-100", ["user: x", "assistant: thinking, call c1, call c2", "user: result c1, error c2, y"]),
        ("C-101", ["user: x", "assistant: redacted_thinking, call c1", "user: result c1"]),
        ("C-104", ["user: x", "assistant: call c1", "user: error c1, y"]),
        ("C-105", ["user: x", "assistant: Searching", "user: user message"]),
        ("C-106", ["user: Pick a colour", "assistant: call f1", "user: error f1, forget it, tell a joke"]),
        ("C-107", ["user: x", "assistant: call c1", "user: result c1"]),
        ("C-108", ["user: x", "assistant: call c1", "user: error c1"]),
    ],
)
def test_a_restored_history_is_one_that_the_api_accepts(name: str, expected: list[str]) -> None:
    assert shape(sent(items_of(name))) == expected


def test_a_result_of_nothing_is_said_to_be_nothing_C_107() -> None:
    assert sent(items_of("C-107"))[-1]["content"] == [{"type": "tool_result", "tool_use_id": "c1", "content": ""}]


def test_a_paused_search_stays_as_long_as_nobody_has_spoken_C_105() -> None:
    paused = items_of("C-105")[:-1]
    assert shape(sent(paused)) == ["user: x", "assistant: Searching, server_tool_use"]
