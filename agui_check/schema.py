"""The protocol's JSON Schema as a judge: each error with its path and the requirement that it offends. Pure.

An error in a union is looked for in the branch that its discriminator names, so that it says what is wrong and not
that nothing fits.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from importlib import resources
from typing import Any, Final, TypeAlias, cast

from jsonschema import Draft202012Validator, ValidationError, validators

from agui_check.findings import Finding, JsonObject, as_object, shown

SPEC_VERSION: Final = "1.0"
"""The version of the protocol that is checked."""

SCHEMA: Final[JsonObject] = json.loads((resources.files("agui_check") / "schema-1.0.json").read_text("utf-8"))
_DEFS: Final[dict[str, Any]] = SCHEMA["$defs"]

UNKNOWN: Final = "unknown"
"""Marks an error that a client mends by leaving something out."""

_LEFT_OVER: Final = ("unevaluatedProperties", "additionalProperties")

_RETIRED_NULLS = {"outcome", "result", "rawEvent", "parentMessageId", "payload", "forwardedProps", "parameters"}


def event_errors(event: JsonObject, number: int | None = None) -> list[Finding]:
    """What the schema has against an event."""
    kind = event["type"]
    name = _EVENTS.get(kind)
    if name is None:
        if kind.startswith("THINKING_"):
            return [Finding("R-141", f"{kind} was retired.", number)]
        return [Finding("R-186", f"{shown(kind)} is no type of event.", number)]
    return [_finding(error, event, number) for error in _told_once(list(_errors(name, event)))]


def errors_of(definition: str, document: object) -> list[str]:
    """What the schema has against a document of a definition, as sentences."""
    return [f"{_path(error)}: {_words(error)}" for error in _told_once(list(_errors(definition, document)))]


# --- the schema ---------------------------------------------------------------------------------------------------


def _name_of(reference: JsonObject) -> str:
    return cast("str", reference.get("$ref", "")).removeprefix("#/$defs/")


def _constants(definition: str) -> dict[str, Any]:
    properties: dict[str, Any] = _DEFS.get(definition, {}).get("properties", {})
    return {name: value["const"] for name, value in properties.items() if "const" in value}


def _one_of(validator: Any, branches: list[JsonObject], instance: Any, schema: JsonObject) -> Iterable[ValidationError]:
    """`oneOf`, in the branch that the discriminator names where there is one."""
    tags: dict[str, dict[str, Any]] = {name: _constants(name) for name in map(_name_of, branches)}
    tag = next((tag for tag in ("type", "role", "op") if all(tag in each for each in tags.values())), None)
    if tag is None or not isinstance(instance, dict):
        yield from _plain_one_of(validator, branches, instance, schema)
        return
    given = as_object(instance).get(tag)
    for branch in branches:
        if tags[_name_of(branch)][tag] == given:
            yield from validator.descend(instance, branch)
            return
    if given is None:
        yield ValidationError(f"{tag} is missing", validator="required", path=(tag,))
    else:
        yield ValidationError(f"{tag} {shown(given)} is unknown", validator=UNKNOWN, path=(tag,))


_plain_one_of: Any = cast("Any", Draft202012Validator).VALIDATORS["oneOf"]
_Validator: Any = cast("Any", validators).extend(Draft202012Validator, {"oneOf": _one_of})

_EVENTS: Final[dict[str, str]] = {
    _constants(name)["type"]: name for name in (_name_of(each) for each in _DEFS["Event"]["oneOf"])
}
EVENT_TYPES: Final = frozenset(_EVENTS)
"""The types of events that the version knows."""


@lru_cache
def _validator(definition: str) -> Any:
    return _Validator({"$defs": _DEFS, "$ref": f"#/$defs/{definition}"})


def _errors(definition: str, document: object) -> Iterator[ValidationError]:
    return _validator(definition).iter_errors(document)


def _told_once(errors: list[ValidationError]) -> list[ValidationError]:
    """The errors without those that call a member unknown because it is malformed."""
    malformed = {tuple(each.absolute_path)[: depth + 1] for each in errors for depth in range(len(each.absolute_path))}
    return [each for each in errors if each.validator not in _LEFT_OVER or _members(each) - malformed]


def _members(error: ValidationError) -> set[tuple[Any, ...]]:
    """The paths of the members that an error calls unknown."""
    return {(*error.absolute_path, name) for name in re.findall(r"'([^']*)'", error.message.partition("(")[2])}


# --- from errors to requirements ----------------------------------------------------------------------------------

Route: TypeAlias = tuple[str, str]


def _finding(error: ValidationError, event: JsonObject, number: int | None) -> Finding:
    path = [str(step) for step in error.absolute_path]
    requirement = _requirement(error, path, event)
    words = f"{event['type']}{_path(error)}: {_words(error)}"
    return Finding(requirement, words, number, fatal=not _is_mended(error, path))


def _is_mended(error: ValidationError, path: list[str]) -> bool:
    """Whether a client strips or converts this and goes on."""
    if error.validator == UNKNOWN or error.validator in _LEFT_OVER:
        return True
    return _is_null(error) and bool(path) and path[-1] in _RETIRED_NULLS


def _is_null(error: ValidationError) -> bool:
    return error.instance is None and error.validator not in ("required", UNKNOWN)


def _requirement(error: ValidationError, path: list[str], event: JsonObject) -> str:
    last = path[-1] if path else ""
    if _is_null(error):
        return _NULLS.get(last, "R-187") if event["type"] != "MESSAGES_SNAPSHOT" else "R-129"
    if "outcome" in path:
        return _of_outcome(error, path, event)
    for member, requirement in _MEMBERS:
        if member in path:
            return requirement
    if error.validator in _LEFT_OVER:
        return "R-186"
    return _TYPES.get(event["type"], "R-186")


def _of_outcome(error: ValidationError, path: list[str], event: JsonObject) -> str:
    if "interrupts" in path and len(path) > path.index("interrupts") + 1:
        return "R-162"
    if event["type"] != "RUN_FINISHED":
        return "R-149"
    outcome = as_object(event.get("outcome"))
    kind = outcome.get("type")
    if kind == "interrupt" and ("interrupts" in path or error.validator == "required"):
        return "R-160"
    if kind in ("interrupt", "cancelled") and "pendingToolCallIds" in outcome:
        return "R-109"
    return "R-107" if "pendingToolCallIds" in path else "R-074" if kind == "cancelled" else "R-076"


_NULLS = {
    "metadata": "R-180",
    "outcome": "R-077",
    "code": "R-078",
    "message": "R-078",
    "subagentRunId": "R-143",
    "parentMessageId": "R-103",
    "delta": "R-089",
}

_MEMBERS = (
    ("timestamp", "R-188"),
    ("metadata", "R-180"),
    ("usage", "R-199"),
    ("input", "R-052"),
    ("patch", "R-121"),
)

_TYPES = {
    "RUN_STARTED": "R-066",
    "RUN_FINISHED": "R-051",
    "RUN_ERROR": "R-078",
    "STEP_STARTED": "R-080",
    "STEP_FINISHED": "R-080",
    "TEXT_MESSAGE_START": "R-088",
    "TEXT_MESSAGE_CONTENT": "R-089",
    "TEXT_MESSAGE_END": "R-085",
    "TEXT_MESSAGE_CHUNK": "R-088",
    "TOOL_CALL_START": "R-100",
    "TOOL_CALL_ARGS": "R-100",
    "TOOL_CALL_END": "R-100",
    "TOOL_CALL_CHUNK": "R-100",
    "TOOL_CALL_RESULT": "R-113",
    "STATE_SNAPSHOT": "R-124",
    "STATE_DELTA": "R-121",
    "MESSAGES_SNAPSHOT": "R-129",
    "ACTIVITY_SNAPSHOT": "R-130",
    "ACTIVITY_DELTA": "R-130",
    "CUSTOM": "R-184",
    "REASONING_START": "R-135",
    "REASONING_END": "R-135",
    "REASONING_MESSAGE_START": "R-136",
    "REASONING_MESSAGE_CONTENT": "R-135",
    "REASONING_MESSAGE_END": "R-135",
    "REASONING_MESSAGE_CHUNK": "R-135",
    "REASONING_ENCRYPTED_VALUE": "R-137",
    "SUBAGENT_STARTED": "R-145",
    "SUBAGENT_FINISHED": "R-145",
    "SUBAGENT_ERROR": "R-145",
}
"""The requirement that an event of a type offends when nothing closer is known."""


def _path(error: ValidationError) -> str:
    return "".join(f"/{step}" for step in error.absolute_path)


def _words(error: ValidationError) -> str:
    if error.validator == "type":
        return f"{shown(error.instance)} is not of type {error.validator_value}"
    if error.validator in _LEFT_OVER:
        return f"unknown members {', '.join(sorted(str(path[-1]) for path in _members(error)))}"
    return error.message if len(error.message) <= 160 else f"{error.message[:160]}…"
