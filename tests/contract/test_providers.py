"""The Chat Completions provider against a server on loopback: what goes out, and how every failure is classified."""

from __future__ import annotations

import asyncio
from contextlib import aclosing

import httpx2
import pytest
from openai import AsyncOpenAI

from runtime.canonical import JsonObject
from runtime.dialects import DONE
from runtime.errors import ConfigurationError, ProtocolError, ProviderError
from runtime.items import Message
from runtime.models import Model
from runtime.providers import OpenAIChatModel, model_from_string
from tests.contract.provider_server import Answer, playing

REQUEST: JsonObject = {"model": "m-1", "messages": [{"role": "user", "content": "Hi"}], "stream": True}
HELLO = b'data: {"choices":[{"delta":{"content":"Hi"}}]}\n\n'
END = b"data: [DONE]\n\n"
JSON_TYPE = "application/json"


async def chunks_of(answer: Answer, silence_timeout_s: float = 20) -> list[JsonObject]:
    async with playing(answer) as (_, client):
        model = OpenAIChatModel("m-1", client=client, silence_timeout_s=silence_timeout_s)
        return [chunk async for chunk in model.stream(REQUEST)]


async def failure_of(answer: Answer, silence_timeout_s: float = 20) -> ProviderError:
    with pytest.raises(ProviderError) as caught:
        await chunks_of(answer, silence_timeout_s)
    return caught.value


# --- the way out --------------------------------------------------------------------------------------------------


async def test_the_request_reaches_the_server_as_the_dialect_made_it() -> None:
    options: JsonObject = {"model": "m-1", "instructions": "Be kind.", "top_k": 4, "chat_template_kwargs": {"x": 1}}
    async with playing(Answer([HELLO, END])) as (server, client):
        model: Model = OpenAIChatModel("m-1", client=client)
        request = model.dialect.encode([Message("user", "Hi")], [], options)
        chunks = [chunk async for chunk in model.stream(request)]
    assert server.requests == [request]
    assert server.paths == ["/v1/chat/completions"]
    assert [chunk is DONE for chunk in chunks] == [False, True]


async def test_a_connection_is_used_again_after_done() -> None:
    async with playing(Answer([HELLO, END])) as (server, client):
        model = OpenAIChatModel("m-1", client=client)
        for _ in range(3):
            assert len([chunk async for chunk in model.stream(REQUEST)]) == 2
    assert server.connections == 1


async def test_nothing_behind_done_is_waited_for() -> None:
    chunks = await chunks_of(Answer([HELLO, END, HELLO], end="hang"))
    assert chunks[-1] is DONE
    assert len(chunks) == 2


async def test_a_connection_that_breaks_behind_done_takes_nothing_back() -> None:
    assert (await chunks_of(Answer([HELLO, END], end="cut")))[-1] is DONE


async def test_closing_the_stream_closes_the_connection() -> None:
    async with playing(Answer([HELLO], end="hang")) as (server, client):
        async with aclosing(OpenAIChatModel("m-1", client=client).stream(REQUEST)) as stream:
            assert await anext(stream) == {"choices": [{"delta": {"content": "Hi"}}]}
        await asyncio.wait_for(server.client_left.wait(), 5)


async def test_cancelling_the_reader_closes_the_connection() -> None:
    async with playing(Answer([HELLO], end="hang")) as (server, client):
        heard = asyncio.Event()

        async def read() -> None:
            async with aclosing(OpenAIChatModel("m-1", client=client).stream(REQUEST)) as stream:
                async for _ in stream:
                    heard.set()

        task = asyncio.create_task(read())
        await heard.wait()
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        await asyncio.wait_for(server.client_left.wait(), 5)


async def test_a_given_client_stays_open_when_its_model_is_closed() -> None:
    async with playing(Answer([HELLO, END])) as (_, client):
        model = OpenAIChatModel("m-1", client=client)
        await model.aclose()
        assert not client.is_closed()
        assert len([chunk async for chunk in model.stream(REQUEST)]) == 2


# --- reading ------------------------------------------------------------------------------------------------------


async def test_what_strict_json_refuses_is_read_all_the_same() -> None:
    body = b'data: {"choices":[{"delta":{"content":"\\ud83d"}}],"x":NaN}\n\n'
    chunks = await chunks_of(Answer([body, END]))
    assert chunks[0]["choices"][0]["delta"]["content"] == "\ud83d"


async def test_a_byte_order_mark_and_another_charset_change_nothing() -> None:
    body = b"\xef\xbb\xbf" + HELLO.replace(b"Hi", "blå".encode())
    chunks = await chunks_of(Answer([body, END], content_type="text/event-stream; charset=iso-8859-1"))
    assert chunks[0]["choices"][0]["delta"]["content"] == "blå"


async def test_events_without_data_say_nothing() -> None:
    assert await chunks_of(Answer([b"event: ping\n\nid: 3\n\nretry: 5\n\ndata:\n\n", END])) == [DONE]


async def test_a_bare_body_of_an_error_event_is_an_error() -> None:
    chunks = await chunks_of(Answer([b'event: error\ndata: {"message":"no","code":"x"}\n\n']))
    assert chunks == [{"error": {"message": "no", "code": "x"}}]


async def test_an_event_that_is_not_json_is_a_protocol_error() -> None:
    error = await failure_of(Answer([b"data: {half\n\n", END]))
    assert isinstance(error, ProtocolError)


# --- failures -----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("status", "body", "code", "retryable"),
    [
        (400, b'{"error":{"message":"bad","code":"unsupported_value"}}', "provider_bad_request", False),
        (400, b'{"error":{"message":"long","code":"context_length_exceeded"}}', "context_length_exceeded", False),
        (400, b'{"object":"error","message":"maximum context length is 9"}', "context_length_exceeded", False),
        (400, b'{"error":{"message":"no","code":"content_policy_violation"}}', "content_filter", False),
        (401, b'{"error":{"message":"Incorrect API key: sk-abcdefghijklm"}}', "provider_auth", False),
        (403, b"no", "provider_auth", False),
        (404, b'{"error":{"message":"no such model","code":"model_not_found"}}', "provider_bad_request", False),
        (429, b'{"error":{"message":"slow down"}}', "rate_limited", True),
        (429, b'{"error":{"message":"pay","type":"insufficient_quota"}}', "provider_quota", False),
        (500, b"<html>", "provider_unavailable", True),
        (502, b"", "provider_unavailable", True),
        (503, b"{}", "provider_overloaded", True),
        (504, b"", "provider_timeout", True),
    ],
)
async def test_an_http_error_is_classified(status: int, body: bytes, code: str, retryable: bool) -> None:
    error = await failure_of(Answer([body] if body else [], status=status, content_type=JSON_TYPE))
    assert (error.code, error.retryable, error.details["status"]) == (code, retryable, status)
    assert "sk-" not in str(error.as_payload())


async def test_one_attempt_is_one_request() -> None:
    async with playing(Answer([b"{}"], status=500, content_type=JSON_TYPE)) as (server, client):
        with pytest.raises(ProviderError):
            await anext(OpenAIChatModel("m-1", client=client).stream(REQUEST))
    assert len(server.requests) == 1


@pytest.mark.parametrize(
    ("headers", "least", "most"),
    [
        ({"retry-after": "7"}, 7, 7),
        ({"retry-after-ms": "1500", "retry-after": "7"}, 1.5, 1.5),
        ({"retry-after": "Fri, 01 Jan 2100 00:00:00 GMT"}, 1e8, 1e10),
        ({"retry-after": "Fri, 01 Jan 2021 00:00:00 GMT"}, 0, 0),
        ({"retry-after": "soon"}, None, None),
        ({"retry-after": "inf"}, None, None),
        ({}, None, None),
    ],
)
async def test_the_provider_says_how_long_to_wait(
    headers: dict[str, str], least: float | None, most: float | None
) -> None:
    error = await failure_of(Answer([b"{}"], status=429, content_type=JSON_TYPE, headers=headers))
    if least is None or most is None:
        assert error.retry_after_s is None
    else:
        assert error.retry_after_s is not None
        assert least <= error.retry_after_s <= most


@pytest.mark.parametrize("answer", [Answer([], status=0), Answer([HELLO], end="hang")], ids=["at once", "later"])
async def test_silence_is_a_timeout(answer: Answer) -> None:
    error = await failure_of(answer, silence_timeout_s=0.1)
    assert (error.code, error.retryable) == ("provider_timeout", True)


async def test_a_cut_connection_is_a_cut_stream() -> None:
    error = await failure_of(Answer([HELLO], end="cut"))
    assert isinstance(error, ProtocolError)
    assert (error.code, error.retryable) == ("stream_cut", True)


async def test_a_provider_that_is_not_there_is_unavailable() -> None:
    async with playing(Answer([])) as (server, _):
        address = server.base_url
    async with httpx2.AsyncClient(trust_env=False, verify=False) as http_client:
        client = AsyncOpenAI(api_key="k", base_url=address, http_client=http_client)
        with pytest.raises(ProviderError) as caught:
            await anext(OpenAIChatModel("m-1", client=client).stream(REQUEST))
    assert (caught.value.code, caught.value.retryable) == ("provider_unavailable", True)


@pytest.mark.parametrize(
    ("content_type", "body"), [("text/html", b"<html>"), (JSON_TYPE, b'{"choices":[]}'), (JSON_TYPE, b"x" * 100_000)]
)
async def test_a_200_answer_that_is_no_event_stream_is_a_protocol_error(content_type: str, body: bytes) -> None:
    error = await failure_of(Answer([body], content_type=content_type))
    assert error.code == "provider_protocol_error"


# --- names --------------------------------------------------------------------------------------------------------


def test_a_model_is_found_by_its_string(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "k")
    model = model_from_string("openai-chat:qwen3:8b")
    assert (model.name, model.provider, model.dialect.name) == ("qwen3:8b", "openai", "openai-chat")


@pytest.mark.parametrize("text", ["", "gpt-5", "openai-chat:", "nobody:x"])
def test_an_unknown_model_string_says_which_exist(text: str) -> None:
    with pytest.raises(ConfigurationError, match="openai-chat:NAME"):
        model_from_string(text)


def test_a_missing_key_is_said_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_API_KEY", "OPENAI_ADMIN_KEY"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(ConfigurationError, match="OPENAI_API_KEY"):
        OpenAIChatModel("m")
