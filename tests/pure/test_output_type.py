"""Types as output types: the schema that a model is shown, its strict form, and which answers fit."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date
from enum import Enum
from typing import Annotated, Any, Literal, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from pydantic import BaseModel, Field, RootModel
from typing_extensions import TypedDict

from runtime.canonical import JsonObject
from runtime.errors import ConfigurationError
from runtime.output_type import Fit, Misfit, read_output_type
from runtime.strict_schema import LIMITS, in_words, strict


class Sky(Enum):
    CLEAR = "clear"
    GREY = "grey"


class Weather(BaseModel):
    """How it is outside."""

    city: str = Field(description="Where", min_length=2)
    on: date
    sky: Sky = Sky.CLEAR
    degrees: float = Field(ge=-90, le=60, alias="temperature")
    note: str | None = None


class Node(BaseModel):
    value: int
    children: list[Node] = []


@dataclass
class Point:
    x: int
    y: int = 0


class Pair(TypedDict):
    left: str
    right: bool


class Cat(BaseModel):
    kind: Literal["cat"]
    lives: int


class Dog(BaseModel):
    kind: Literal["dog"]
    tail: Point


class Thing:
    """No type that JSON has a form for."""


Animal = Annotated[Cat | Dog, Field(discriminator="kind")]

OBJECTS = [Weather, Node, Point, Pair]
OTHERS = [int, str, bool, list[int], list[Point], Cat | Dog, Animal, Point | None, RootModel[list[int]], date]
OPEN = [dict[str, int], Any, tuple[int, str], dict]


def fitting(type_: Any, text: str) -> Any:
    found = read_output_type(type_).validate(text)
    assert isinstance(found, Fit), found
    return found.value


def problems(type_: Any, text: str) -> list[str]:
    found = read_output_type(type_).validate(text)
    assert isinstance(found, Misfit)
    return found.problems


def objects_in(schema: Any) -> list[JsonObject]:
    """Every schema of an object within a schema."""
    if isinstance(schema, list):
        return [one for item in cast("list[Any]", schema) for one in objects_in(item)]
    if not isinstance(schema, dict):
        return []
    node = cast("JsonObject", schema)
    within = [one for item in node.values() for one in objects_in(item)]
    return [node, *within] if node.get("type") == "object" else within


# --- schemas ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("type_", [*OBJECTS, *OTHERS, *OPEN], ids=str)
def test_every_schema_is_valid_and_of_an_object(type_: Any):
    output = read_output_type(type_)
    for schema in (output.schema, output.strict_schema or {"type": "object"}):
        Draft202012Validator.check_schema(schema)
        assert schema["type"] == "object"


@pytest.mark.parametrize("type_", [*OBJECTS, *OTHERS], ids=str)
def test_in_a_strict_schema_every_object_is_closed_and_wants_all_its_members(type_: Any):
    made = read_output_type(type_).strict_schema
    assert made is not None
    for schema in objects_in(made):
        assert schema["additionalProperties"] is False
        assert schema["required"] == list(schema["properties"])


@pytest.mark.parametrize("type_", OPEN, ids=str)
def test_what_cannot_be_closed_has_no_strict_schema(type_: Any):
    assert read_output_type(type_).strict_schema is None


def test_only_what_is_no_object_is_wrapped():
    assert not any(read_output_type(type_).is_wrapped for type_ in (*OBJECTS, dict[str, int]))
    assert all(read_output_type(type_).is_wrapped for type_ in OTHERS)


def test_a_schema_is_named_after_its_type_and_any_other_is_an_answer():
    names = [read_output_type(type_).name for type_ in (Weather, Point, int, list[int], Animal, RootModel[list[int]])]
    assert names == ["Weather", "Point", "int", "answer", "answer", "RootModel_list_int__"]


def test_what_a_strict_mode_does_not_enforce_is_said_in_words():
    made = read_output_type(Weather).strict_schema
    assert made is not None
    assert made["properties"]["city"] == {"type": "string", "description": "Where\n(minLength: 2)"}
    assert made["properties"]["sky"]["description"] == '(default: "clear")'
    assert made["properties"]["on"] == {"type": "string", "format": "date"}
    assert made["properties"]["temperature"] == {"type": "number", "minimum": -90, "maximum": 60}
    reworded = in_words(made, LIMITS)["properties"]["temperature"]
    assert reworded == {"type": "number", "description": "(maximum: 60, minimum: -90)"}


def test_a_choice_by_a_member_is_any_of_in_a_strict_schema():
    made = read_output_type(Animal).strict_schema
    assert made is not None
    kinds = [one["properties"]["kind"]["const"] for one in made["properties"]["value"]["anyOf"]]
    assert kinds == ["cat", "dog"]


@pytest.mark.parametrize(
    "schema",
    [
        {"type": "object", "properties": {}, "additionalProperties": True},
        {"type": "object", "properties": {"a": {"allOf": [{"type": "string"}]}}},
        {"type": "object", "properties": {"a": {"type": "array"}}},
        {"type": "object", "properties": {"a": True}},
        {"type": "object", "properties": {}, "$defs": {"a": {}}},
    ],
)
def test_a_schema_with_an_open_part_has_no_strict_form(schema: JsonObject):
    assert strict(schema) is None


def test_values_that_are_listed_get_their_types():
    schema: JsonObject = {"type": "object", "properties": {"a": {"enum": ["x", 1]}, "b": {"const": True}}}
    made = strict(schema)
    assert made is not None
    assert [one["type"] for one in made["properties"].values()] == [["string", "integer"], "boolean"]


@pytest.mark.parametrize("type_", [Thing, "NoSuchType", Sky.CLEAR], ids=str)
def test_a_type_without_a_json_form_is_refused_at_once(type_: Any):
    with pytest.raises(ConfigurationError, match="cannot be an output type"):
        read_output_type(type_)


# --- answers ------------------------------------------------------------------------------------------------------


def test_the_value_is_what_the_type_makes_of_the_answer():
    said = '{"city": "Oslo", "on": "2026-01-02", "temperature": 3}'
    assert fitting(Weather, said) == {
        "city": "Oslo",
        "on": "2026-01-02",
        "sky": "clear",
        "temperature": 3.0,
        "note": None,
    }


def test_the_object_around_a_value_is_taken_off():
    assert fitting(list[Point], '{"value": [{"x": 1}, {"x": 2, "y": 3}]}') == [{"x": 1, "y": 0}, {"x": 2, "y": 3}]
    assert fitting(Animal, '{"value": {"kind": "cat", "lives": 9}}') == {"kind": "cat", "lives": 9}
    assert fitting(int, ' {"value": 4}\n') == 4
    assert fitting(Point | None, '{"value": null}') is None


def test_what_does_not_fit_is_explained_without_the_values_in_it():
    said = '{"city": "O", "on": "tomorrow", "temperature": "secret"}'
    found = problems(Weather, said)
    assert [one.partition(":")[0] for one in found] == ["city", "on", "temperature"]
    assert "secret" not in str(found)
    assert problems(Weather, '{"city": "Oslo", "on": "2026-01-02"}') == ["temperature is missing"]


@pytest.mark.parametrize("text", ["It is raining.", '```json\n{"x": 1}\n```', '{"x": 1', '{"x": NaN}', "[" * 5000])
def test_text_that_is_not_json_does_not_fit(text: str):
    (problem,) = problems(Point, text)
    assert "not JSON" in problem


def test_an_empty_text_does_not_fit():
    assert problems(Point, "  \n") == ["the answer is empty"]


def test_json_types_are_taken_literally():
    assert problems(Point, '{"x": "1"}') == ["x: Input should be a valid integer (given: a string)"]
    assert problems(int, "4") == ["the answer: Input should be an object (given: a number)"]


def test_the_halves_of_a_character_do_no_harm():
    assert fitting(Pair, '{"left": "a\ud800b", "right": true}') == {"left": "a\ufffdb", "right": True}


def test_a_value_that_cannot_be_told_as_json_is_the_authors_fault():
    class Odd(BaseModel):
        thing: Any

        def model_post_init(self, context: Any) -> None:
            self.thing = object()

    with pytest.raises(ConfigurationError, match="Odd"):
        read_output_type(Odd).validate('{"thing": 1}')


@given(st.lists(st.builds(Cat, kind=st.just("cat"), lives=st.integers(-(2**53), 2**53))))
def test_what_was_written_as_the_schema_says_fits_and_comes_out_the_same(cats: list[Cat]):
    output = read_output_type(list[Animal])
    said = output.adapter.dump_json({"value": cats}, warnings=False)
    assert output.validate(said.decode()) == Fit([cat.model_dump() for cat in cats])


@given(st.text())
def test_any_text_at_all_either_fits_or_is_explained(text: str):
    found = read_output_type(Point).validate(text)
    assert isinstance(found, Fit) or found.problems
