"""What an agent answers with instead of text: a type, the schema that a model is shown of it, and whether an answer
fits.

Pure. Pydantic does the types. Which API asks for a schema how is the dialects' business, what follows from an answer
that does not fit is `output`'s.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any, TypeAlias, cast, get_origin

import orjson
from pydantic import ConfigDict, TypeAdapter, ValidationError, create_model
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticSerializationError

from runtime.canonical import Json, JsonObject, clean, clean_text
from runtime.errors import ConfigurationError
from runtime.json_types import QuietSchema, problems_of, tidy
from runtime.strict_schema import strict

VALUE = "value"
"""The one member of the object that stands around a value that is no object: schema modes want an object at the top."""

_BAD_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_LONGEST_NAME = 64
_THE_ANSWER = "the answer"


@dataclass(frozen=True, slots=True)
class Fit:
    """The answer fits: this is its value as JSON."""

    value: Json


@dataclass(frozen=True, slots=True)
class Misfit:
    """The answer does not fit; `problems` are sentences for the model, without its values."""

    problems: list[str]


@dataclass(frozen=True, slots=True, eq=False)
class OutputType:
    """A type as a model is asked for it. Made by `read_output_type`."""

    name: str
    """Names the schema: letters, digits, _ and -, at most 64."""
    schema: JsonObject
    """The JSON Schema of an object."""
    strict_schema: JsonObject | None
    """The same as strict modes want it, None if it cannot be said so."""
    is_wrapped: bool
    """Whether the object only holds the value, under `value`."""
    adapter: TypeAdapter[Any]

    @property
    def is_recursive(self) -> bool:
        """Whether a part of the schema refers to itself."""
        return "$defs" in self.schema

    def validate(self, text: str) -> Fit | Misfit:
        """What JSON text holds. JSON types are taken literally, as with the arguments of tools.

        The value is what the type makes of it, defaults included, with the names of the schema. Raises
        ConfigurationError when the type made something that has no JSON form.
        """
        text = clean_text(text)
        try:
            given: Json = orjson.loads(text)
        except orjson.JSONDecodeError as error:
            return Misfit([f"{_THE_ANSWER} is not JSON ({error})" if text.strip() else f"{_THE_ANSWER} is empty"])
        try:
            made = self.adapter.validate_json(text, strict=True)
        except ValidationError as error:
            return Misfit(problems_of(error, given, whole=_THE_ANSWER))
        try:
            value = clean(self.adapter.dump_python(made, mode="json", by_alias=True))
        except PydanticSerializationError as error:
            raise ConfigurationError(f"A value of the output type {self.name} has no JSON form: {error}") from error
        return Fit(cast("JsonObject", value)[VALUE] if self.is_wrapped else value)


Type: TypeAlias = Any
"""Whatever `pydantic.TypeAdapter` takes."""


def read_output_type(type_: Type) -> OutputType:
    """What a model is asked for a value of this type. Raises ConfigurationError if it cannot be told as JSON."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(type_)
        schema = tidy(adapter.json_schema(schema_generator=QuietSchema))
        is_wrapped = schema.get("type") != "object"
        if is_wrapped:
            definitions: dict[str, Any] = {VALUE: (type_, ...)}
            adapter = TypeAdapter(create_model("Answer", __config__=ConfigDict(extra="forbid"), **definitions))
            schema = tidy(adapter.json_schema(schema_generator=QuietSchema))
        adapter.json_schema(mode="serialization", schema_generator=QuietSchema)
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
        problem = str(error).partition("\n")[0]
        raise ConfigurationError(f"{type_!r} cannot be an output type, it has no JSON form: {problem}") from error
    return OutputType(_name_of(type_), schema, strict(schema), is_wrapped, adapter)


def _name_of(type_: Type) -> str:
    named = type_.__name__ if isinstance(type_, type) and get_origin(type_) is None else "answer"
    return _BAD_IN_NAME.sub("_", named)[:_LONGEST_NAME]
