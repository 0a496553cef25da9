"""The model behind the Messages API against a server on loopback, through the real SDK."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from anthropic import AsyncAnthropic

from runtime.anthropic_model import AnthropicModel
from runtime.canonical import JsonObject
from runtime.dialects.anthropic import Anthropic
from runtime.errors import ConfigurationError, ProtocolError, ProviderError
from runtime.items import Message
from runtime.providers import model_from_string
from runtime.testing import HttpAnswer
from tests.contract.anthropic_cases import REQUEST, bodies_of, playing

JSON_TYPE = "application/json"


async def test_the_request_reaches_the_server_as_the_dialect_made_it() -> None:
    options: JsonObject = {
        "model": "m-1",
        "instructions": "Be kind.",
        "thinking": {"type": "enabled", "budget_tokens": 2000},
        "output_config": {"effort": "low"},
        "brand_new": [1],
        "betas": ["a-1", "b-2"],
    }
    async with playing(HttpAnswer(bodies_of("C-059"))) as (server, client):
        model = AnthropicModel("m-1", client=client)
        request = model.dialect.encode([Message("user", "Hi")], [], options)
        chunks = [chunk async for chunk in model.stream(request)]
    assert request.pop("betas") == ["a-1", "b-2"]
    assert server.requests == [request]
    assert server.recorded[0].headers["anthropic-beta"] == "a-1,b-2"
    assert chunks[-1] == {"type": "message_stop"}


async def test_nothing_behind_the_end_of_a_message_is_waited_for() -> None:
    async with playing(HttpAnswer(bodies_of("C-061"), end="hang")) as (_, client):
        chunks = [chunk async for chunk in AnthropicModel("m", client=client).stream(REQUEST)]
    assert chunks[-1] == {"type": "message_stop"}


async def test_a_cut_connection_is_a_cut_stream() -> None:
    async with playing(HttpAnswer(bodies_of("C-076"), end="cut")) as (_, client):
        with pytest.raises(ProtocolError) as caught:
            [chunk async for chunk in AnthropicModel("m", client=client).stream(REQUEST)]
    assert (caught.value.code, caught.value.retryable) == ("stream_cut", True)


@pytest.mark.parametrize(
    ("status", "kind", "message", "code", "retryable"),
    [
        (400, "invalid_request_error", "bad", "provider_bad_request", False),
        (400, "invalid_request_error", "prompt is too long: 9 tokens > 8 maximum", "context_length_exceeded", False),
        (
            400,
            "invalid_request_error",
            "input length and `max_tokens` exceed context limit: 9 + 9 > 8",
            "context_length_exceeded",
            False,
        ),
        (400, "invalid_request_error", "Your credit balance is too low to use the API.", "provider_quota", False),
        (401, "authentication_error", "invalid x-api-key sk-ant-abcdefgh", "provider_auth", False),
        (402, "billing_error", "pay", "provider_quota", False),
        (403, "permission_error", "no", "provider_auth", False),
        (404, "not_found_error", "model: m", "provider_bad_request", False),
        (413, "request_too_large", "large", "provider_bad_request", False),
        (429, "rate_limit_error", "slow down", "rate_limited", True),
        (500, "api_error", "oops", "provider_unavailable", True),
        (504, "timeout_error", "late", "provider_timeout", True),
        (529, "overloaded_error", "Overloaded", "provider_overloaded", True),
    ],
)
async def test_an_error_means_the_same_as_a_status_and_in_a_stream(
    status: int, kind: str, message: str, code: str, retryable: bool
) -> None:
    body = json.dumps({"type": "error", "error": {"type": kind, "message": message}, "request_id": "req_1"}).encode()
    begun = bodies_of("C-070")[0].partition(b"event: error")[0]
    for answer in (
        HttpAnswer([body], status=status, content_type=JSON_TYPE, headers={"retry-after": "3"}),
        HttpAnswer([begun, b"event: error\ndata: " + body + b"\n\n"]),
    ):
        async with playing(answer) as (_, client):
            error = await failure_of(client)
        assert (error.code, error.retryable) == (code, retryable)
        assert "sk-ant" not in str(error.as_payload())
        assert error.retry_after_s == (3 if answer.status != 200 else None)


async def failure_of(client: AsyncAnthropic) -> ProviderError:
    decoder = Anthropic().decoder([])
    try:
        async for chunk in AnthropicModel("m", client=client).stream(REQUEST):
            decoder.feed(chunk)
    except ProviderError as error:
        return error
    pytest.fail("nothing failed")


async def test_an_answer_that_is_not_streamed_is_a_protocol_error() -> None:
    body = b'{"type":"message","role":"assistant","content":[],"stop_reason":"end_turn"}'
    async with playing(HttpAnswer([body], content_type=JSON_TYPE)) as (_, client):
        with pytest.raises(ProtocolError, match="instead of an event stream"):
            await anext(AnthropicModel("m", client=client).stream(REQUEST))


def test_a_model_is_found_by_its_string(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", "k")
    model = model_from_string("anthropic:claude-sonnet-4-5")
    assert isinstance(model, AnthropicModel)
    assert (model.name, model.provider, model.dialect.name) == ("claude-sonnet-4-5", "anthropic", "anthropic")


@pytest.mark.parametrize("configured", [False, True])
def test_a_missing_key_is_said_at_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, configured: bool) -> None:
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_PROFILE", "ANTHROPIC_IDENTITY_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    if configured:  # to look for a profile that is not there
        monkeypatch.setenv("ANTHROPIC_CONFIG_DIR", str(tmp_path))
    with pytest.raises(ConfigurationError, match="ANTHROPIC_API_KEY"):
        AnthropicModel("m")
