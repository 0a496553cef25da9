"""What each provider is sent of the media of a history: through the real SDKs, to a provider on loopback."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest

from runtime import events as e
from runtime.authority import ANONYMOUS
from runtime.canonical import digest
from runtime.dialects.openai_media import usual_media
from runtime.items import Content, FunctionCallOutput, Message, text_of
from runtime.media import blob_source, data_source
from runtime.mock_provider import Answer
from runtime.sessions import owner_of
from runtime.testing import MockProvider, ScriptedProvider, calls, says
from runtime.tools.toolbox import tool
from tests.contract.provider_server import KINDS, model_of
from tests.contract.workshop import Workshop, only, types, workshop
from tests.pictures import JsonObject, base64_of, png, text

CAT = png(1)
PDF = b"%PDF-1.7\nnothing"
LETTER = "Dear all,\nthere is tea."


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


def part(data: bytes, mime_type: str, kind: str = "image", **more: Any) -> JsonObject:
    return {"type": kind, "source": data_source(data, mime_type), **more}


async def asked_with(shop: Workshop, content: Content, *more: JsonObject) -> list[e.Event]:
    """A run whose user says this, large media kept as they are at intake; and `more`, as it is."""
    kept = await shop.supervisor.media.kept(owner_of(ANONYMOUS), "thr_1", content)
    kept = [*kept, *more] if more and not isinstance(kept, str) else kept
    return await shop.run("And?", facts=[e.MessageCompleted("u0", "user", kept, digest(kept))])


@asynccontextmanager
async def running(kind: str, *answers: Answer, **given: Any) -> AsyncGenerator[tuple[Workshop, MockProvider], None]:
    async with (
        MockProvider(*answers) as provider,
        model_of(kind, provider.environ) as model,
        workshop(model=model, **given) as shop,
    ):
        yield shop, provider


def left_out(events: list[e.Event]) -> list[str]:
    """Why media were left out, part by part."""
    told = [event.value["parts"] for event in only(events, e.Custom) if event.name == "agui-bridge.media_left_out"]
    assert len(told) <= 1
    return [each["reason"] for parts in told for each in parts]


async def test_every_provider_is_sent_the_bytes_of_an_image_that_was_kept(kind: str):
    async with running(kind, "A cat.") as (shop, provider):
        events = await asked_with(shop, [text("What is it?"), part(CAT, "image/png")])
        assert types(events)[-1] == "run.completed"
        assert left_out(events) == []
        assert base64_of(CAT) in json.dumps(provider.requests[0])
        assert '"blob"' not in json.dumps(provider.requests[0])


async def test_every_provider_is_sent_a_document(kind: str):
    async with running(kind, "Read.") as (shop, provider):
        letter = part(LETTER.encode(), "text/plain", "document", metadata={"filename": "letter.txt"})
        events = await asked_with(shop, [part(PDF, "application/pdf", "document"), letter])
        assert left_out(events) == []
        sent = json.dumps(provider.requests[0])
        assert base64_of(PDF) in sent
        assert json.dumps(LETTER)[1:-1] in sent or base64_of(LETTER.encode()) in sent


@pytest.mark.requirement("R-043")
async def test_what_a_format_has_no_place_for_is_left_out_and_the_run_goes_on(kind: str):
    async with running(kind, "Well.") as (shop, provider):
        film = part(b"film", "video/mp4", "video")
        foreign = {"type": "image", "source": {"type": "file", "value": "file_1", "provider": "somebody"}}
        lost = {"type": "image", "source": blob_source("med_1", "0" * 64, "image/png", 5)}
        broken = {"type": "image", "source": {"type": "data", "value": "no base64 §", "mime_type": "image/png"}}
        events = await asked_with(shop, [text("See"), film, foreign, broken, part(b"", "image/png")], lost)
        assert types(events)[-1] == "run.completed"
        assert left_out(events) == [
            "the model takes no video/mp4",
            "the model takes no image by file",
            "it is no base64",
            "it is empty",
            "its bytes are gone",
        ]
        assert "film" not in json.dumps(provider.requests[0])


async def test_what_is_named_wrongly_is_sent_as_what_it_is():
    async with running("anthropic", "A cat.") as (shop, provider):
        await asked_with(shop, [part(CAT, "image/jpeg", "document"), part(CAT, "")])
        blocks = [each for each in provider.requests[0]["messages"][0]["content"] if each["type"] == "image"]
        assert [block["source"]["media_type"] for block in blocks] == ["image/png", "image/png"]


@tool
async def look() -> list[JsonObject]:
    """Look at something."""
    return [part(CAT, "image/png"), part(LETTER.encode(), "text/plain", "document")]


@pytest.mark.requirement("R-045", "R-115")
async def test_a_result_of_media_alone_still_answers_its_call(kind: str):
    async with running(kind, calls(("look", "{}")), "Seen.", tools=[look]) as (shop, provider):
        events = await shop.run("Look")
        assert types(events)[-1] == "run.completed"
        [result] = [event.result for event in only(events, e.ToolCallCompleted)]
        assert result[0]["source"]["type"] == "blob"
        sent = json.dumps(provider.requests[1])
        assert (base64_of(CAT) in sent) == (kind != "openai-chat")
        if kind == "openai-chat":
            assert left_out(events) == ["the model takes no image/png"]
            [answer] = [each for each in provider.requests[1]["messages"] if each["role"] == "tool"]
            assert LETTER in answer["content"]


async def test_what_is_left_out_is_told_once_a_run():
    async with workshop(calls(("look", "{}")), says("Seen"), tools=[look], input_media=()) as shop:
        film = part(b"film", "video/mp4", "video")
        events = await asked_with(shop, [film])
        assert left_out(events) == ["the model takes no video/mp4"]
        outputs = [item for item in shop.script.prompts[-1] if isinstance(item, FunctionCallOutput)]
        assert [each["type"] for each in outputs[0].output if not isinstance(each, str)] == ["text"]


async def test_a_long_document_is_told_in_part():
    async with workshop(says("Read"), input_media=()) as shop:
        await asked_with(shop, [part(b"tea " * 100_000, "text/plain", "document")])
        [told] = [text_of(item.content) for item in shop.script.prompts[0] if isinstance(item, Message)][:-1]
        assert len(told) < 201_000
        assert "Only the first 200000 of 400000 characters are shown." in told


async def test_an_async_extractor_is_asked_once_for_each_document():
    asked: list[int] = []

    async def extract(media_type: str, data: bytes) -> str:
        asked.append(len(data))
        return "the text"

    rounds = (calls(("look", "{}")), says("Seen"))
    async with workshop(*rounds, tools=[look], input_media=(), extract_text=extract) as shop:
        await asked_with(shop, [part(PDF, "application/pdf", "document")])
        assert asked == [len(PDF), len(CAT)], "the document in the first round, the picture of the result in the second"


async def test_a_document_without_words_is_left_out():
    async with workshop(says("Hm"), input_media=()) as shop:
        events = await asked_with(shop, [part(b" \n ", "text/plain", "document")])
        assert left_out(events) == ["the model takes no text/plain, and no text is known of it"]


def test_models_of_which_it_is_known_are_not_sent_what_they_refuse():
    assert usual_media("openai", "gpt-5-mini") == ("image", "document")
    assert usual_media("openai", "gpt-4o-audio-preview") == ("audio",)
    assert usual_media("openai", "gpt-4-turbo") == ("image", "document")
    for name in ("gpt-3.5-turbo", "gpt-4", "gpt-4-0613", "o3-mini", "ft:gpt-3.5-turbo:x"):
        assert usual_media("openai", name) == ()
    assert usual_media("my-server", "gpt-4") is None
    assert ScriptedProvider().dialect.takes(part(CAT, "image/png"), in_output=True)
