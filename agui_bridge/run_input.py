"""RunAgentInput as received: checked against the tables of `shapes`, stripped of what AG-UI 1.0 does not know.

Pure. Unknown members, roles, part types and source types are left out with a warning; what is known but malformed is
refused, never coerced. Opaque values (state, metadata, payloads) are only made safe to encode. What a request means
for a thread is not known here.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Final, TypeAlias, TypeGuard, cast

from agui_bridge import shapes
from agui_bridge.content import from_binary
from agui_bridge.shapes import EXPECTED, PROTOCOL_VERSION, Shape
from runtime.canonical import Json, JsonObject, clean, clean_text, digest
from runtime.errors import InvalidInput

MAX_DEPTH: Final = 100
"""How many objects and lists may stand inside one another."""

_MAX_ID = 256
_MAX_WARNINGS = 100
_SHOWN = 80
_ABSENT: Final = object()
_NOT_IN_AN_ID = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_VERSION = re.compile(r"([0-9]{1,9})\.([0-9]{1,9})")


class MalformedInput(InvalidInput):
    """A member of the input does not have the required shape; `details` are its path and what was expected."""


@dataclass(frozen=True, slots=True)
class RunInput:
    """A request for a run. Messages, tools, context and resume are as AG-UI writes them, unknown members left out.

    `state` and `forwarded_props` are None when absent or null, `resume` is None when absent; no tools and no context
    are empty lists. `warnings` say, with paths, what was left out or translated. `has_large_media`: the page holds
    media inline that we keep once (see `media_intake`), and had better hold links to them.
    """

    thread_id: str
    run_id: str
    messages: list[JsonObject]
    tools: list[JsonObject] = field(default_factory=list[JsonObject])
    context: list[JsonObject] = field(default_factory=list[JsonObject])
    state: Json = None
    forwarded_props: Json = None
    resume: list[JsonObject] | None = None
    parent_run_id: str | None = None
    protocol_version: str | None = None
    warnings: list[str] = field(default_factory=list[str])
    has_large_media: bool = False


def parse(document: object) -> RunInput:
    """The input in a decoded JSON document.

    Raises MalformedInput; its code is `too_deep` when more than MAX_DEPTH objects and lists stand inside one another.
    """
    warnings: list[str] = []
    members = _RUN_INPUT.read(document, "", warnings)
    version = members.get("protocolVersion")
    if version is not None:
        _warn_of_version(version, warnings)
    return RunInput(
        thread_id=members["threadId"],
        run_id=members["runId"],
        messages=_last_of_each_id(members["messages"], warnings),
        tools=members.get("tools", []),
        context=members.get("context", []),
        state=members.get("state"),
        forwarded_props=members.get("forwardedProps"),
        resume=members.get("resume"),
        parent_run_id=members.get("parentRunId"),
        protocol_version=version,
        warnings=warnings,
    )


def input_digest(run_input: RunInput) -> str:
    """SHA-256 of what makes two requests the same one, as 64 hex digits; no `resume` is the same as an empty one."""
    return digest(
        {
            "messages": run_input.messages,
            "resume": run_input.resume or [],
            "state": run_input.state,
            "tools": run_input.tools,
            "context": run_input.context,
            "forwardedProps": run_input.forwarded_props,
        }
    )


# --- objects ------------------------------------------------------------------------------------------------------

Check: TypeAlias = Callable[[Json, str, str, list[str]], Json]
"""Reads one member: its value, the path of its object, its name, the warnings so far."""


class _Unknown(Exception):
    """The value is of a kind that AG-UI 1.0 does not know: the list that holds it goes on without it."""


class _Reader:
    """Reads the objects of one shape."""

    __slots__ = ("_members", "_names")

    def __init__(self, shape: Shape) -> None:
        self._members = tuple((m.name, m.kind, _CHECKS[m.kind], m.required, m.null_is_absent) for m in shape)
        self._names = frozenset(member.name for member in shape)

    def read(self, value: Json, at: str, warnings: list[str]) -> JsonObject:
        """The object with its known members, in the table's order."""
        if type(value) is not dict:
            raise _malformed(at, "an object")
        given = cast("JsonObject", value)
        known: JsonObject = {}
        for name, kind, check, required, null_is_absent in self._members:
            member = given.get(name, _ABSENT)
            if member is _ABSENT:
                if required:
                    raise _malformed(f"{at}/{name}", EXPECTED[kind])
            elif member is None and null_is_absent:
                _warn(warnings, f"{at}/{name}: null is read as absent")
            else:
                known[name] = check(member, at, name, warnings)
        if len(known) != len(given):
            for name in (name for name in given if name not in self._names):
                path = f"{at}/{_token(name)}"
                _refuse_depth(given[name], path)
                _warn(warnings, f"{path}: unknown member, left out")
        return known


def _read_one_of(readers: dict[str, _Reader], tag: str, value: Json, at: str, warnings: list[str]) -> JsonObject:
    if type(value) is not dict:
        raise _malformed(at, "an object")
    kind = cast("JsonObject", value).get(tag)
    if type(kind) is not str:
        raise _malformed(f"{at}/{tag}", EXPECTED["tag"])
    reader = readers.get(kind)
    if reader is None:
        _refuse_depth(value, at)
        _warn(warnings, f"{at}/{tag}: unknown value {_shown(kind)!r}, left out")
        raise _Unknown
    return reader.read(value, at, warnings)


Read: TypeAlias = Callable[[Json, str, list[str]], JsonObject]


def _list(kind: str, read: Read, value: Json, at: str, name: str, warnings: list[str]) -> list[JsonObject]:
    path = f"{at}/{name}"
    if type(value) is not list:
        raise _malformed(path, EXPECTED[kind])
    elements: list[JsonObject] = []
    for index, element in enumerate(cast("list[Json]", value)):
        try:
            elements.append(read(element, f"{path}/{index}", warnings))
        except _Unknown:
            continue
    return elements


# --- members ------------------------------------------------------------------------------------------------------


def _text(value: Json, at: str, name: str, warnings: list[str]) -> str:
    if type(value) is not str:
        raise _malformed(f"{at}/{name}", EXPECTED["text"])
    return value if value.isascii() else clean_text(value)


def is_id(value: Json) -> TypeGuard[str]:
    """Whether a value may be an id: a string of 1 to 256 characters without control characters and lone surrogates."""
    if type(value) is not str or not 0 < len(value) <= _MAX_ID:
        return False
    return (value.isascii() and value.isprintable()) or _NOT_IN_AN_ID.search(value) is None


def _id(value: Json, at: str, name: str, warnings: list[str]) -> str:
    if is_id(value):
        return value
    raise _malformed(f"{at}/{name}", EXPECTED["id"])


def _tag(value: Json, at: str, name: str, warnings: list[str]) -> Json:
    return value


def _object(value: Json, at: str, name: str, warnings: list[str]) -> Json:
    if type(value) is not dict:
        raise _malformed(f"{at}/{name}", EXPECTED["object"])
    return _opaque(value, at, name, warnings)


def _opaque(value: Json, at: str, name: str, warnings: list[str]) -> Json:
    path = f"{at}/{name}"
    _refuse_depth(value, path)
    cleaned = clean(value)
    if cleaned is None:
        raise _malformed(path, EXPECTED["opaque"])
    return cleaned


def _constant(kind: str, allowed: frozenset[str], value: Json, at: str, name: str, warnings: list[str]) -> str:
    if type(value) is not str or value not in allowed:
        raise _malformed(f"{at}/{name}", EXPECTED[kind])
    return value


def read_content(value: Json, at: str, name: str, warnings: list[str]) -> Json:
    """The content of a message. Raises MalformedInput."""
    if type(value) is str:
        return value if value.isascii() else clean_text(value)
    return _list("content", _part, value, at, name, warnings)


def _part(value: Json, at: str, warnings: list[str]) -> JsonObject:
    if type(value) is dict and cast("JsonObject", value).get("type") == "binary":
        _refuse_depth(value, at)
        translated = from_binary(cast("JsonObject", value))
        if translated is None:
            _warn(warnings, f"{at}: retired binary part without usable mimeType and data or url, left out")
            raise _Unknown
        _warn(warnings, f"{at}: retired binary part, read as {translated['type']}")
        value = translated
    return _read_one_of(_PARTS, "type", value, at, warnings)


def _source(value: Json, at: str, name: str, warnings: list[str]) -> JsonObject:
    return _read_one_of(_SOURCES, "type", value, f"{at}/{name}", warnings)


def _function(value: Json, at: str, name: str, warnings: list[str]) -> JsonObject:
    return _FUNCTION.read(value, f"{at}/{name}", warnings)


def _tool_call(value: Json, at: str, warnings: list[str]) -> JsonObject:
    call = _TOOL_CALL.read(value, at, warnings)
    return call if "type" in call else {"id": call["id"], "type": "function"} | call


# --- the whole ----------------------------------------------------------------------------------------------------


def _last_of_each_id(messages: list[JsonObject], warnings: list[str]) -> list[JsonObject]:
    last = {message["id"]: index for index, message in enumerate(messages)}
    if len(last) == len(messages):
        return messages
    kept: list[JsonObject] = []
    for index, message in enumerate(messages):
        if last[message["id"]] == index:
            kept.append(message)
        else:
            _warn(warnings, f"message {_shown(message['id'])!r} is given more than once, the last is kept")
    return kept


def _warn_of_version(version: str, warnings: list[str]) -> None:
    match = _VERSION.fullmatch(version)
    if match is None:
        _warn(warnings, f"/protocolVersion: {_shown(version)!r} is no version, read as a newer one")
        return
    major, minor = (int(component) for component in match.groups())
    our_major, our_minor = (int(component) for component in PROTOCOL_VERSION.split("."))
    if major != our_major:
        _warn(warnings, f"/protocolVersion: {version} is another line than {PROTOCOL_VERSION}, served as that")
    elif minor > our_minor:
        _warn(warnings, f"/protocolVersion: {version} is newer than {PROTOCOL_VERSION}, served as that")


def _refuse_depth(value: Json, at: str) -> None:
    """Raise when `value` reaches deeper into the document than is allowed; goes by levels, so that none is too many."""
    depth = at.count("/") + 1
    level: list[Any] = [value] if type(value) is dict or type(value) is list else []
    while level:
        if depth > MAX_DEPTH:
            message = f"{at or 'The input'} has more than {MAX_DEPTH} objects and lists inside one another."
            details = {"path": at, "expected": f"at most {MAX_DEPTH} levels"}
            raise MalformedInput(message, code="too_deep", details=details)
        level = [inner for outer in level for inner in _inside(outer) if type(inner) is dict or type(inner) is list]
        depth += 1


def _inside(value: Json) -> Iterable[Json]:
    return cast("Iterable[Json]", value.values() if type(value) is dict else value)


def _malformed(path: str, expected: str) -> MalformedInput:
    message = f"{path or 'The input'} must be {expected}."
    return MalformedInput(message, details={"path": path, "expected": expected})


def _warn(warnings: list[str], text: str) -> None:
    if len(warnings) < _MAX_WARNINGS:
        warnings.append(text)
    elif len(warnings) == _MAX_WARNINGS:
        warnings.append("there are more of these, not listed")


def _token(name: object) -> str:
    return _shown(str(name)).replace("~", "~0").replace("/", "~1")


def _shown(text: str) -> str:
    return clean_text(text if len(text) <= _SHOWN else f"{text[:_SHOWN]}…")


_CHECKS: dict[str, Check] = {
    "tag": _tag,
    "text": _text,
    "id": _id,
    "object": _object,
    "opaque": _opaque,
    "status": partial(_constant, "status", frozenset({"resolved", "cancelled"})),
    "function_type": partial(_constant, "function_type", frozenset({"function"})),
    "content": read_content,
    "source": _source,
    "function": _function,
}

_SOURCES = {kind: _Reader(shape) for kind, shape in shapes.SOURCES.items()}
_PARTS = {kind: _Reader(shape) for kind, shape in shapes.PARTS.items()}
_FUNCTION = _Reader(shapes.FUNCTION)
_TOOL_CALL = _Reader(shapes.TOOL_CALL)
_CHECKS["tool_calls"] = partial(_list, "tool_calls", _tool_call)
_MESSAGES = {role: _Reader(shape) for role, shape in shapes.MESSAGES.items()}
_CHECKS["messages"] = partial(_list, "messages", partial(_read_one_of, _MESSAGES, "role"))
_CHECKS["tools"] = partial(_list, "tools", _Reader(shapes.TOOL).read)
_CHECKS["context"] = partial(_list, "context", _Reader(shapes.CONTEXT).read)
_CHECKS["resume"] = partial(_list, "resume", _Reader(shapes.RESUME_ENTRY).read)
_RUN_INPUT = _Reader(shapes.RUN_INPUT)
