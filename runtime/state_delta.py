"""The difference between two states as RFC 6902 operations, and back.

Pure. States are clean JSON (see `canonical.clean`). Two values are the same only if their canonical texts are: true is
not 1, 1 is not 1.0, 0.0 is not -0.0, and null is not a missing member. So a state that was folded from deltas has the
digest of the state that they were made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import copysign
from typing import cast

import jsonpatch
import orjson

from runtime.canonical import Json, JsonObject
from runtime.errors import AguiBridgeError
from runtime.events import StateDelta, StateSnapshot
from runtime.list_matching import stayed

_MISSING: Json = object()
"""What a member that is not there is compared as."""


class PatchConflict(AguiBridgeError):
    """The operations do not apply to this state."""

    code = "patch_conflict"


def diff(before: Json, after: Json) -> list[JsonObject]:
    """The operations that turn `before` into `after`, none when they are the same; their values are shared with it.

    Only `add`, `remove` and `replace` are used; applied in order, every path exists when its turn comes. Parts that
    both states share as one object are not looked into.
    """
    operations: list[JsonObject] = []
    _walk(before, after, "", operations)
    return operations


def apply(document: Json, operations: Sequence[Mapping[str, Json]], *, in_place: bool = False) -> Json:
    """The state after the operations. Raises PatchConflict when one does not apply.

    What they change is copied, the rest is shared with the document, which stays as it is. With `in_place` it is
    changed itself: use the result, because a new root replaces it, and discard it after PatchConflict, because earlier
    operations stay.
    """
    copied: dict[int, Json] = {}
    try:
        for operation in operations:
            if not in_place:
                for member in ("from", "path"):
                    document = _with_own_path(document, operation.get(member), copied)
            document = jsonpatch.apply_patch(document, [operation], in_place=True)
        return document
    except (jsonpatch.JsonPatchException, jsonpatch.JsonPointerException) as error:
        raise PatchConflict(details={"reason": str(error)}) from error


def change(before: Json, after: Json) -> StateSnapshot | StateDelta | None:
    """The fact that an agent made `after` of `before`, in whichever form is the shorter JSON; None for no change.

    What the fact holds is shared with `after`: change neither afterwards.
    """
    operations = diff(before, after)
    if not operations:
        return None
    size = len(orjson.dumps(operations))
    if not _has_json_of(size, after) and size > len(orjson.dumps(after)):
        return StateSnapshot(snapshot=after, origin="agent")
    return StateDelta(delta=operations)


def merge(before: Json, theirs: Json, mine: Json) -> Json:
    """The state with both changes of `before` in it; what both appended to a list stands theirs first.

    Raises PatchConflict when they want different things of the same part. Nothing is changed; parts are shared.
    """
    if _same(theirs, before):
        return mine
    if _same(mine, before):
        return theirs
    kinds = {theirs.__class__, mine.__class__}
    if kinds == {dict}:
        return _merge_objects(cast("JsonObject", before) if isinstance(before, dict) else {}, theirs, mine)
    if kinds == {list}:
        return _merge_lists(cast("list[Json]", before) if isinstance(before, list) else [], theirs, mine)
    if _same(theirs, mine):
        return mine
    raise PatchConflict(details={"reason": "both changes are of the same value"})


def changes(now: Json, before: Json, after: Json) -> list[StateSnapshot | StateDelta]:
    """The fact, if there is one, that carries over what an agent made of `before` to the state as it is now.

    Raises PatchConflict, RecursionError.
    """
    fact = None if after is before else change(now, merge(before, now, after))
    return [] if fact is None else [fact]


def carried(before: Json, basis: Json, after: Json) -> Json:
    """What becomes of `before` if it is changed as `basis` was to become `after`.

    `basis` is `before` as a type reads it: members that the type does not know are missing in it, others it has added.
    Those stay as they are, unless the change is of them. Nothing is changed; parts are shared.
    """
    if _same(basis, after):
        return before
    if {before.__class__, basis.__class__, after.__class__} == {dict}:
        changed: JsonObject = {}
        for key in cast("JsonObject", before | after):
            if key in after:
                value = carried(before.get(key, _MISSING), basis.get(key, _MISSING), after[key])
            else:
                value = _MISSING if key in basis else before[key]
            if value is not _MISSING:
                changed[key] = value
        return changed
    if {before.__class__, basis.__class__, after.__class__} == {list} and len(before) == len(basis):
        return _carried_entries(before, basis, after)
    return after


def _carried_entries(before: list[Json], basis: list[Json], after: list[Json]) -> list[Json]:
    if len(basis) == len(after):
        return [carried(*entries) for entries in zip(before, basis, after, strict=True)]
    changed = list(after)
    for place, place_now in stayed(basis, after)[0]:
        changed[place_now] = before[place]
    return changed


def _with_own_path(document: Json, path: Json, copied: dict[int, Json]) -> Json:
    """The document with the containers on the way to `path` copied, so that they may be changed; those in `copied` are
    already. A path that leads nowhere is left to whoever applies it."""
    tokens: list[str] = path.split("/")[1:] if isinstance(path, str) else []
    if not tokens:
        return document
    root = parent = _own(document, copied)
    for token in tokens[:-1]:
        key = _key_in(parent, token)
        if key is None:
            break
        parent[key] = parent = _own(parent[key], copied)
    return root


def _own(value: Json, copied: dict[int, Json]) -> Json:
    if value.__class__ not in (dict, list) or id(value) in copied:
        return value
    own: Json = value.copy()
    copied[id(own)] = own
    return own


def _key_in(container: Json, token: str) -> str | int | None:
    """The key or index that a token of a path names, if it is there."""
    if isinstance(container, dict):
        name = token.replace("~1", "/").replace("~0", "~")
        return name if name in container else None
    if isinstance(container, list) and token.isascii() and token.isdigit():
        index = int(token)
        return index if index < len(cast("list[Json]", container)) else None
    return None


def _merge_objects(before: JsonObject, theirs: JsonObject, mine: JsonObject) -> JsonObject:
    merged: JsonObject = {}
    for key in theirs | mine:
        value = merge(before.get(key, _MISSING), theirs.get(key, _MISSING), mine.get(key, _MISSING))
        if value is not _MISSING:
            merged[key] = value
    return merged


def _merge_lists(before: list[Json], theirs: list[Json], mine: list[Json]) -> list[Json]:
    if len(before) == len(theirs) == len(mine):
        return [merge(*entries) for entries in zip(before, theirs, mine, strict=True)]
    start, end, theirs_new = _edit(before, theirs)
    my_start, my_end, mine_new = _edit(before, mine)
    if end <= my_start:
        return [*before[:start], *theirs_new, *before[end:my_start], *mine_new, *before[my_end:]]
    if my_end <= start:
        return [*before[:my_start], *mine_new, *before[my_end:start], *theirs_new, *before[end:]]
    if _same(theirs, mine):
        return mine
    raise PatchConflict(details={"reason": "both changes are of the same entries"})


def _edit(before: list[Json], after: list[Json]) -> tuple[int, int, list[Json]]:
    """Which entries of `before` (from, to) were replaced by what."""
    start, end = _common_ends(before, after)
    return start, len(before) - end, after[start : len(after) - end]


def _walk(before: Json, after: Json, path: str, operations: list[JsonObject]) -> None:
    if before is after:
        return
    kind = before.__class__
    if kind is after.__class__:
        if kind is dict:
            _walk_object(before, after, path, operations)
            return
        if kind is list:
            _walk_list(before, after, path, operations)
            return
        if _same(before, after):
            return
    operations.append({"op": "replace", "path": path, "value": after})


def _walk_object(before: JsonObject, after: JsonObject, path: str, operations: list[JsonObject]) -> None:
    for key, value in before.items():
        if key in after:
            if value is not after[key]:
                _walk(value, after[key], f"{path}/{_token(key)}", operations)
        else:
            operations.append({"op": "remove", "path": f"{path}/{_token(key)}"})
    for key, value in after.items():
        if key not in before:
            operations.append({"op": "add", "path": f"{path}/{_token(key)}", "value": value})


def _walk_list(before: list[Json], after: list[Json], path: str, operations: list[JsonObject]) -> None:
    start, end = _common_ends(before, after)
    until, until_now = len(before) - end, len(after) - end
    pairs, moved = _stayed(before[start:until], after[start:until_now])
    edits: list[JsonObject] = []
    for place, place_now in reversed([(-1, -1), *pairs]):  # from behind, so that what is before keeps its places
        first, first_now = start + place + 1, start + place_now + 1
        if first < until or first_now < until_now:
            common = min(until - first, until_now - first_now)
            for index in range(common):
                _walk(before[first + index], after[first_now + index], f"{path}/{first + index}", edits)
            for index in range(until - 1, first + common - 1, -1):
                edits.append({"op": "remove", "path": f"{path}/{index}"})
            for index in range(common, until_now - first_now):
                edits.append({"op": "add", "path": f"{path}/{first + index}", "value": after[first_now + index]})
        until, until_now = first - 1, first_now - 1
    if moved and _is_shorter_whole(edits, path, after):
        edits = [{"op": "replace", "path": path, "value": after}]
    operations += edits


def _stayed(before: list[Json], after: list[Json]) -> tuple[list[tuple[int, int]], bool]:
    """As `stayed`; two lists of one entry, and lists without, have none in common when their ends have not."""
    alone = not before or not after or len(before) == len(after) == 1
    return ([], False) if alone else stayed(before, after)


def _is_shorter_whole(operations: list[JsonObject], path: str, after: Json) -> bool:
    """Whether one operation with the whole value is shorter JSON than these."""
    size = len(orjson.dumps(operations))
    if _has_json_of(size, after):
        return False
    return size > len(orjson.dumps([{"op": "replace", "path": path, "value": after}]))


def _common_ends(before: list[Json], after: list[Json]) -> tuple[int, int]:
    """How many entries are the same at the beginning, and behind those at the end."""
    shorter = min(len(before), len(after))
    start = 0
    while start < shorter and _same(before[start], after[start]):
        start += 1
    end = 0
    while end < shorter - start and _same(before[-1 - end], after[-1 - end]):
        end += 1
    return start, end


def _same(before: Json, after: Json) -> bool:
    if before is after:
        return True
    kind = before.__class__
    if kind is not after.__class__:
        return False
    if kind is dict:
        return before.keys() == after.keys() and all(map(_same, before.values(), [after[key] for key in before]))
    if kind is list:
        return len(before) == len(after) and all(map(_same, before, after))
    if kind is float:
        return before == after and copysign(1.0, before) == copysign(1.0, after)
    return bool(before == after)


def _token(key: str) -> str:
    return key.replace("~", "~0").replace("/", "~1") if "~" in key or "/" in key else key


def _has_json_of(size: int, value: Json) -> bool:
    """Whether the JSON of `value` is surely `size` bytes or longer; looks no further into it than it must."""
    open_values: list[Json] = [value]
    while open_values and size > 0:
        item = open_values.pop()
        if isinstance(item, dict):
            members = cast("JsonObject", item)
            size -= 1
            for name, member in members.items():
                size -= len(name) + 4
                open_values.append(member)
                if size <= 0:
                    break
        elif isinstance(item, list):
            elements = cast("list[Json]", item)
            size -= 1 + len(elements)
            open_values.extend(elements[: max(size, 0)])
        else:
            size -= len(item) + 2 if isinstance(item, str) else 1
    return size <= 0
