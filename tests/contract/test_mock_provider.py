"""The mock provider itself: how it fails, what it can be told, and what it remembers."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import httpx2
import pytest

from runtime import samples as s
from runtime.errors import ProviderError
from runtime.items import Message
from runtime.models import Model
from runtime.testing import HttpAnswer, Line, MockProvider
from tests.contract.provider_server import KINDS, PATHS, model_of, openai_client
from tests.serving import events_in

CASE = Path(__file__).parent / "cases" / "C-001.sse"
CODES = [
    "rate_limited",
    "provider_overloaded",
    "provider_unavailable",
    "provider_timeout",
    "provider_auth",
    "provider_quota",
    "context_length_exceeded",
    "provider_bad_request",
]


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


async def listen(model: Model) -> list[s.Sample]:
    """What a model says to a word of greeting."""
    request = model.dialect.encode([Message("user", "Hi")], [], {"model": "m-1"})
    decoder = model.dialect.decoder([])
    said = [sample async for chunk in model.stream(request) for sample in decoder.feed(chunk)]
    return said + decoder.finish()


def thoughtful() -> list[Line]:
    """A script with everything: a thought, a text, two calls that are written at the same time, an end."""
    return [
        s.ReasoningDelta("Hm."),
        s.ReasoningDone("sig", "enc"),
        s.TextDelta("Let me "),
        s.TextDelta("look."),
        s.AssistantMessageDone(),
        s.ToolCallDelta("0", "weather", '{"city":', "c1"),
        s.ToolCallDelta("1", "clock", '{"zone":', "c2"),
        s.ToolCallDelta("0", "weather", '"Oslo"}', "c1"),
        s.ToolCallCommitted("1", "clock", '{"zone":"CET"}', "c2"),
        s.ToolCallCommitted("0", "weather", '{"city":"Oslo"}', "c1"),
        s.Completed("tool_calls", {"input_tokens": 30, "output_tokens": 9, "cached_input_tokens": 20}),
    ]


# --- the formats --------------------------------------------------------------------------------------------------


async def test_the_sdk_itself_puts_a_chat_completion_together() -> None:
    async with (
        MockProvider(thoughtful()) as provider,
        openai_client(provider) as client,
        client.chat.completions.stream(model="m-1", messages=[]) as stream,
    ):
        completion = await stream.get_final_completion()
    choice = completion.choices[0]
    assert (completion.model, choice.finish_reason, choice.message.content) == ("m-1", "tool_calls", "Let me look.")
    made = [(one.id, one.function.name, one.function.arguments) for one in choice.message.tool_calls or []]
    assert made == [("c1", "weather", '{"city":"Oslo"}'), ("c2", "clock", '{"zone":"CET"}')]
    assert completion.usage is not None
    assert (completion.usage.prompt_tokens, completion.usage.total_tokens) == (30, 39)


async def test_the_sdk_itself_puts_a_response_together() -> None:
    async with (
        MockProvider(thoughtful()) as provider,
        openai_client(provider) as client,
        client.responses.stream(model="m-1", input="Hi") as stream,
    ):
        kinds = [event.type async for event in stream]
        response = await stream.get_final_response()
    assert response.output_text == "Let me look."
    assert [item.type for item in response.output] == ["reasoning", "message", "function_call", "function_call"]
    made = [(one.call_id, one.arguments) for one in response.output if one.type == "function_call"]
    assert made == [("c1", '{"city":"Oslo"}'), ("c2", '{"zone":"CET"}')]
    assert [one.encrypted_content for one in response.output if one.type == "reasoning"] == ["enc"]
    assert response.usage is not None
    assert response.usage.input_tokens_details.cached_tokens == 20
    assert (kinds[0], kinds[-1]) == ("response.created", "response.completed")


async def test_the_blocks_of_a_message_stand_one_after_the_other() -> None:
    async with MockProvider(thoughtful()) as provider:
        events = events_in((await post(provider, "/messages")).content)
    assert [f"{one['type']} {one.get('index', '')}".strip() for one in events] == [
        "message_start",
        *("content_block_start 0", "content_block_delta 0", "content_block_delta 0", "content_block_stop 0"),
        *("content_block_start 1", "content_block_stop 1"),
        *("content_block_start 2", "content_block_delta 2", "content_block_delta 2", "content_block_stop 2"),
        *("content_block_start 3", "content_block_delta 3", "content_block_delta 3", "content_block_stop 3"),
        *("content_block_start 4", "content_block_delta 4", "content_block_delta 4", "content_block_stop 4"),
        "message_delta",
        "message_stop",
    ]
    begun = [one["content_block"] for one in events if one["type"] == "content_block_start"]
    assert [one["type"] for one in begun] == ["thinking", "redacted_thinking", "text", "tool_use", "tool_use"]
    assert [(one["id"], one["name"], one["input"]) for one in begun[3:]] == [("c1", "weather", {}), ("c2", "clock", {})]
    deltas = [one["delta"] for one in events if one["type"] == "content_block_delta"]
    assert deltas[1] == {"type": "signature_delta", "signature": "sig"}
    assert "".join(one["partial_json"] for one in deltas[6:]) == '{"zone":"CET"}'
    assert events[0]["message"]["usage"] == {"input_tokens": 10, "cache_read_input_tokens": 20}
    assert events[-2]["delta"]["stop_reason"] == "tool_use"
    assert events[-2]["usage"]["output_tokens"] == 9


async def test_the_halves_of_a_character_can_be_said_apart(kind: str) -> None:
    script = [s.TextDelta("\ud83d"), s.TextDelta("\ude00"), s.AssistantMessageDone(), s.Completed("stop")]
    async with MockProvider(script) as provider, model_of(kind, provider.environ) as model:
        assert s.TextDelta("\U0001f600") in await listen(model)


# --- failures -----------------------------------------------------------------------------------------------------


async def failure_of(kind: str, *lines: Line) -> ProviderError:
    """The error that a model raises when the provider plays this."""
    async with MockProvider(lines) as provider, model_of(kind, provider.environ) as model:
        with pytest.raises(ProviderError) as caught:
            await listen(model)
    return caught.value


@pytest.mark.parametrize("code", CODES)
async def test_an_error_is_the_same_with_a_status_as_within_a_stream(kind: str, code: str) -> None:
    error = ProviderError("No luck today.", code=code)
    at_once = await failure_of(kind, error)
    later = await failure_of(kind, s.TextDelta("Well"), error)
    assert (at_once.code, later.code) == (code, code)
    assert "status" in at_once.details
    assert "status" not in later.details
    assert at_once.retryable == later.retryable


async def test_the_status_of_a_failure_can_be_chosen(kind: str) -> None:
    error = await failure_of(kind, ProviderError("I am a teapot.", code="teapot", details={"status": 418}))
    assert (error.details["status"], error.retryable) == (418, False)
    assert error.message == "I am a teapot."


# --- what it is told ----------------------------------------------------------------------------------------------


async def test_bytes_and_files_are_played_as_they_are() -> None:
    body = CASE.read_bytes()
    async with MockProvider(body, CASE, HttpAnswer.json({"a": 1}, 502)) as provider:
        answers = [await post(provider) for _ in range(3)]
    assert [one.content for one in answers[:2]] == [body, body]
    assert answers[0].headers["content-type"] == "text/event-stream"
    assert (answers[2].status_code, answers[2].json()) == (502, {"a": 1})


async def test_a_json_file_is_a_json_answer(tmp_path: Path) -> None:
    (tmp_path / "answer.json").write_text('{"object":"response"}')
    async with MockProvider(tmp_path / "answer.json") as provider:
        answer = await post(provider, stream=False)
    assert answer.headers["content-type"] == "application/json"
    assert answer.json() == {"object": "response"}


async def test_how_long_to_wait_is_said_in_both_headers() -> None:
    async with MockProvider(HttpAnswer.json({}, 429, retry_after_s=1.5)) as provider:
        headers = (await post(provider)).headers
    assert (headers["retry-after-ms"], headers["retry-after"]) == ("1500", "2")


async def test_a_request_too_many_is_refused_with_a_word_about_it() -> None:
    async with MockProvider("Only this.") as provider:
        answers = [await post(provider) for _ in range(2)]
        provider.will_answer("Unheard.", "Now there is more.")
        answers.append(await post(provider))
    assert [one.status_code for one in answers] == [200, 400, 200]
    assert "was told 1 answers; this is request 2" in answers[1].json()["error"]["message"]
    assert "more" in answers[2].text


async def test_the_last_answer_can_be_repeated() -> None:
    async with MockProvider("One", "Two", repeat=True) as provider:
        answers = [(await post(provider)).text for _ in range(4)]
    assert ["One" in one for one in answers] == [True, False, False, False]
    assert ["Two" in one for one in answers] == [False, True, True, True]


async def test_a_script_that_cannot_be_played_fails_its_test() -> None:
    script = [s.ToolCallDelta("0", "echo", "{}"), s.ToolCallCommitted("0", "echo", '{"other": 1}', "")]

    async def ask() -> None:
        async with MockProvider(script) as provider:
            with suppress(httpx2.HTTPError):
                await post(provider)

    with pytest.raises(ValueError, match="commits other arguments"):
        await ask()


# --- what it remembers --------------------------------------------------------------------------------------------


async def test_requests_are_remembered_without_secrets(kind: str) -> None:
    async with MockProvider("Hello.") as provider, model_of(kind, provider.environ) as model:
        await listen(model)
    request = provider.recorded[0]
    assert (request.method, request.path, request.body) == ("POST", PATHS[kind], provider.requests[0])
    secrets = {name: value for name, value in request.headers.items() if name in ("authorization", "x-api-key")}
    assert secrets
    assert set(secrets.values()) == {"[redacted]"}
    assert "mock-key" not in str(provider.recorded)
    assert request.headers["content-type"] == "application/json"


async def test_another_path_uses_up_no_answer() -> None:
    async with MockProvider("Hello.") as provider, httpx2.AsyncClient(trust_env=False) as http:
        assert (await http.get(f"{provider.base_url}/models")).status_code == 404
        assert (await http.post(f"{provider.base_url}/embeddings", json={})).status_code == 404
        assert "Hello." in (await post(provider)).text
    assert provider.paths == ["/v1/models", "/v1/embeddings", "/v1/chat/completions"]


async def test_a_script_is_not_played_to_who_wants_no_stream() -> None:
    async with MockProvider("Hello.") as provider:
        answer = await post(provider, stream=False)
    assert answer.status_code == 400
    assert "HttpAnswer.json" in answer.json()["error"]["message"]


async def post(provider: MockProvider, place: str = "/chat/completions", *, stream: bool = True) -> httpx2.Response:
    """Ask an API for something, without any SDK."""
    async with httpx2.AsyncClient(trust_env=False, verify=False) as http:
        return await http.post(provider.base_url + place, json={"model": "m-1", "messages": [], "stream": stream})
