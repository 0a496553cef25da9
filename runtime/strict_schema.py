"""A JSON Schema as the strict modes of providers want it.

Pure. Strict modes know a part of JSON Schema: every object is closed and all its members are required, a union is
`anyOf`, every value has a type. What they do not enforce is moved into the description, where the model reads it; the
answer is validated in any case. What cannot be said so (open objects, free values, tuples) has no strict form.

Sources: the shapes that the OpenAI SDK (`openai.lib._pydantic`) and Anthropic's (`anthropic.transform_schema`) make of
a pydantic model.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import orjson

from runtime.canonical import Json, JsonObject

LIMITS = frozenset(
    {"pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf", "minItems", "maxItems"}
)
"""Keywords that limit a value; some strict modes enforce them."""

_STRUCTURE = frozenset(
    {"type", "properties", "required", "additionalProperties", "items", "anyOf", "enum", "const", "description"}
)
_FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
_HAVE_NO_FORM = frozenset({"patternProperties", "prefixItems", "allOf", "not", "if", "dependentSchemas"})
_TYPES: dict[type, str] = {str: "string", bool: "boolean", int: "integer", float: "number", type(None): "null"}


class _NoForm(Exception):
    """A part of the schema has no strict form."""


def strict(schema: JsonObject) -> JsonObject | None:
    """The strict form of a schema of an object, None if it has none. The schema itself stays as it is."""
    definitions = cast("JsonObject", schema.get("$defs", {}))
    try:
        made = _strict({name: value for name, value in schema.items() if name != "$defs"})
        kept = {name: _strict(value) for name, value in definitions.items()}
    except _NoForm:
        return None
    return {**made, "$defs": kept} if kept else made


def in_words(schema: JsonObject, keywords: Collection[str]) -> JsonObject:
    """The schema with these keywords moved into the descriptions, at every level."""
    made: JsonObject = {}
    said: JsonObject = {}
    for name, value in schema.items():
        if name in keywords:
            said[name] = value
        elif name in ("properties", "$defs"):
            made[name] = {key: in_words(item, keywords) for key, item in cast("JsonObject", value).items()}
        elif name == "anyOf":
            made[name] = [in_words(item, keywords) for item in cast("list[JsonObject]", value)]
        elif name == "items":
            made[name] = in_words(cast("JsonObject", value), keywords)
        else:
            made[name] = value
    return _described(made, said)


def _strict(schema: Json) -> JsonObject:
    if not isinstance(schema, dict):
        raise _NoForm
    node = cast("JsonObject", schema)
    if "$ref" in node:
        return {"$ref": node["$ref"]}  # nothing may stand beside a reference
    if _HAVE_NO_FORM & node.keys():
        raise _NoForm
    made = {name: value for name, value in node.items() if name in _STRUCTURE or _is_enforced(name, value)}
    said = {name: value for name, value in node.items() if name not in made and name not in ("oneOf", "default")}
    if node.get("default") is not None:
        said["default"] = node["default"]
    if union := node.get("anyOf", node.get("oneOf")):
        made["anyOf"] = [_strict(item) for item in cast("list[Json]", union)]
    elif "type" not in made:
        made["type"] = _type_of(made)
    if made.get("type") == "object":
        _close(made)
    elif made.get("type") == "array":
        made["items"] = _strict(made.get("items"))
    return _described(made, said)


def _is_enforced(name: str, value: Json) -> bool:
    if name == "format":
        return value in _FORMATS
    if name == "pattern":
        return "(?" not in str(value)  # looking around is not known everywhere
    return name in LIMITS


def _close(made: JsonObject) -> None:
    if made.get("additionalProperties", False) is not False or "properties" not in made:
        raise _NoForm
    properties = cast("JsonObject", made["properties"])
    made["properties"] = {name: _strict(value) for name, value in properties.items()}
    made["required"] = list(properties)
    made["additionalProperties"] = False


def _type_of(made: JsonObject) -> Json:
    """The type of what is listed, for schemas that leave it out."""
    listed = cast("list[Json]", made["enum"] if "enum" in made else [made["const"]] if "const" in made else [])
    types = list(dict.fromkeys(_TYPES[type(value)] for value in listed if type(value) in _TYPES))
    if not types:
        raise _NoForm
    return types[0] if len(types) == 1 else types


def _described(made: JsonObject, said: JsonObject) -> JsonObject:
    if not said:
        return made
    words = ", ".join(f"{name}: {orjson.dumps(value).decode()}" for name, value in said.items())
    before = made.get("description")
    return {**made, "description": f"{before}\n({words})" if before else f"({words})"}
