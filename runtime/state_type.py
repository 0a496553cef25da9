"""The type of an agent's shared state: whether a state fits it, and the state as a value of it and back.

Pure. Pydantic does the types.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import orjson
from pydantic import TypeAdapter, ValidationError
from pydantic.errors import PydanticUndefinedAnnotation, PydanticUserError
from pydantic_core import PydanticSerializationError

from runtime.canonical import Json, JsonObject, clean
from runtime.errors import ConfigurationError, InvalidInput
from runtime.json_types import QuietSchema, problems_of, tidy

_MOST_TOLD = 5


class StateMisfit(InvalidInput):
    """The state does not fit the agent's type of it."""

    code = "state_invalid"


@dataclass(frozen=True, slots=True, eq=False)
class StateType:
    """A type of states. Made by `read_state_type`."""

    name: str
    schema: JsonObject
    """The JSON Schema of a state."""
    adapter: TypeAdapter[Any]

    def read(self, state: Json) -> Any:
        """The state as a value of the type. Raises StateMisfit, whose details have the paths of what does not fit."""
        try:
            return self.adapter.validate_json(orjson.dumps(state))
        except ValidationError as error:
            problems = problems_of(error, state, whole="the state")[:_MOST_TOLD]
            paths = ["".join(f"/{step}" for step in each["loc"]) for each in error.errors()][:_MOST_TOLD]
            said = f"The state does not fit {self.name}: {problems[0]}."
            raise StateMisfit(said, details={"path": f"/state{paths[0]}", "paths": paths}) from error

    def write(self, value: Any) -> Json:
        """The state that a value is. Raises StateMisfit."""
        try:
            return clean(self.adapter.dump_python(value, mode="json", by_alias=True, warnings=False))
        except PydanticSerializationError as error:
            raise StateMisfit(f"What the tool made of the state has no JSON form: {error}.") from error

    def written(self, value: Any) -> Json:
        """The state that a tool's value is, which fits: a value may have been changed into what it could not be made
        of. Raises StateMisfit."""
        state = self.write(value)
        self.read(state)
        return state


def read_state_type(type_: Any) -> StateType:
    """The type of states that an author names. Raises ConfigurationError if its values are no JSON objects."""
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(type_)
        schema = tidy(adapter.json_schema(schema_generator=QuietSchema))
    except (PydanticUserError, PydanticUndefinedAnnotation, TypeError) as error:
        problem = str(error).partition("\n")[0]
        raise ConfigurationError(f"{type_!r} cannot be a state type, it has no JSON form: {problem}") from error
    if schema.get("type") != "object":
        raise ConfigurationError(f"{type_!r} cannot be a state type: a state is an object.")
    return StateType(getattr(type_, "__name__", "the state's type"), schema, adapter)
