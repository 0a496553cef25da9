"""Declaring tools: what a model is told of a function, and which arguments it takes."""

from __future__ import annotations

import enum
import inspect
from dataclasses import dataclass
from datetime import date
from functools import partial
from typing import TYPE_CHECKING, Annotated, Any, Literal

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st
from inline_snapshot import snapshot
from pydantic import BaseModel, Field

from runtime.errors import ConfigurationError
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import InvalidArguments, Tool, Toolbox, tool

if TYPE_CHECKING:
    from decimal import Decimal

    from runtime.tools import context as hidden


class Address(BaseModel):
    """Where somebody lives."""

    street: str
    title: str | None = None


class Node(BaseModel):
    name: str
    children: list[Node] = []


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


@dataclass
class Point:
    x: float
    y: float


class Cat(BaseModel):
    kind: Literal["cat"]


class Dog(BaseModel):
    kind: Literal["dog"]


@tool
async def send(
    ctx: ToolContext,
    to: str,
    address: Address,
    unit: Literal["c", "f"] = "c",
    tags: list[str] | None = None,
    *,
    days: Annotated[int, Field(description="how many days", ge=1)] = 3,
) -> str:
    """Send a letter
    to somebody.

    It may take days.

    Args:
        to (str): Who gets it,
            by name.
        days: Not shown, the annotation says more.
        address: Where: they live.

    Returns:
        address: not an argument
    """
    return f"{ctx} {to} {address} {unit} {tags} {days}"


def _sole_schema(function: Any) -> Any:
    (schema,) = tool(function).spec.parameters["properties"].values()
    return schema


def _refusal(function: Any, arguments: Any) -> str:
    with pytest.raises(InvalidArguments) as caught:
        tool(function).validate(arguments)
    return caught.value.message


# --- what the model is told ---------------------------------------------------------------------------------------


def test_the_signature_becomes_one_plain_schema():
    assert send.spec.parameters == snapshot(
        {
            "additionalProperties": False,
            "properties": {
                "to": {"type": "string", "description": "Who gets it, by name."},
                "address": {
                    "description": "Where: they live.",
                    "properties": {
                        "street": {"type": "string"},
                        "title": {"anyOf": [{"type": "string"}, {"type": "null"}], "default": None},
                    },
                    "required": ["street"],
                    "type": "object",
                },
                "unit": {"default": "c", "enum": ["c", "f"], "type": "string"},
                "tags": {"anyOf": [{"items": {"type": "string"}, "type": "array"}, {"type": "null"}], "default": None},
                "days": {"default": 3, "description": "how many days", "minimum": 1, "type": "integer"},
            },
            "required": ["to", "address"],
            "type": "object",
        }
    )
    jsonschema.Draft202012Validator.check_schema(send.spec.parameters)


def test_name_and_description_come_from_the_function():
    assert (send.name, send.spec.name, send.spec.description) == ("send", "send", "Send a letter to somebody.")
    assert send.is_async
    assert (send.parallel, send.timeout_s, send.idempotent) == (False, None, False)


def test_a_function_that_yields_is_a_tool_that_streams():
    @tool
    async def later():
        yield 1

    @tool
    def now():
        yield 1

    assert (later.streams, later.is_async) == (True, True)
    assert (now.streams, now.is_async) == (True, False)
    assert not send.streams


def test_the_decorator_may_say_otherwise():
    @tool(name="post", description="Posts.", parallel=True, timeout_s=2.5, idempotent=True)
    def send_it() -> None:
        """Never shown."""

    assert (send_it.name, send_it.spec.description) == ("post", "Posts.")
    assert (send_it.parallel, send_it.timeout_s, send_it.idempotent, send_it.is_async) == (True, 2.5, True, False)
    assert send_it.spec.parameters == {"type": "object", "properties": {}, "additionalProperties": False}


def test_a_function_without_a_docstring_has_an_empty_description():
    bare = tool(name="bare")(lambda x: x)

    assert bare.spec.description == ""
    assert bare.spec.parameters["properties"] == {"x": {}}


def test_a_docstring_that_begins_with_a_section_gives_no_description():
    def terse(x: int) -> int:
        """Args:
        x: The number.
        """
        return x

    assert tool(terse).spec.description == ""


def test_a_tool_can_still_be_called_as_the_function_that_it_is():
    @tool
    def double(x: int) -> int:
        return x * 2

    assert double(x=4) == 8


def test_a_bound_method_is_a_tool_without_its_self():
    class Shop:
        def price(self, item: str) -> int:
            """Tell the price."""
            return len(item)

    declared = tool(Shop().price)

    assert declared.name == "price"
    assert list(declared.spec.parameters["properties"]) == ["item"]


def test_a_model_that_refers_to_itself_keeps_one_definition():
    def grow(tree: Node) -> None: ...

    schema = tool(grow).spec.parameters

    jsonschema.Draft202012Validator.check_schema(schema)
    assert list(schema["$defs"]) == ["Node"]
    tree = {"tree": {"name": "a", "children": [{"name": "b", "children": [{"name": "c"}]}]}}
    jsonschema.validate(tree, schema)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({"tree": {"name": "a", "children": [{"children": []}]}}, schema)


def test_models_told_apart_by_a_member_are_inlined():
    def adopt(pet: Annotated[Cat | Dog, Field(discriminator="kind")]) -> None: ...

    assert _sole_schema(adopt) == snapshot(
        {
            "oneOf": [
                {"properties": {"kind": {"const": "cat", "type": "string"}}, "required": ["kind"], "type": "object"},
                {"properties": {"kind": {"const": "dog", "type": "string"}}, "required": ["kind"], "type": "object"},
            ]
        }
    )
    assert tool(adopt).validate({"pet": {"kind": "dog"}}) == {"pet": Dog(kind="dog")}


def test_a_default_that_json_cannot_hold_is_not_shown_and_still_used():
    marker = object()

    def find(query: Any = marker) -> None: ...

    assert _sole_schema(find) == {}
    assert tool(find).validate({}) == {"query": marker}


def test_a_field_as_default_is_understood():
    def find(limit: int = Field(10, le=20, description="at most")) -> None: ...

    assert _sole_schema(find) == {"type": "integer", "default": 10, "maximum": 20, "description": "at most"}
    assert tool(find).validate({}) == {"limit": 10}


@pytest.mark.parametrize("name", ["copy", "schema", "model_config", "model_dump", "_private", "json", "argument_0"])
def test_a_parameter_may_have_any_name(name: str):
    names: dict[str, Any] = {}
    exec(f"def probe(other: str, {name}: int): ...", names)

    assert tool(names["probe"]).validate({name: 1, "other": "x"}) == {name: 1, "other": "x"}


def test_an_alias_gives_a_parameter_a_name_that_python_reserves():
    def move(from_: Annotated[str, Field(alias="from")]) -> None: ...

    assert list(tool(move).spec.parameters["properties"]) == ["from"]
    assert tool(move).validate({"from": "here"}) == {"from_": "here"}


# --- the context --------------------------------------------------------------------------------------------------


def test_the_context_is_injected_by_annotation_wherever_it_stands():
    def late(x: int, where: ToolContext | None = None) -> None: ...

    assert send.signature.context_parameter == "ctx"
    assert tool(late).signature.context_parameter == "where"
    assert list(tool(late).spec.parameters["properties"]) == ["x"]


def test_a_context_that_only_checkers_import_is_recognised():
    def shy(ctx: hidden.ToolContext, x: int) -> None: ...

    assert tool(shy).signature.context_parameter == "ctx"


def test_a_return_type_that_only_checkers_import_does_no_harm():
    def shy(x: int) -> Decimal: ...

    assert list(tool(shy).spec.parameters["properties"]) == ["x"]


def test_a_call_gets_the_context_only_if_it_asked_for_it():
    context: Any = object()

    def plain(x: int) -> None: ...

    assert tool(plain).keywords({"x": 1}, context) == {"x": 1}
    assert send.keywords({"to": "a"}, context) == {"to": "a", "ctx": context}


# --- what is refused at declaration -------------------------------------------------------------------------------


def _positional(x: int, /) -> None: ...
def _any_number(*xs: int) -> None: ...
def _any_names(**xs: int) -> None: ...
def _two_contexts(a: ToolContext, b: ToolContext) -> None: ...
def _no_type(x: Decimal) -> None: ...
def _no_json(x: inspect.Signature) -> None: ...


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (_positional, "positional-only"),
        (_any_number, "list parameter"),
        (_any_names, "dict or model parameter"),
        (_two_contexts, "one is enough"),
        (_no_type, "cannot be resolved"),
        (_no_json, "cannot be told as JSON"),
        (Toolbox.get, "bound method"),
        (partial(_positional, 1), "wrap it in one"),
        (str, "wrap it in one"),
    ],
)
def test_a_function_that_a_model_cannot_call_is_refused_at_once(function: Any, said: str):
    with pytest.raises(ConfigurationError, match=said):
        tool(function)


@pytest.mark.parametrize("timeout_s", [0, -1.0, float("inf"), float("nan")])
def test_a_time_limit_that_is_none_is_refused(timeout_s: float):
    with pytest.raises(ConfigurationError, match="timeout_s"):
        tool(timeout_s=timeout_s)


# --- which arguments it takes -------------------------------------------------------------------------------------


def test_arguments_become_what_the_hints_say():
    def plan(
        day: date, colour: Colour, at: Point, address: Address, sizes: set[int], pair: tuple[int, str]
    ) -> None: ...

    assert tool(plan).validate(
        {
            "day": "2026-02-03",
            "colour": "red",
            "at": {"x": 1, "y": 2.5},
            "address": {"street": "Main"},
            "sizes": [1, 2],
            "pair": [1, "a"],
        }
    ) == {
        "day": date(2026, 2, 3),
        "colour": Colour.RED,
        "at": Point(1, 2.5),
        "address": Address(street="Main"),
        "sizes": {1, 2},
        "pair": (1, "a"),
    }


def test_defaults_are_filled_in():
    assert send.validate({"to": "Ann", "address": {"street": "Main"}}) == {
        "to": "Ann",
        "address": Address(street="Main"),
        "unit": "c",
        "tags": None,
        "days": 3,
    }


@pytest.mark.parametrize(
    ("hint", "value"),
    [
        (int, "3"),
        (int, True),
        (int, 3.5),
        (float, "1.5"),
        (str, 3),
        (str, None),
        (bool, 1),
        (bool, "true"),
        (list[int], ["1"]),
        (list[int], 1),
        (Address, {"street": 1}),
        (Literal["a"], "b"),
        (Colour, "green"),
        (date, "soon"),
    ],
)
def test_json_types_are_taken_literally(hint: Any, value: Any):
    def probe(x: Any) -> None: ...

    probe.__annotations__["x"] = hint

    assert "- x" in _refusal(probe, {"x": value})


def test_a_refusal_names_every_argument_at_fault():
    arguments = {"address": {"title": 3}, "unit": "k", "days": 0, "tags": ["a", 1], "from": "me"}

    assert _refusal(send.function, arguments) == snapshot("""\
The arguments of send do not fit its parameters:
- to is missing
- address.street is missing
- address.title: Input should be a valid string (given: a number)
- unit: Input should be 'c' or 'f' (given: a string)
- tags.1: Input should be a valid string (given: a number)
- days: Input should be greater than or equal to 1 (given: a number)
- from is no argument of this tool (its arguments: to, address, unit, tags, days)\
""")


def test_a_refusal_does_not_repeat_what_it_was_given():
    long = "secret " * 1000

    def probe(x: int) -> None: ...

    message = _refusal(probe, {"x": long, long: 1})

    assert len(message) < 600
    assert _refusal(probe, {"x": long}).count("secret") == 0


def test_a_refusal_of_many_arguments_is_cut():
    def probe() -> None: ...

    assert "and 92 more problems" in _refusal(probe, {f"a{n}": n for n in range(100)})


def test_arguments_that_are_nested_without_end_are_refused():
    deep: Any = 1
    for _ in range(2000):
        deep = [deep]

    def probe(x: Any) -> None: ...

    assert "nested too deeply" in _refusal(probe, {"x": deep})


values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-5, 5)
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=6,
)


def _probe(
    a: int, b: str | None = None, c: list[float] | None = None, d: bool = False, e: Literal["x", "y"] = "x"
) -> None: ...


PROBE = tool(_probe)
PROBE_SCHEMA: Any = jsonschema.Draft202012Validator(PROBE.spec.parameters)


@given(
    st.fixed_dictionaries(
        {"a": st.integers(-5, 5) | values},
        optional={"b": values, "c": st.lists(st.floats(-1, 1)) | values, "d": values, "e": st.sampled_from("xyz")},
    )
)
def test_what_is_accepted_is_what_the_schema_says(arguments: dict[str, Any]):
    fits = PROBE_SCHEMA.is_valid(arguments)
    try:
        accepted = PROBE.validate(arguments)
    except InvalidArguments:
        # To a JSON Schema 3.0 is an integer; here it is not.
        assert not fits or isinstance(arguments["a"], float)
    else:
        assert fits
        assert {name: accepted[name] for name in arguments} == arguments


# --- the box ------------------------------------------------------------------------------------------------------


def add(x: int) -> int:
    """Add one."""
    return x + 1


def test_a_box_takes_tools_and_functions_and_keeps_their_order():
    box = Toolbox([send, add])

    assert box.names == ("send", "add")
    assert [spec.name for spec in box.specs()] == ["send", "add"]
    assert box.get("send") is send
    assert isinstance(box.get("add"), Tool)
    assert box.get("nope") is None


def test_two_tools_of_one_name_are_refused():
    with pytest.raises(ConfigurationError, match="Two tools are named add"):
        Toolbox([add, tool(name="add")(add)])


@pytest.mark.parametrize("name", ["", "a b", "a.b", "naïve", "x" * 65, "a\n"])
def test_a_name_that_providers_do_not_take_is_refused(name: str):
    with pytest.raises(ConfigurationError, match="cannot be a tool's name"):
        Toolbox([tool(name=name)(add)])
