"""Runs that owe a value, through the real SDKs on sockets: each kind of model, the schema given or a tool to call."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from pydantic import BaseModel

from runtime import events as e
from runtime.budget import Budget
from runtime.canonical import JsonObject
from runtime.items import REJECTED, FunctionCallOutput, ToolSpec
from runtime.mock_provider import Answer
from runtime.output import FINAL_TOOL, NATIVE, TOOL
from runtime.samples import Sample
from runtime.scripted import ScriptedModel
from runtime.testing import MockProvider, calls, says
from runtime.tools.toolbox import tool
from tests.contract.provider_server import KINDS, model_of
from tests.contract.workshop import Workshop, only, workshop


class Weather(BaseModel):
    city: str
    degrees: int


OSLO: JsonObject = {"city": "Oslo", "degrees": 3}
GOOD, BAD = json.dumps(OSLO), '{"city": "Oslo", "degrees": "cold"}'


@tool
async def look(city: str) -> str:
    """Look out of the window."""
    return f"snow in {city}"


@pytest.fixture(params=KINDS)
def kind(request: pytest.FixtureRequest) -> str:
    return request.param


@pytest.fixture(params=[NATIVE, TOOL])
def mode(request: pytest.FixtureRequest) -> str:
    return request.param


@asynccontextmanager
async def owing(
    kind: str, mode: str | None, *answers: Answer, output_type: Any = Weather, **given: Any
) -> AsyncGenerator[tuple[Workshop, MockProvider], None]:
    """A supervisor whose agent answers with a value, and the provider behind it."""
    async with (
        MockProvider(*answers) as provider,
        model_of(kind, provider.environ) as model,
        workshop(model=model, output_type=output_type, output_mode=mode, **given) as shop,
    ):
        yield shop, provider


def gives(mode: str, value: str) -> list[Sample]:
    """The round in which a model answers so."""
    return says(value) if mode == NATIVE else calls((FINAL_TOOL, value))


def result_of(events: list[e.Event]) -> Any:
    last = events[-1]
    assert isinstance(last, e.RunCompleted), last
    return last.result


def schema_in(request: JsonObject) -> JsonObject | None:
    """The schema that a provider was given, in whichever member its API has for it."""
    if "response_format" in request:
        return request["response_format"]["json_schema"]["schema"]
    found = request.get("text") or request.get("output_config") or {}
    return found["format"]["schema"] if "format" in found else None


async def test_an_answer_that_fits_is_the_result_of_the_run(kind: str, mode: str) -> None:
    async with owing(kind, mode, gives(mode, GOOD)) as (shop, provider):
        assert result_of(await shop.run()) == OSLO
    schema = schema_in(provider.requests[0])
    if mode == NATIVE:
        assert schema is not None
        assert (schema["required"], schema["additionalProperties"]) == (["city", "degrees"], False)
        assert "tools" not in provider.requests[0]
    else:
        assert schema is None
        assert len(provider.requests[0]["tools"]) == 1
        assert FINAL_TOOL in json.dumps(provider.requests[0]["tools"])


async def test_a_model_is_asked_natively_unless_somebody_says_otherwise(kind: str) -> None:
    async with owing(kind, None, GOOD) as (shop, provider):
        assert result_of(await shop.run()) == OSLO
    assert schema_in(provider.requests[0]) is not None


async def test_an_answer_that_does_not_fit_is_explained_and_mended(kind: str, mode: str) -> None:
    async with owing(kind, mode, gives(mode, BAD), gives(mode, GOOD)) as (shop, provider):
        assert result_of(await shop.run()) == OSLO
    told = json.dumps(provider.requests[1])
    assert "degrees: Input should be a valid integer" in told
    assert (REJECTED in told) == (mode == NATIVE)
    assert len(provider.requests) == 2


async def test_a_second_answer_that_does_not_fit_fails_the_run_and_the_thread_goes_on(kind: str, mode: str) -> None:
    answers = [gives(mode, BAD), gives(mode, BAD), gives(mode, GOOD)]
    async with owing(kind, mode, *answers) as (shop, provider):
        (*_, last) = await shop.run()
        assert isinstance(last, e.RunFailed)
        assert last.error["code"] == "output_invalid"
        assert last.error["message"].startswith("The model gave no valid Weather, though it was told what was wrong: ")
        assert "cold" not in last.error["message"]
        assert result_of(await shop.run("Again")) == OSLO
    assert len(provider.requests) == 3


async def test_tools_run_first_and_the_value_is_made_of_what_they_say(kind: str, mode: str) -> None:
    answers = [calls(("look", '{"city": "Oslo"}')), gives(mode, GOOD)]
    async with owing(kind, mode, *answers, tools=[look]) as (shop, provider):
        events = await shop.run()
    assert result_of(events) == OSLO
    assert "snow in Oslo" in json.dumps(provider.requests[1])


async def test_the_next_turn_builds_on_the_value_of_the_one_before(kind: str, mode: str) -> None:
    async with owing(kind, mode, gives(mode, GOOD), gives(mode, GOOD)) as (shop, provider):
        await shop.run()
        assert result_of(await shop.run("And now?")) == OSLO
        outputs = [one for one in await shop.items() if isinstance(one, FunctionCallOutput)]
    assert [one.output for one in outputs] == ([] if mode == NATIVE else ["Accepted."] * 2)
    assert "degrees" in json.dumps(provider.requests[1].get("messages") or provider.requests[1]["input"])


@pytest.mark.parametrize(
    ("type_", "text", "value"),
    [
        (list[int], '{"value": [1, 2]}', [1, 2]),
        (int | str, '{"value": "two"}', "two"),
        (bool, '{"value": false}', False),
        (dict[str, int], '{"a": 1}', {"a": 1}),
    ],
    ids=["a list", "a union", "a scalar", "an open object"],
)
async def test_what_is_no_object_comes_in_one_and_is_taken_out(
    kind: str, mode: str, type_: Any, text: str, value: Any
) -> None:
    async with owing(kind, mode, gives(mode, text), output_type=type_) as (shop, _):
        assert result_of(await shop.run()) == value


async def test_a_run_out_of_rounds_does_not_mend(kind: str, mode: str) -> None:
    async with owing(kind, mode, gives(mode, BAD), budget=Budget(rounds=1)) as (shop, _):
        (*_, last) = await shop.run()
    assert isinstance(last, e.RunCancelled)
    assert last.reason == "max_rounds"


async def test_a_tool_of_the_page_does_not_take_the_place_of_the_final_one(kind: str) -> None:
    async with owing(kind, TOOL, gives(TOOL, GOOD)) as (shop, provider):
        theirs = ToolSpec(FINAL_TOOL, "Theirs", {"type": "object"})
        assert result_of(await shop.run(client_tools=[theirs])) == OSLO
    assert "Theirs" not in json.dumps(provider.requests[0])


async def test_what_was_told_to_the_model_is_the_same_when_the_journal_is_read_anew() -> None:
    async with workshop(says(BAD), says(GOOD), says(GOOD), output_type=Weather, output_mode=NATIVE) as shop:
        assert result_of(await shop.run()) == OSLO
        items = await shop.items()
        await shop.run("Again")
    assert shop.script.prompts[2][: len(items)] == items
    assert shop.script.prompts[1] == items[:3]


async def test_a_hint_at_the_tools_names_the_final_one() -> None:
    async with workshop(calls(("finish", GOOD)), gives(TOOL, GOOD), output_type=Weather, output_mode=TOOL) as shop:
        events = await shop.run()
    assert result_of(events) == OSLO
    assert FINAL_TOOL in only(events, e.ToolCallCompleted)[0].result


async def test_the_scripted_model_goes_on_with_its_script_after_a_rejection(mode: str) -> None:
    entries: list[JsonObject] = [{"text": value} for value in (BAD, GOOD)]
    if mode == TOOL:
        entries = [{"tool_calls": [{"name": FINAL_TOOL, "arguments": value}]} for value in (BAD, GOOD)]
    words = "/script " + json.dumps({"rounds": entries})
    async with workshop(model=ScriptedModel(), output_type=Weather, output_mode=mode) as shop:
        assert result_of(await shop.run(words)) == OSLO
