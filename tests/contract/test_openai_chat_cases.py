"""The case log of Chat Completions servers, of thinking in tags and of restored histories, as data.

Every stream runs twice: parsed, through the decoder, and as bytes in many pieces, through the real SDK's client.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import random
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.dialects.openai_chat import OpenAIChat
from runtime.dialects.think import ThinkTags
from runtime.errors import ProviderError
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from runtime.provider_stream import chunk_of
from runtime.providers import OpenAIChatModel
from tests.contract.provider_server import Answer, playing

CASES = Path(__file__).parent / "cases"
INDEX: dict[str, JsonObject] = json.loads((CASES / "index.json").read_text("utf-8"))
STREAMS = sorted(name for name, case in INDEX.items() if case.get("dialect") == "openai_chat")
THINK = sorted(name for name, case in INDEX.items() if case["area"] == "2-think")


@dataclass
class Heard:
    """What the loop makes of a response."""

    text: str = ""
    reasoning: str = ""
    deltas: dict[str, str] = field(default_factory=dict[str, str])
    calls: list[s.ToolCallCommitted] = field(default_factory=list[s.ToolCallCommitted])
    done: list[s.ReasoningDone] = field(default_factory=list[s.ReasoningDone])
    committed_text: bool = False
    ends: list[s.Completed] = field(default_factory=list[s.Completed])
    error: ProviderError | None = None

    def feed(self, samples: list[s.Sample]) -> None:
        for sample in samples:
            assert not self.ends, "nothing follows the end"
            match sample:
                case s.TextDelta(text) | s.RefusalDelta(text):
                    assert text
                    self.text += text
                case s.ReasoningDelta(text):
                    assert text
                    self.reasoning += text
                case s.ReasoningDone():
                    self.done.append(sample)
                case s.AssistantMessageDone():
                    self.committed_text = True
                case s.ToolCallDelta(key, _, arguments):
                    self.deltas[key] = self.deltas.get(key, "") + arguments
                case s.ToolCallCommitted():
                    self.calls.append(sample)
                case s.Completed():
                    self.ends.append(sample)

    @property
    def outcome(self) -> str:
        if self.error is not None:
            return "error"
        finish = self.ends[0].finish
        if finish == "content_filter":
            return "content_filter"
        if finish == "length" and self.deltas:
            return "incomplete"
        if self.runnable:
            return "tool_calls"
        return "malformed_tool_call" if self.calls else "final"

    @property
    def runnable(self) -> list[tuple[str, Any]]:
        return [(call.name, json.loads(call.arguments_json)) for call in self.calls if is_object(call.arguments_json)]

    @property
    def rejected(self) -> list[str]:
        return [call.name for call in self.calls if not is_object(call.arguments_json)]


def is_object(text: str) -> bool:
    try:
        return isinstance(json.loads(text), dict)
    except ValueError:
        return False


def body_of(name: str) -> bytes:
    """The bytes that the provider sends."""
    data = (CASES / INDEX[name]["file"]).read_bytes()
    if INDEX[name]["file"].endswith(".json"):
        return b"".join(base64.b64decode(piece) for piece in json.loads(data)["chunks_b64"])
    return data


def declared_of(name: str) -> list[str]:
    expect = INDEX[name]["expect"]
    return expect.get("declared") or sorted(
        {call[0] for call in expect["tool_calls"]} | set(expect.get("rejected", []))
    )


def parsed(body: bytes) -> list[JsonObject]:
    response = httpx2.Response(
        200,
        headers={"content-type": "text/event-stream"},
        content=body,
        request=httpx2.Request("POST", "http://provider.test/"),
    )
    chunks = [chunk_of(event.event, event.data) for event in httpx2.EventSource(response)]
    return [chunk for chunk in chunks if chunk is not None]


def listen(chunks: list[JsonObject], declared: list[str]) -> Heard:
    heard = Heard()
    decoder = OpenAIChat().decoder(declared)
    try:
        for chunk in chunks:
            heard.feed(decoder.feed(chunk))
        heard.feed(decoder.finish())
    except ProviderError as error:
        heard.error = error
    return heard


async def listen_on_the_wire(pieces: list[bytes], declared: list[str]) -> Heard:
    heard = Heard()
    decoder = OpenAIChat().decoder(declared)
    async with playing(Answer(pieces)) as (_, client):
        model = OpenAIChatModel("m-test", client=client)
        try:
            async for chunk in model.stream({"model": "m-test", "messages": [], "stream": True}):
                heard.feed(decoder.feed(chunk))
            heard.feed(decoder.finish())
        except ProviderError as error:
            heard.error = error
    return heard


def check(name: str, heard: Heard) -> None:
    expect = INDEX[name]["expect"]
    assert heard.text == TEXTS.get(name, expect["text"])
    assert heard.reasoning == REASONING.get(name, expect["reasoning"])
    assert heard.runnable == [(tool, json.loads(arguments)) for tool, arguments in expect["tool_calls"]]
    assert heard.outcome == expect["outcome"]
    assert len(heard.ends) == (expect["outcome"] != "error")
    if "rejected" in expect:
        assert heard.rejected == expect["rejected"]
    if "ids" in expect:
        assert [call.provider_call_id for call in heard.calls] == expect["ids"]
    if "usage" in expect:
        usage = heard.ends[0].usage or {}
        assert [usage["input_tokens"], usage["output_tokens"]] == expect["usage"]
    if "signature" in expect:
        assert expect["signature"] in [done.signature for done in heard.done]
    if heard.outcome in ("final", "tool_calls"):
        assert heard.committed_text == bool(heard.text)
    else:
        assert not heard.runnable
    if heard.outcome in ("error", "content_filter"):
        assert not heard.committed_text
    for call in heard.calls:  # what was shown is a beginning of what is committed
        assert call.arguments_json.startswith(heard.deltas[call.key])


TEXTS = {"C-040": "one\u2028two\x85three"}
REASONING = {"C-035": "We need to greet"}
"""Where the case log shows a text without its invisible characters, or leaves out what a failed round had shown."""


@pytest.mark.parametrize("name", STREAMS)
def test_the_decoder_hears_what_the_case_says(name: str) -> None:
    check(name, listen(parsed(body_of(name)), declared_of(name)))


@pytest.mark.parametrize("name", STREAMS)
def test_the_declared_names_are_no_condition_for_whole_names(name: str) -> None:
    if "declared" not in INDEX[name]["expect"]:
        check(name, listen(parsed(body_of(name)), []))


@pytest.mark.parametrize("name", STREAMS)
async def test_the_real_client_hears_the_same_however_the_bytes_are_cut(name: str) -> None:
    body = body_of(name)
    cuts = random.Random(name)
    borders = sorted({0, len(body), *(cuts.randrange(1, len(body)) for _ in range(20))})
    pieces = [body[start:end] for start, end in itertools.pairwise(borders)]
    check(name, await listen_on_the_wire(pieces, declared_of(name)))


async def test_characters_survive_one_byte_at_a_time_C_038() -> None:
    body = body_of("C-038")
    check("C-038", await listen_on_the_wire([body[at : at + 1] for at in range(len(body))], []))


@pytest.mark.parametrize(
    ("name", "code", "detail"),
    [
        ("C-019", "stream_cut", None),
        ("C-021", "stream_cut", None),
        ("C-023", "provider_overloaded", None),
        ("C-035", "provider_bad_request", 400),
        ("C-036", "provider_error", "tool_use_failed"),
    ],
)
def test_a_failed_stream_says_why(name: str, code: str, detail: object) -> None:
    error = listen(parsed(body_of(name)), []).error
    assert error is not None
    assert (error.code, error.details.get("code")) == (code, detail)
    assert error.retryable == (code in ("stream_cut", "provider_overloaded"))


async def test_a_plain_json_body_is_a_provider_error_C_041() -> None:
    body = b'{"error":{"message":"model is overloaded","code":502}}'
    async with playing(Answer([body], content_type="application/json")) as (_, client):
        with pytest.raises(ProviderError) as caught:
            async for _ in OpenAIChatModel("m", client=client).stream({"model": "m", "messages": []}):
                pass
    assert (caught.value.code, caught.value.retryable) == ("provider_unavailable", True)
    assert caught.value.message == "model is overloaded"


async def test_many_streams_at_once_do_not_mix() -> None:
    names = STREAMS[:6]
    heard = await asyncio.gather(*(listen_on_the_wire([body_of(name)], declared_of(name)) for name in names))
    for name, one in zip(names, heard, strict=True):
        check(name, one)


# --- thinking in tags ---------------------------------------------------------------------------------------------


THINK_SAYS = {
    "C-084": {"reasoning": "inout"},
    "C-086": {"text": "<thinking-mode> on. <think/>Visible"},
    "C-088": {"text": "One. <think>b</think>Two.", "reasoning": "a"},
}
"""Where the case log leaves the choice to us."""


@pytest.mark.parametrize("cut", ["as it came", "by characters", "in one piece"])
@pytest.mark.parametrize("name", THINK)
def test_thinking_in_tags_is_parted_as_the_case_says(name: str, cut: str) -> None:
    chunks: list[str] = json.loads((CASES / INDEX[name]["file"]).read_bytes())["chunks"]
    whole = "".join(chunks)
    chunks = {"as it came": chunks, "by characters": list(whole), "in one piece": [whole]}[cut]
    expect = {**INDEX[name]["expect"], **THINK_SAYS.get(name, {})}
    tags = ThinkTags(starts_in_thinking="option" in expect)
    pieces = [piece for chunk in chunks for piece in tags.feed(chunk)] + tags.finish()
    assert "".join(text for kind, text in pieces if kind == "text") == expect["text"]
    assert "".join(text for kind, text in pieces if kind == "reasoning") == expect["reasoning"]


# --- restored histories -------------------------------------------------------------------------------------------


def items_of(name: str) -> list[Item]:
    """The case's transcript as items."""
    items: list[Item] = []
    for message in json.loads((CASES / f"{name}.json").read_bytes())["transcript"]:
        items += [_item(message["role"], part) for part in message["parts"]]
    return items


def _item(role: str, part: JsonObject) -> Item:
    match part["type"]:
        case "text":
            return Message(role, part["text"])
        case "reasoning":
            return Reasoning(part["text"], "openai")
        case "tool_call":
            return FunctionCall(part["id"], part["name"], part["args"], provider="openai")
        case _:
            return FunctionCallOutput(part["id"], "", part["content"] or "", part.get("outcome") == "failed")


def messages_of(name: str, **options: str) -> list[JsonObject]:
    return OpenAIChat().encode(items_of(name), [], {"model": "m", **options})["messages"]


def shape(messages: list[JsonObject]) -> list[str]:
    """Roles, with the ids of calls and results."""
    return [
        " ".join([message["role"], *(call["id"] for call in message.get("tool_calls", []))])
        if message["role"] == "assistant"
        else f"{message['role']} {message['tool_call_id']}"
        if message["role"] == "tool"
        else f"{message['role']} {message['content']}"
        for message in messages
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("C-089", ["user Weather?", "assistant c1", "tool c1", "user never mind, hi"]),
        ("C-090", ["user Both", "assistant c1 c2", "tool c1", "tool c2", "user go on"]),
        ("C-091", ["user Hi", "assistant", "user next"]),
        (
            "C-092",
            ["user 1", "assistant d1", "tool d1", "assistant", "user 2", "assistant d1~2", "tool d1~2", "user 3"],
        ),
        ("C-093", ["user Hi", "assistant c1", "tool c1", "user thanks"]),
        ("C-094", ["user first", "user second"]),
        ("C-095", ["user x", "assistant c1 c2 c3", "tool c1", "tool c2", "tool c3", "user y"]),
        ("C-096", ["user x", "assistant c1", "tool c1", "user are you there?", "assistant"]),
        ("C-106", ["user Pick a colour", "assistant f1", "tool f1", "user forget it, tell a joke"]),
    ],
)
def test_a_restored_history_is_one_that_servers_accept(name: str, expected: list[str]) -> None:
    assert shape(messages_of(name)) == expected


def test_results_stay_with_their_calls_C_092_C_095() -> None:
    assert [m["content"] for m in messages_of("C-092") if m["role"] == "tool"] == ["A", "B"]
    assert [m["content"] for m in messages_of("C-095") if m["role"] == "tool"] == ["1", "2", "3"]


def test_what_a_server_keeps_in_a_call_goes_back_to_it_and_to_no_other_C_102() -> None:
    delta = json.loads((CASES / "C-102.json").read_bytes())["stream_delta"]
    heard = listen([{"choices": [{"delta": delta, "finish_reason": "tool_calls"}]}], ["get_weather"])
    call = heard.calls[0]
    history = [
        Message("user", "x"),
        FunctionCall("c1", call.name, call.arguments_json, opaque=call.opaque, provider="google"),
    ]
    sent = OpenAIChat("google").encode(history, [], {"model": "m"})["messages"][1]["tool_calls"][0]
    assert sent["extra_content"] == {"google": {"thought_signature": "R1NJRw=="}}
    other = OpenAIChat("openai").encode(history, [], {"model": "m"})["messages"][1]["tool_calls"][0]
    assert "extra_content" not in other


def test_reasoning_goes_back_within_the_running_loop_only_unless_told_otherwise_C_103() -> None:
    assert messages_of("C-103")[1]["reasoning_content"] == "think"
    assert messages_of("C-103", reasoning_field="reasoning")[1]["reasoning"] == "think"
    assert "reasoning_content" not in messages_of("C-103", replay_reasoning="never")[1]
    finished = [*items_of("C-103"), Message("user", "y")]
    sent = OpenAIChat().encode(finished, [], {"model": "m"})["messages"]
    assert "reasoning_content" not in sent[1]
    sent = OpenAIChat().encode(finished, [], {"model": "m", "replay_reasoning": "always"})["messages"]
    assert sent[1]["reasoning_content"] == "think"


def test_cut_arguments_go_back_as_valid_json_with_an_error_C_104() -> None:
    messages = messages_of("C-104")
    arguments = messages[1]["tool_calls"][0]["function"]["arguments"]
    assert json.loads(arguments) == {"INVALID_JSON": '{"path":"/a","body":"li'}
    assert messages[2]["content"].startswith("Error")


def test_a_result_is_always_text_and_a_failure_shows_C_107_C_108() -> None:
    assert messages_of("C-107")[2]["content"] == ""
    assert messages_of("C-108")[2]["content"] == "Error: boom"


def test_every_case_is_looked_at() -> None:
    here = Path(__file__).read_text("utf-8")
    history = [name for name, case in INDEX.items() if case["area"] == "3-history"]
    assert [name for name in history if name not in here and name.replace("-", "_") not in here] == []
    assert len(STREAMS) == 40
    assert len(THINK) == 10
