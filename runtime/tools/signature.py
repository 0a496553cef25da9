"""What a function's signature tells a model: its parameters as a JSON Schema, and whether given arguments fit them.

Pure. Pydantic does the types; the docstring gives the words. It knows nothing of tools being declared or executed.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from types import NoneType, SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import orjson
from pydantic import BaseModel, ConfigDict, Field, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError

from runtime.canonical import JsonObject, canonical
from runtime.errors import ConfigurationError
from runtime.json_types import QuietSchema, problems_of, tidy
from runtime.tools.context import ToolContext

_REFUSED_KINDS = {
    inspect.Parameter.POSITIONAL_ONLY: "is positional-only, but a model names its arguments",
    inspect.Parameter.VAR_POSITIONAL: "takes any number of values; use one list parameter",
    inspect.Parameter.VAR_KEYWORD: "takes any names; use one dict or model parameter",
}
_SECTION = re.compile(r"^(Args|Arguments|Parameters|Returns?|Raises|Yields?|Examples?|Notes?):\s*$")
_ARGUMENT_SECTIONS = frozenset({"Args", "Arguments", "Parameters"})
_ARGUMENT = re.compile(r"^(\w+)\s*(?:\([^)]*\))?\s*:\s*(.*)$")
_CONTEXT_IN_WORDS = re.compile(r"(?:\w+\.)*ToolContext(?:\s*\|\s*None)?")


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
            names = list(self.parameters["properties"])
            raise Unfit(problems_of(error, arguments, whole="the arguments", arguments=names)) from error
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
        schema = model.model_json_schema(schema_generator=QuietSchema)
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
        raise _misfit(
            function, f"its parameters cannot be told as JSON ({str(error).partition(chr(10))[0]})"
        ) from error
    for name, property_schema in zip(hints, schema["properties"].values(), strict=True):
        if name in words.arguments:
            property_schema.setdefault("description", words.arguments[name])
    return Signature(tidy(schema), context, fields, model)


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
