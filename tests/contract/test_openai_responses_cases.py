"""The case log of the Responses API as data: streams, and the histories that concern it.

Every stream runs twice: parsed, through the decoder, and as bytes in many pieces, through the real SDK's client.
"""

from __future__ import annotations

import asyncio
import itertools
import json
import random
from pathlib import Path

import pytest

from runtime import events as e
from runtime import samples as s
from runtime.budget import Budget
from runtime.canonical import JsonObject
from runtime.dialects.openai_responses import OpenAIResponses
from runtime.errors import ProtocolError, ProviderError
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from runtime.openai_responses_model import OpenAIResponsesModel
from runtime.providers import model_from_string
from runtime.sampling import Sampling
from runtime.steps import Fail, RunTools, Step, Succeed
from runtime.testing import MockProvider
from tests.contract.provider_server import Answer, model_of, playing
from tests.contract.test_openai_chat_cases import Heard, parsed
from tests.contract.workshop import only, types, workshop

CASES = Path(__file__).parent / "cases_responses"
INDEX: dict[str, JsonObject] = json.loads((CASES / "index.json").read_text("utf-8"))
NAMES = sorted(INDEX)
FAILS = ["C-046", "C-058"]


class Response(Heard):
    """What the loop makes of a response, with its parts apart."""

    def __init__(self) -> None:
        super().__init__()
        self.samples: list[s.Sample] = []

    def feed(self, samples: list[s.Sample]) -> None:
        super().feed(samples)
        self.samples += samples

    def parts(self, kind: type[s.TextDelta | s.ReasoningDelta | s.RefusalDelta]) -> list[str]:
        """The texts of this kind, each as long as nothing else comes between."""
        parts: list[str] = []
        goes_on = False
        for sample in self.samples:
            if isinstance(sample, kind):
                parts = [*parts[:-1], parts[-1] + sample.text] if goes_on else [*parts, sample.text]
                goes_on = True
            else:
                goes_on = False
        return parts


def body_of(name: str) -> bytes:
    return (CASES / INDEX[name]["file"]).read_bytes()


def listen(chunks: list[JsonObject]) -> Response:
    heard = Response()
    decoder = OpenAIResponses().decoder([])
    try:
        for chunk in chunks:
            heard.feed(decoder.feed(chunk))
        heard.feed(decoder.finish())
    except ProviderError as error:
        heard.error = error
    return heard


async def listen_on_the_wire(pieces: list[bytes]) -> Response:
    heard = Response()
    decoder = OpenAIResponses().decoder([])
    async with playing(Answer(pieces)) as (server, client):
        model = OpenAIResponsesModel("m-test", client=client)
        try:
            async for chunk in model.stream({"model": "m-test", "input": [], "stream": True}):
                heard.feed(decoder.feed(chunk))
            heard.feed(decoder.finish())
        except ProviderError as error:
            heard.error = error
    assert server.paths == ["/v1/responses"]
    return heard


def looped(name: str) -> tuple[Step, list[e.Event]]:
    """What the loop does with the case's response, and what it says of it."""
    declared = {"get_weather", "write_sql", "write_file", "send_mail"}
    sampling = Sampling(
        message_id="m1",
        provider="openai",
        target=lambda tool: "server" if tool in declared else "nobody",
        taken=set(),
        mint=lambda prefix: f"{prefix}_1",
        budget=Budget(rounds=5),
        elapsed=lambda: 0.0,
    )
    said = [*sampling.start(), *sampling.round_started("m-test", {})]
    decoder = OpenAIResponses().decoder(declared)
    try:
        for chunk in parsed(body_of(name)):
            said += sampling.feed(decoder.feed(chunk))
        said += sampling.feed(decoder.finish())
    except ProviderError as error:
        sampling.round_failed(error)
    return sampling.next(), said


def check(name: str, heard: Response) -> None:
    expect = INDEX[name]["expect"]
    outcome = expect["outcome"]
    assert heard.text == expect.get("refusal", expect["text"])
    assert heard.reasoning == "".join(expect.get("reasoning_parts", [expect["reasoning"]]))
    if "reasoning_parts" in expect:
        assert heard.parts(s.ReasoningDelta) == expect["reasoning_parts"]
    if "parts" in expect:
        assert heard.parts(s.TextDelta) == expect["parts"]
    if "refusal" in expect:
        assert heard.parts(s.RefusalDelta) == [expect["refusal"]]
    if "encrypted" in expect:
        assert [done.encrypted_value for done in heard.done if done.encrypted_value] == [expect["encrypted"]]
    if name in FAILS:
        assert heard.error is not None
        assert not heard.ends
        assert not heard.calls
        assert not heard.committed_text
        return
    assert heard.error is None
    assert len(heard.ends) == 1
    if outcome == "interrupt":
        assert [call.at_provider for call in heard.calls] == [True]
        return
    wanted = {tool: json.loads(arguments) for tool, arguments in expect["tool_calls"]}
    rejected = expect.get("rejected", [])
    assert {tool: arguments for tool, arguments in heard.runnable if tool not in rejected} == wanted
    assert [call.name for call in heard.calls] == [*wanted, *rejected]
    assert heard.outcome == ("final" if outcome == "refusal" else outcome)
    assert heard.committed_text == (bool(heard.text) and outcome != "content_filter")
    for call in heard.calls:
        assert call.arguments_json.startswith(heard.deltas[call.key])


@pytest.mark.parametrize("name", NAMES)
def test_the_decoder_hears_what_the_case_says(name: str) -> None:
    check(name, listen(parsed(body_of(name))))


@pytest.mark.parametrize("name", NAMES)
async def test_the_real_client_hears_the_same_however_the_bytes_are_cut(name: str) -> None:
    body = body_of(name)
    cuts = random.Random(name)
    borders = sorted({0, len(body), *(cuts.randrange(1, len(body)) for _ in range(20))})
    check(name, await listen_on_the_wire([body[start:end] for start, end in itertools.pairwise(borders)]))


async def test_many_streams_at_once_do_not_mix() -> None:
    heard = await asyncio.gather(*(listen_on_the_wire([body_of(name)]) for name in NAMES))
    for name, one in zip(NAMES, heard, strict=True):
        check(name, one)


# --- what the loop makes of them ----------------------------------------------------------------------------------


@pytest.mark.parametrize("name", NAMES)
def test_the_loop_goes_where_the_case_says(name: str) -> None:
    expect = INDEX[name]["expect"]
    step, _ = looped(name)
    match expect["outcome"]:
        case "interrupt":
            assert isinstance(step, RunTools)
            assert [call.target for call in step.calls] == ["provider"]
        case "final" | "refusal":
            assert step == Succeed([])
        case "tool_calls":
            assert isinstance(step, RunTools)
            named = [tool for tool, _ in expect["tool_calls"]] + expect.get("rejected", [])
            assert [call.tool_name for call in step.calls] == named
            assert [call.target for call in step.calls if call.tool_name in expect.get("rejected", [])] == [
                "nobody" for _ in expect.get("rejected", [])
            ]
        case _:
            assert isinstance(step, Fail)


@pytest.mark.parametrize(
    ("name", "code"),
    [
        ("C-046", "provider_quota"),
        ("C-047", "output_truncated"),
        ("C-048", "content_filter"),
        ("C-058", "stream_cut"),
    ],
)
def test_a_failed_round_says_why(name: str, code: str) -> None:
    step, said = looped(name)
    assert isinstance(step, Fail)
    assert step.error.code == code
    assert not [one for one in said if isinstance(one, (e.ToolCallCommitted, e.RoundCompleted))]


def test_what_the_provider_wants_approved_is_a_call_of_its_own_C_052() -> None:
    heard = listen(parsed(body_of("C-052")))
    (call,) = [sample for sample in heard.samples if isinstance(sample, s.ToolCallCommitted)]
    assert (call.name, call.provider_call_id, call.at_provider) == ("create_link", "mcpr_1", True)
    assert call.opaque == {"type": "mcp_approval_request", "id": "mcpr_1", "server_label": "short"}


@pytest.mark.parametrize(("approved", "words"), [(True, "Approved"), (False, "Declined by the user")])
async def test_the_run_asks_and_the_answer_goes_back_to_the_provider_C_052(approved: bool, words: str) -> None:
    async with (
        MockProvider(body_of("C-052"), "It is short now") as provider,
        model_of("openai", provider.environ) as model,
        workshop(model=model) as shop,
    ):
        suspended = await shop.run("Shorten it")
        assert types(suspended)[-1] == "run.suspended"
        (interrupt,) = only(suspended, e.InterruptRaised)
        assert (interrupt.reason, interrupt.tool_name) == ("tool_call", "create_link")
        answered = e.InterruptAnswered(interrupt.interrupt_id, "resolved", {"approved": approved})
        events = await shop.run("Go on", facts=[answered])
        assert types(events)[-1] == "run.completed"
        (output,) = only(events, e.ToolCallCompleted)
        assert str(output.result).startswith(words)
        request, response = provider.requests[1]["input"][1:3]
    assert request["type"] == "mcp_approval_request"
    assert (response["type"], response["approval_request_id"], response["approve"]) == (
        "mcp_approval_response",
        "mcpr_1",
        approved,
    )


def test_a_hosted_search_stands_between_the_two_messages_and_is_nobodys_call_C_050() -> None:
    heard = listen(parsed(body_of("C-050")))
    assert [type(sample).__name__ for sample in heard.samples] == [
        "TextDelta",
        "ReasoningDone",
        "TextDelta",
        "AssistantMessageDone",
        "AssistantMessageDone",
        "Completed",
    ]
    action = {"type": "search", "query": "oslo weather"}
    assert [done.opaque for done in heard.done] == [
        {"id": "ws_1", "type": "web_search_call", "status": "completed", "action": action}
    ]
    phases = [one.provider_phase for one in heard.samples if isinstance(one, s.AssistantMessageDone)]
    assert phases == ["commentary", "final_answer"]


def test_a_custom_tools_call_goes_back_as_one_C_051() -> None:
    call = listen(parsed(body_of("C-051"))).calls[0]
    history: list[Item] = [
        Message("user", "x"),
        FunctionCall("call_9", call.name, call.arguments_json, opaque=call.opaque, provider="openai"),
        FunctionCallOutput("call_9", call.name, "3 rows", is_error=False),
    ]
    assert sent(history)[1:] == [
        {"type": "custom_tool_call", "call_id": "call_9", "name": "write_sql", "input": "SELECT * FROM t"},
        {"type": "custom_tool_call_output", "call_id": "call_9", "output": "3 rows"},
    ]
    assert OpenAIResponses("other").encode(history, [], {"model": "m"})["input"][1:] == [
        {"type": "function_call", "call_id": "call_9", "name": "write_sql", "arguments": call.arguments_json},
        {"type": "function_call_output", "call_id": "call_9", "output": "3 rows"},
    ]


@pytest.mark.parametrize("name", ["C-050", "C-054", "C-057"])
def test_what_only_the_provider_understands_goes_back_in_its_place(name: str) -> None:
    chunks = parsed(body_of(name))
    heard = listen(chunks)
    history: list[Item] = [Message("user", "x")]
    for sample in heard.samples:
        if isinstance(sample, s.TextDelta):
            history.append(Message("assistant", sample.text, "final_response"))
        elif isinstance(sample, s.ReasoningDone):
            history.append(Reasoning("", "openai", sample.signature, sample.encrypted_value, sample.opaque))
    wanted = [
        {"type": "message", "role": "assistant", "content": item["content"][0]["text"]}
        if item["type"] == "message"
        else item
        for item in chunks[-1]["response"]["output"]
    ]
    assert sent(history)[1:] == wanted
    assert {one["type"] for one in OpenAIResponses("other").encode(history, [], {"model": "m"})["input"]} == {"message"}


# --- restored histories -------------------------------------------------------------------------------------------


def sent(items: list[Item]) -> list[JsonObject]:
    return OpenAIResponses().encode(items, [], {"model": "m"})["input"]


def items_of(name: str) -> list[Item]:
    """The case's transcript as items."""
    here = CASES / f"{name}.json"
    path = here if here.exists() else CASES.parent / "cases" / f"{name}.json"
    transcript = json.loads(path.read_bytes())["transcript"]
    return [_item(message["role"], part) for message in transcript for part in message["parts"]]


def _item(role: str, part: JsonObject) -> Item:
    match part["type"]:
        case "text":
            return Message(role, part["text"])
        case "reasoning":
            summary = [{"type": "summary_text", "text": text} for text in part["summary"]]
            opaque = {"type": "reasoning", "id": part["id"], "summary": summary}
            return Reasoning("".join(part["summary"]), "openai", None, part["encrypted"], opaque)
        case "tool_call":
            return FunctionCall(part["id"], part["name"], part["args"], provider="openai")
        case _:
            return FunctionCallOutput(part["id"], "", part["content"] or "", part.get("outcome") == "failed")


def shape(items: list[JsonObject]) -> list[str]:
    """Kinds, with the ids of calls and outputs or the role and text of messages."""
    names = {"function_call": "call", "function_call_output": "output"}
    return [
        f"{names.get(one['type'], one['type'])} {one.get('call_id') or one.get('id') or ''}".rstrip()
        if one["type"] != "message"
        else f"{one['role']} {one['content']}"
        for one in items
    ]


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("C-089", ["user Weather?", "call c1", "output c1", "user never mind, hi"]),
        ("C-090", ["user Both", "call c1", "call c2", "output c1", "output c2", "user go on"]),
        ("C-091", ["user Hi", "assistant Hello", "user next"]),
        (
            "C-092",
            ["user 1", "call d1", "output d1", "assistant ok", "user 2", "call d1~2", "output d1~2", "user 3"],
        ),
        ("C-093", ["user Hi", "call c1", "output c1", "user thanks"]),
        ("C-094", ["user first", "user second"]),
        ("C-095", ["user x", "call c1", "call c2", "call c3", "output c1", "output c2", "output c3", "user y"]),
        ("C-096", ["user x", "call c1", "output c1", "user are you there?", "assistant yes"]),
        ("C-097", ["user x", "reasoning rs_1", "call c1", "output c1", "user y"]),
        ("C-098", ["user x", "assistant answer", "user y"]),
        ("C-099", ["user x", "user y"]),
        ("C-104", ["user x", "call c1", "output c1", "user y"]),
        ("C-106", ["user Pick a colour", "call f1", "output f1", "user forget it, tell a joke"]),
        ("C-107", ["user x", "call c1", "output c1"]),
    ],
)
def test_a_restored_history_is_one_that_the_api_accepts(name: str, expected: list[str]) -> None:
    assert shape(sent(items_of(name))) == expected


def test_reasoning_goes_back_encrypted_with_its_id_and_a_summary_C_097() -> None:
    assert sent(items_of("C-097"))[1] == {
        "type": "reasoning",
        "id": "rs_1",
        "summary": [],
        "encrypted_content": "E",
    }


def test_cut_arguments_go_back_as_valid_json_with_an_error_C_104() -> None:
    call, output = sent(items_of("C-104"))[1:3]
    assert json.loads(call["arguments"]) == {"INVALID_JSON": '{"path":"/a","body":"li'}
    assert output["output"].startswith("Error")


def test_a_result_is_always_text_and_says_that_it_failed_C_107_C_108() -> None:
    assert sent(items_of("C-107"))[2]["output"] == ""
    outputs = [one["output"] for one in sent(items_of("C-108")) if one["type"] == "function_call_output"]
    assert outputs
    assert all(output.startswith("Error") for output in outputs)


# --- the model ----------------------------------------------------------------------------------------------------


async def test_the_request_reaches_the_server_as_the_dialect_made_it() -> None:
    options: JsonObject = {"model": "m-1", "instructions": "Be kind.", "reasoning": {"effort": "low"}, "top_k": 4}
    async with playing(Answer([body_of("C-044")])) as (server, client):
        model = OpenAIResponsesModel("m-1", client=client)
        request = model.dialect.encode([Message("user", "Hi")], [], options)
        chunks = [chunk async for chunk in model.stream(request)]
    assert server.requests == [request]
    assert request["stream"] is True
    assert chunks[-1]["type"] == "response.completed"


@pytest.mark.parametrize("name", ["C-044", "C-047"])
async def test_nothing_behind_the_end_of_a_response_is_waited_for(name: str) -> None:
    async with playing(Answer([body_of(name)], end="hang")) as (_, client):
        chunks = [chunk async for chunk in OpenAIResponsesModel("m", client=client).stream({"model": "m", "input": []})]
    assert chunks[-1]["type"] in ("response.completed", "response.incomplete")


async def test_a_response_that_is_not_streamed_is_a_protocol_error() -> None:
    body = b'{"object":"response","status":"completed","error":null,"output":[]}'
    async with playing(Answer([body], content_type="application/json")) as (_, client):
        with pytest.raises(ProtocolError, match="instead of an event stream"):
            await anext(OpenAIResponsesModel("m", client=client).stream({"model": "m", "input": []}))


@pytest.mark.parametrize(
    ("status", "code"), [(429, "rate_limited"), (401, "provider_auth"), (400, "context_length_exceeded")]
)
async def test_an_http_error_is_classified(status: int, code: str) -> None:
    word = b'"context_length_exceeded"' if status == 400 else b"null"
    answer = Answer(
        [b'{"error":{"message":"no","code":' + word + b"}}"], status=status, content_type="application/json"
    )
    async with playing(answer) as (_, client):
        with pytest.raises(ProviderError) as caught:
            await anext(OpenAIResponsesModel("m", client=client).stream({"model": "m", "input": []}))
    assert caught.value.code == code


def test_a_model_is_found_by_its_string(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = model_from_string("openai:gpt-5-mini")
    assert isinstance(model, OpenAIResponsesModel)
    assert (model.name, model.provider, model.dialect.name) == ("gpt-5-mini", "openai", "openai-responses")
