"""Puts tool calls together from the fragments in which Chat Completions servers stream them.

Pure. A fragment should carry an index, and the first one of a call an id and a name. Servers leave out any of these,
repeat them, cut the name in pieces or give every call the same index; what a fragment belongs to is decided here, and
nowhere else.

1. An id that the call at this index does not have opens a new call. Empty strings mean "no news".
2. A name may come in pieces until argument text has come. The declared names are the arbiter: a piece that repeats a
   declared name is a repetition, a longer beginning of a declared name replaces a shorter one.
3. When argument text has come, another name opens a new call; the same name does so only if the arguments are
   complete and new ones begin. The same complete arguments again, at the same index or id, are a repetition.
4. Without index and id, a name opens a new call (unless rule 2 or 3 says that it belongs to the last one) and
   arguments go to the last call.
5. A fragment that says nothing at all opens nothing.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import orjson

from runtime.canonical import Json, JsonObject, clean, clean_text
from runtime.dialects.surrogates import Halves
from runtime.samples import ToolCallCommitted, ToolCallDelta

_KNOWN = frozenset({"index", "id", "type", "function", "name", "arguments"})


class _Call:
    """One call of the round."""

    __slots__ = ("call_id", "flowing", "halves", "held", "key", "name", "opaque", "pieces", "settled", "shown")

    def __init__(self, key: str, call_id: str) -> None:
        self.key = key
        self.call_id = call_id
        self.name = ""
        self.settled = False
        self.shown = False
        self.flowing = False  # whether argument text was given out
        self.pieces: list[str] = []
        self.held: list[str] = []  # argument text that was not given out
        self.halves = Halves()
        self.opaque: JsonObject = {}

    @property
    def has_arguments(self) -> bool:
        return bool(self.pieces)

    @property
    def arguments(self) -> str:
        return "".join(self.pieces)


class CallFragments:
    """The calls of one response. `declared` are the names that the request declared."""

    def __init__(self, declared: Collection[str]) -> None:
        self._declared = frozenset(declared)
        self._calls: list[_Call] = []
        self._at_index: dict[int, _Call] = {}
        self._last: _Call | None = None

    @property
    def any(self) -> bool:
        """Whether a call has begun."""
        return bool(self._calls)

    def feed(self, fragments: Json) -> list[ToolCallDelta]:
        """What a delta's `tool_calls` say. Nothing is given out of a call before its name is settled."""
        if isinstance(fragments, dict):
            fragments = [fragments]
        if not isinstance(fragments, list):
            return []
        out: list[ToolCallDelta] = []
        touched: set[str] = set()
        for fragment in cast("list[Json]", fragments):
            if isinstance(fragment, dict):
                self._fragment(cast("JsonObject", fragment), touched, out)
        return out

    def settle(self) -> list[ToolCallDelta]:
        """The stream is over: every name is what it is now, and what was held back comes out."""
        out: list[ToolCallDelta] = []
        for call in self._calls:
            lonely = call.halves.finish()
            if lonely:
                call.pieces.append(lonely)
                call.held.append(lonely)
            call.settled = True
            self._show(call, out)
        return out

    def commit(self) -> list[ToolCallCommitted]:
        """Every call as it was written, after `settle`; arguments that are empty or `null` are `{}`."""
        return [
            ToolCallCommitted(
                call.key,
                call.name,
                "{}" if call.arguments.strip() in ("", "null") else call.arguments,
                call.call_id,
                call.opaque or None,
            )
            for call in self._calls
        ]

    # --- one fragment ---------------------------------------------------------------------------------------------

    def _fragment(self, fragment: JsonObject, touched: set[str], out: list[ToolCallDelta]) -> None:
        function = fragment.get("function")
        said = cast("JsonObject", function) if isinstance(function, dict) else fragment
        name = _string(said.get("name"))
        arguments = argument_text(said.get("arguments"))
        call_id = _string(fragment.get("id"))
        index = _index(fragment.get("index"))
        call = self._at_index.get(index) if index is not None and not name and not call_id else None
        if call is not None and call.flowing and len(fragment) <= 2:  # the hot case: more of the same
            self._last = call
            if text := call.halves.feed(arguments):
                call.pieces.append(text)
                out.append(ToolCallDelta(call.key, call.name, text, call.call_id))
            return
        call = self._owner(index, call_id, name, arguments, touched)
        if call is None:
            if not (call_id or name or arguments):
                return
            call = self._open(index, call_id)
        touched.add(call.key)
        self._last = call
        call.call_id = call.call_id or call_id
        if name and not call.settled:
            call.name = self._name(call.name, name)
        if arguments and not (name and (call_id or index is not None) and _repeats(call, arguments)):
            text = call.halves.feed(arguments)
            if text:
                call.pieces.append(text)
                call.held.append(text)
        if not _KNOWN.issuperset(fragment):
            extra = {key: value for key, value in fragment.items() if key not in _KNOWN and value is not None}
            call.opaque.update(clean(extra))
        if call.name and (call.has_arguments or self._is_settled(call.name)):
            call.settled = True
        self._show(call, out)

    def _open(self, index: int | None, call_id: str) -> _Call:
        call = _Call(str(len(self._calls)), call_id)
        self._calls.append(call)
        if index is not None:
            self._at_index[index] = call
        return call

    def _owner(self, index: int | None, call_id: str, name: str, arguments: str, touched: set[str]) -> _Call | None:
        """The call that the fragment belongs to; None if it opens a new one."""
        if index is None:
            return self._owner_without_index(call_id, name, arguments, touched)
        call = self._at_index.get(index)
        if call is None:
            return None if name or not call_id else self._with_id(call_id)
        if call_id and call.call_id and call_id != call.call_id:
            known = self._with_id(call_id)
            return None if known is None or self._begins_anew(known, name, arguments) else known
        if _repeats(call, arguments):
            return call
        return None if self._begins_anew(call, name, arguments) else call

    def _owner_without_index(self, call_id: str, name: str, arguments: str, touched: set[str]) -> _Call | None:
        call = self._with_id(call_id) if call_id else self._last
        if call is None:
            return None
        if call_id and _repeats(call, arguments):
            return call
        if name and call.key in touched:  # a chunk names each of its calls once
            return None
        return None if self._begins_anew(call, name, arguments) else call

    def _with_id(self, call_id: str) -> _Call | None:
        return next((call for call in reversed(self._calls) if call.call_id == call_id), None)

    def _begins_anew(self, call: _Call, name: str, arguments: str) -> bool:
        """Whether the fragment cannot belong to this call, although it stands at its place."""
        if not name or not call.name:
            return False
        if not call.has_arguments:
            both = call.name in self._declared and name in self._declared
            return both and not name.startswith(call.name) and not self._may_be(call.name + name)
        if name != call.name:
            return True
        return arguments.lstrip().startswith("{") and _is_whole(call.arguments)

    # --- names ----------------------------------------------------------------------------------------------------

    def _name(self, name: str, piece: str) -> str:
        if not name:
            return piece
        joined = name + piece
        if self._may_be(joined):
            return joined
        return piece if piece == name or (piece.startswith(name) and self._may_be(piece)) else joined

    def _may_be(self, name: str) -> bool:
        return any(declared.startswith(name) for declared in self._declared)

    def _is_settled(self, name: str) -> bool:
        """Whether the name is a declared one and can grow into no other."""
        return name in self._declared and not any(other != name and other.startswith(name) for other in self._declared)

    # --- what may be shown ----------------------------------------------------------------------------------------

    def _show(self, call: _Call, out: list[ToolCallDelta]) -> None:
        if not call.settled:
            return
        text = "".join(call.held)
        if not call.flowing and "null".startswith(text.strip()):
            text = ""  # nothing and `null` stand for `{}`: they are not shown as if they were arguments
        elif text:
            call.flowing = True
            call.held.clear()
        if text or not call.shown:
            call.shown = True
            out.append(ToolCallDelta(call.key, call.name, text, call.call_id))


def _repeats(call: _Call, arguments: str) -> bool:
    return arguments.lstrip().startswith("{") and call.arguments == arguments and _is_whole(arguments)


def _is_whole(arguments: str) -> bool:
    if not arguments.rstrip().endswith("}"):
        return False
    try:
        return isinstance(orjson.loads(arguments), dict)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return False


def argument_text(value: Json) -> str:
    """Argument text as written; a server that sends the value itself gets its JSON text."""
    if isinstance(value, str):
        return value
    return "" if value is None else orjson.dumps(clean(value)).decode()


def _index(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _string(value: Json) -> str:
    return clean_text(value) if isinstance(value, str) else ""
