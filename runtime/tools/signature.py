"""What a function's signature tells a model: its parameters as a JSON Schema, and whether given arguments fit them.

Pure. Pydantic does the types; the docstring gives the words. It knows nothing of tools being declared or executed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Union, cast, get_args, get_origin, get_type_hints

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic.json_schema import GenerateJsonSchema

from runtime.canonical import Json, JsonObject, canonical
from runtime.errors import ConfigurationError
from runtime.tools.context import ToolContext

MAX_PROBLEMS = 8
"""So many problems are told to the model at once."""
MAX_PROBLEM_LENGTH = 200

_REFUSED_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only, but a model names its arguments",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values; use one list parameter",
    inspect.Parameter.VAR_KEYWORD: "takes any names; use one dict or model parameter",
}
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns?|Raises|Yields?|Examples?|Notes?):\s*$")
_ARGUMENT_SECTIONS = frozenset({"Args", "Arguments", "Parameters"})
_ARGUMENT = re.compile(r"^(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_CONTEXT_IN_WORDS = re.compile(r"(?:\w+\.)*ToolContext(?:\s*\|\s*None)?")
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


class Unfit(Exception):
    """The arguments do not fit the signature; `problems` are sentences for the model, one a problem."""

    def __init__(self, problems: list[str]):
        self.problems = problems
        super().__init__("; ".join(problems))


@dataclass(frozen=True, slots=True, eq=False)
class Signature:
    """A function's parameters, without the injected context. `parameters` is the JSON Schema of an object."""

    parameters: JsonObject
    context_parameter: str | None
    fields: dict[str, str]
    """The parameters' names by the names of the fields of `model`."""
    model: type[BaseModel]

    def bind(self, arguments: JsonObject) -> dict[str, object]:
        """The keyword arguments for these JSON arguments, defaults included. Raises Unfit.

        JSON types are taken literally ("3" is no integer); what JSON has no type for (dates, enums, models) is read
        from its JSON form.
        """
        try:
            values = self.model.model_validate_json(canonical(arguments), strict=True)
        except orjson.JSONEncodeError as error:
            raise Unfit(["the arguments are nested too deeply or are not plain JSON"]) from error
        except ValidationError as error:
            raise Unfit(_problems(error, arguments, list(self.parameters["properties"]))) from error
        return {name: getattr(values, field) for field, name in self.fields.items()}


@dataclass(frozen=True, slots=True)
class Words:
    """What a docstring says: its first paragraph, and a description for each argument that has one."""

    summary: str
    arguments: Mapping[str, str]


def read_signature(function: Callable[..., object], words: Words) -> Signature:
    """The signature of a function or bound method. Raises ConfigurationError if a model could not call it."""
    context: str | None = None
    hints: dict[str, tuple[Any, Any]] = {}
    for index, parameter in enumerate(inspect.signature(function).parameters.values()):
        _refuse_what_a_model_cannot_give(function, index, parameter)
        hint = _hint(function, parameter)
        if not _is_context(hint):
            hints[parameter.name] = (hint, ... if parameter.default is inspect.Parameter.empty else parameter.default)
        elif context is None:
            context = parameter.name
        else:
            raise _misfit(function, f"both {context} and {parameter.name} are a ToolContext; one is enough")
    # Neutral field names, so that a parameter may be called what pydantic keeps for itself (`copy`, `_x`, `schema`).
    fields = {f"argument_{index}": name for index, name in enumerate(hints)}
    definitions: dict[str, Any] = {field: _named(name, *hints[name]) for field, name in fields.items()}
    try:
        model = create_model("Arguments", __config__=ConfigDict(extra="forbid"), **definitions)
        schema = model.model_json_schema(schema_generator=_QuietSchema)
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
        raise _misfit(
            function, f"its parameters cannot be told as JSON ({str(error).partition(chr(10))[0]})"
        ) from error
    for name, property_schema in zip(hints, schema["properties"].values(), strict=True):
        if name in words.arguments:
            property_schema.setdefault("description", words.arguments[name])
    return Signature(_tidy(schema), context, fields, model)


def read_words(function: Callable[..., object]) -> Words:
    """The words of a Google-style docstring; empty without one."""
    lines = (inspect.getdoc(function) or "").splitlines()
    heads = [index for index, line in enumerate(lines) if _SECTION.match(line)]
    prose = "\n".join(lines[: heads[0]] if heads else lines).strip()
    summary = " ".join(re.split(r"\n\s*\n", prose, maxsplit=1)[0].split())
    arguments: dict[str, str] = {}
    for head, end in zip(heads, [*heads, len(lines)][1:], strict=True):
        if lines[head].rstrip().rstrip(":") in _ARGUMENT_SECTIONS:
            arguments.update(_described_arguments(lines[head + 1 : end]))
    return Words(summary, arguments)


def _described_arguments(lines: list[str]) -> dict[str, str]:
    described: dict[str, list[str]] = {}
    margin: int | None = None
    current: list[str] = []
    for line in lines:
        text = line.strip()
        indent = len(line) - len(line.lstrip())
        if not text:
            continue
        if indent == 0:
            break
        margin = indent if margin is None else margin
        entry = _ARGUMENT.match(text) if indent <= margin else None
        if entry:
            current = described.setdefault(entry[1], [])
            text = entry[2]
        current.append(text)
    return {name: " ".join(pieces).strip() for name, pieces in described.items()}


# --- types --------------------------------------------------------------------------------------------------------


def _refuse_what_a_model_cannot_give(function: Callable[..., object], index: int, parameter: inspect.Parameter) -> None:
    if parameter.kind in _REFUSED_KINDS:
        raise _misfit(function, f"parameter {parameter.name} {_REFUSED_KINDS[parameter.kind]}")
    if index == 0 and parameter.name in ("self", "cls") and parameter.annotation is inspect.Parameter.empty:
        raise _misfit(function, "it is a method without its object; make the tool of the bound method")


def _hint(function: Callable[..., object], parameter: inspect.Parameter) -> Any:
    """The parameter's type. Each is resolved alone: a return type that exists only for checkers does no harm."""
    annotation = parameter.annotation
    if annotation is inspect.Parameter.empty:
        return Any
    holder = SimpleNamespace(__annotations__={parameter.name: annotation})
    names = getattr(inspect.unwrap(function), "__globals__", {})
    try:
        return get_type_hints(holder, globalns=names, include_extras=True)[parameter.name]
    except (NameError, AttributeError, SyntaxError, TypeError) as error:
        if isinstance(annotation, str) and _CONTEXT_IN_WORDS.fullmatch(annotation.strip("'\" ")):
            return ToolContext
        problem = f"the type of parameter {parameter.name} cannot be resolved ({error}); define it in the module"
        raise _misfit(function, problem) from error


def _named(name: str, hint: Any, default: Any) -> tuple[Any, Any]:
    """A field's definition: the parameter's name is its alias, unless the annotation itself gives one."""
    kind, *metadata = get_args(hint) if get_origin(hint) is Annotated else (hint,)
    return Annotated[(kind, Field(alias=name), *metadata)], default


def _is_context(hint: Any) -> bool:
    if get_origin(hint) in (Union, UnionType):
        return set(get_args(hint)) == {ToolContext, NoneType}
    return hint is ToolContext


def _misfit(function: Callable[..., object], problem: str) -> ConfigurationError:
    return ConfigurationError(f"{getattr(function, '__qualname__', function)} cannot be a tool: {problem}.")


# --- schema -------------------------------------------------------------------------------------------------------


class _QuietSchema(GenerateJsonSchema):
    """A default without a JSON form is simply not shown to the model."""

    ignored_warning_kinds = {"skipped-choice", "non-serializable-default"}


def _tidy(schema: JsonObject) -> JsonObject:
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


def _problems(error: ValidationError, arguments: JsonObject, names: list[str]) -> list[str]:
    found = error.errors(include_url=False, include_context=False)
    problems: list[str] = []
    for detail in found[:MAX_PROBLEMS]:
        kind = detail["type"]
        place = _place(detail["loc"], arguments, missing=kind == "missing")
        if kind == "missing":
            problems.append(f"{place} is missing")
        elif kind == "extra_forbidden" and len(detail["loc"]) == 1:
            problems.append(f"{place} is no argument of this tool (its arguments: {', '.join(names) or 'none'})")
        else:
            value: object = detail["input"]
            given = _JSON_TYPES.get(type(value), "something else")
            problems.append(f"{place}: {_cut(detail['msg'])} (given: {given})")
    if len(found) > MAX_PROBLEMS:
        problems.append(f"and {len(found) - MAX_PROBLEMS} more problems")
    return problems


def _place(location: tuple[int | str, ...], arguments: Json, *, missing: bool) -> str:
    """The location as a path into the arguments, without the steps that only exist in the types (unions, keys)."""
    steps: list[str] = []
    here = arguments
    for depth, step in enumerate(location, start=1):
        if isinstance(here, dict) and step in here:
            here = cast("JsonObject", here)[cast("str", step)]
        elif isinstance(here, list) and isinstance(step, int) and step < len(cast("list[Json]", here)):
            here = cast("list[Json]", here)[step]
        elif not (missing and depth == len(location)):
            continue
        steps.append(str(step))
    return _cut(".".join(steps)) or "the arguments"


def _cut(text: str) -> str:
    return text if len(text) <= MAX_PROBLEM_LENGTH else text[: MAX_PROBLEM_LENGTH - 1] + "…"
