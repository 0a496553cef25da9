"""The case log of Anthropic's Messages API as tests use it: its bytes, and what is heard of them."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import httpx2
from anthropic import AsyncAnthropic

from runtime import samples as s
from runtime.anthropic_model import AnthropicModel
from runtime.canonical import JsonObject
from runtime.dialects.anthropic import Anthropic
from runtime.errors import ProviderError
from runtime.testing import HttpAnswer, MockProvider
from tests.contract.test_openai_chat_cases import Heard, parsed

CASES = Path(__file__).parent / "cases_anthropic"
INDEX: dict[str, JsonObject] = json.loads((CASES / "index.json").read_text("utf-8"))
PAUSED = "C-067"


class Response(Heard):
    """What the loop makes of a response, sample by sample."""

    def __init__(self) -> None:
        super().__init__()
        self.samples: list[s.Sample] = []

    def feed(self, samples: list[s.Sample]) -> None:
        super().feed(samples)
        self.samples += samples


def bodies_of(name: str) -> list[bytes]:
    data = (CASES / INDEX[name]["file"]).read_bytes()
    return [body.encode() for body in json.loads(data)["rounds"]] if name == PAUSED else [data]


def chunks_of(name: str) -> list[JsonObject]:
    return parsed(bodies_of(name)[0])


def listen(chunks: list[JsonObject]) -> Response:
    heard = Response()
    decoder = Anthropic().decoder([])
    try:
        for chunk in chunks:
            heard.feed(decoder.feed(chunk))
        heard.feed(decoder.finish())
    except ProviderError as error:
        heard.error = error
    return heard


@asynccontextmanager
async def playing(*answers: HttpAnswer) -> AsyncGenerator[tuple[MockProvider, AsyncAnthropic], None]:
    """A provider with these answers, and the real SDK's client of it."""
    async with (
        MockProvider(*answers, repeat=True) as provider,
        httpx2.AsyncClient(trust_env=False, verify=False) as http_client,
    ):
        yield provider, AsyncAnthropic(api_key="sk-ant-test", base_url=provider.origin, http_client=http_client)


REQUEST: JsonObject = {"model": "m-1", "max_tokens": 9, "messages": [{"role": "user", "content": "Hi"}], "stream": True}


async def listen_on_the_wire(pieces: list[bytes]) -> Response:
    heard = Response()
    decoder = Anthropic().decoder([])
    async with playing(HttpAnswer(pieces)) as (server, client):
        model = AnthropicModel("m-1", client=client)
        try:
            async for chunk in model.stream(REQUEST):
                heard.feed(decoder.feed(chunk))
            heard.feed(decoder.finish())
        except ProviderError as error:
            heard.error = error
    assert server.paths == ["/v1/messages"]
    return heard
