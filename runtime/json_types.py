"""Types as JSON: the schema that a model is shown of a type, and what it is told of a value that does not fit.

Pure. Pydantic makes the schema and finds the problems; here both are put into a form that models read. It knows
neither tools nor answers.
"""

from __future__ import annotations

from collections.abc import Sequence
from types import NoneType
from typing import cast

from pydantic import ValidationError
from pydantic.json_schema import GenerateJsonSchema

from runtime.canonical import Json, JsonObject

MAX_PROBLEMS = 8
"""So many problems are told to the model at once."""
MAX_PROBLEM_LENGTH = 200

_JSON_TYPES: dict[type, str] = {
    dict: "an object",
    list: "an array",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
    NoneType: "null",
}
_NAMED_SUBSCHEMAS = frozenset({"properties", "patternProperties", "dependentSchemas", "$defs"})
_VALUES = frozenset({"default", "const", "enum", "examples", "example"})
_REF = "#/$defs/"


# --- schema -------------------------------------------------------------------------------------------------------


class QuietSchema(GenerateJsonSchema):
    """A default without a JSON form is simply not shown to the model."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}


def tidy(schema: JsonObject) -> JsonObject:
    """The schema without titles and references; only what refers to itself stays under `$defs`."""
    definitions: JsonObject = schema.pop("$defs", {})
    recursive: set[str] = set()
    tidied = _inlined(schema, definitions, frozenset(), recursive)
    kept: JsonObject = {}
    while missing := sorted(recursive - kept.keys()):
        for name in missing:
            kept[name] = _inlined(definitions[name], definitions, frozenset({name}), recursive)
    return {**tidied, "$defs": kept} if kept else tidied


def _inlined(node: Json, definitions: JsonObject, within: frozenset[str], recursive: set[str]) -> Json:
    if isinstance(node, list):
        return [_inlined(item, definitions, within, recursive) for item in cast("list[Json]", node)]
    if not isinstance(node, dict):
        return node
    schema = cast("JsonObject", node)
    target = cast("str", schema.get("$ref", "")).removeprefix(_REF)
    if target in within:
        recursive.add(target)
        return {key: value for key, value in schema.items() if key != "title"}
    tidied: JsonObject = {}
    if target:
        tidied.update(_inlined(definitions[target], definitions, within | {target}, recursive))
    for key, value in schema.items():
        if key in ("$ref", "title", "discriminator"):
            continue
        if key in _VALUES:
            tidied[key] = value
        elif key in _NAMED_SUBSCHEMAS:
            tidied[key] = {name: _inlined(item, definitions, within, recursive) for name, item in value.items()}
        else:
            tidied[key] = _inlined(value, definitions, within, recursive)
    return tidied


# --- problems -----------------------------------------------------------------------------------------------------


def problems_of(
    error: ValidationError, given: Json, *, whole: str, arguments: Sequence[str] | None = None
) -> list[str]:
    """What is wrong with the JSON value `given`, one sentence a problem, without the values themselves.

    `whole` is what the value is called. `arguments` are the names that a tool's call may hold; None: it is no call.
    """
    found = error.errors(include_url=False, include_context=False)
    problems: list[str] = []
    for detail in found[:MAX_PROBLEMS]:
        kind = detail["type"]
        place = _place(detail["loc"], given, missing=kind == "missing") or whole
        if kind == "missing":
            problems.append(f"{place} is missing")
        elif arguments is not None and kind == "extra_forbidden" and len(detail["loc"]) == 1:
            problems.append(f"{place} is no argument of this tool (its arguments: {', '.join(arguments) or 'none'})")
        else:
            value: object = detail["input"]
            found_there = _JSON_TYPES.get(type(value), "something else")
            problems.append(f"{place}: {_cut(detail['msg'])} (given: {found_there})")
    if len(found) > MAX_PROBLEMS:
        problems.append(f"and {len(found) - MAX_PROBLEMS} more problems")
    return problems


def _place(location: tuple[int | str, ...], given: Json, *, missing: bool) -> str:
    """The location as a path into the value, without the steps that only exist in the types (unions, keys)."""
    steps: list[str] = []
    here = given
    for depth, step in enumerate(location, start=1):
        if isinstance(here, dict) and step in here:
            here = cast("JsonObject", here)[cast("str", step)]
        elif isinstance(here, list) and isinstance(step, int) and step < len(cast("list[Json]", here)):
            here = cast("list[Json]", here)[step]
        elif not (missing and depth == len(location)):
            continue
        steps.append(str(step))
    return _cut(".".join(steps))


def _cut(text: str) -> str:
    return text if len(text) <= MAX_PROBLEM_LENGTH else text[: MAX_PROBLEM_LENGTH - 1] + "…"
