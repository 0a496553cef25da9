"""A view of the shared state that a tool may change: what it changes is copied, the rest stays that of the thread.

Pure. A view is a dict or a list, so that tools, JSON encoders and `isinstance` take it for one. Each object and list of
the state becomes a view when it is reached, by a copy of its own entries and of nothing below them; whatever is handed
out of it is a view as well, so that nothing can be changed that others read. What became of the state is told by
`settled`: parts that nobody changed are the very ones of before, which is how the difference is found without looking
into them. A large state costs what is touched of it.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, ValuesView
from typing import Any, SupportsIndex, cast, overload

from runtime.canonical import Json, JsonObject, clean, clean_text

_MISSING: Any = object()


def view(value: Json) -> Json:
    """The value as a tool may change it; what is no container is itself."""
    if value.__class__ is dict:
        return StateObject(value)
    if value.__class__ is list:
        return StateList(value)
    return value


def settled(value: Json) -> Json:
    """What became of a view, or of whatever was put in its place, as clean JSON.

    Raises RecursionError for a value that stands within itself, and what a foreign `str()` raises.
    """
    if _is_view(value):
        return value.settled()
    if value.__class__ is list and any(map(_is_view, value)):  # most likely a choice of what was there
        return [settled(item) for item in value]
    return clean(value)


class StateObject(dict[str, Any]):
    """An object of the state."""

    __slots__ = ("_origin", "_shared")

    def __init__(self, origin: JsonObject):
        super().__init__(origin)
        self._origin = origin
        self._shared = _containers(origin.values())

    def settled(self) -> JsonObject:
        """The object as it is now: the one of before, if nothing in it was changed."""
        origin, now = self._origin, dict[str, Any]()
        for key, item in cast("Iterable[tuple[Any, Any]]", dict[str, Any].items(self)):
            name: str = key if key.__class__ is str and key in origin else clean_text(str(key))
            now[name] = _settled(item, origin.get(name, _MISSING), self._shared)
        same = len(now) == len(origin) and all(origin.get(key, _MISSING) is item for key, item in now.items())
        return origin if same else now

    def __getitem__(self, key: str) -> Any:
        item = super().__getitem__(key)
        if id(item) in self._shared:
            item = view(item)
            super().__setitem__(key, item)
        return item

    def __iter__(self) -> Iterator[str]:  # with one of its own, `dict(...)` and `{**...}` ask for each entry
        return super().__iter__()

    def get(self, key: str, default: Any = None) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        return self[key] if key in self else default  # noqa: SIM401 - it is what is being defined

    def setdefault(self, key: str, default: Any = None) -> Any:
        if key not in self:
            self[key] = default
        return self[key]

    def pop(self, key: str, default: Any = _MISSING) -> Any:  # pyright: ignore[reportIncompatibleMethodOverride]
        if key not in self and default is not _MISSING:
            return default
        item = self[key]
        del self[key]
        return item

    def popitem(self) -> tuple[str, Any]:
        keys = list(self)
        if not keys:
            raise KeyError("there is nothing in it")
        return keys[-1], self.pop(keys[-1])

    def values(self) -> ValuesView[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ValuesView(self)

    def items(self) -> ItemsView[str, Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return ItemsView(self)

    def copy(self) -> dict[str, Any]:
        return {key: self[key] for key in self}

    def __or__(self, other: Any) -> Any:
        return self.copy() | other

    def __ror__(self, other: Any) -> Any:
        return other | self.copy()

    def __copy__(self) -> dict[str, Any]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> JsonObject:
        return cast("JsonObject", clean(self))

    def __reduce__(self) -> tuple[type[dict[str, Any]], tuple[JsonObject]]:
        return dict, (cast("JsonObject", clean(self)),)


class StateList(list[Any]):
    """A list of the state."""

    __slots__ = ("_origin", "_shared")

    def __init__(self, origin: list[Any]):
        super().__init__(origin)
        self._origin = origin
        self._shared = _containers(origin)

    def settled(self) -> list[Json]:
        """The list as it is now: the one of before, if nothing in it was changed."""
        origin = self._origin
        own = enumerate(cast("Iterable[Any]", list[Any].__iter__(self)))
        now = [_settled(item, _at(origin, index), self._shared) for index, item in own]
        same = len(now) == len(origin) and all(before is item for before, item in zip(origin, now, strict=True))
        return origin if same else now

    @overload
    def __getitem__(self, index: SupportsIndex, /) -> Any: ...
    @overload
    def __getitem__(self, index: slice, /) -> list[Any]: ...
    def __getitem__(self, index: SupportsIndex | slice, /) -> Any:
        if isinstance(index, slice):
            return [self[place] for place in range(*index.indices(len(self)))]
        item = super().__getitem__(index)
        if id(item) in self._shared:
            item = view(item)
            super().__setitem__(index, item)
        return item

    def __setitem__(self, index: Any, value: Any, /) -> None:  # pyright: ignore[reportIncompatibleMethodOverride]
        # a slice takes the entries of another view as they lie there, past the view
        super().__setitem__(index, [*value] if isinstance(index, slice) else value)

    def __iter__(self) -> Iterator[Any]:
        place = 0
        while place < len(self):
            yield self[place]
            place += 1

    def __reversed__(self) -> Iterator[Any]:
        return (self[place] for place in range(len(self) - 1, -1, -1))

    def pop(self, index: SupportsIndex = -1, /) -> Any:
        item = self[index]
        super().pop(index)
        return item

    def copy(self) -> list[Any]:
        return list(self)

    def __add__(self, other: Iterable[Any]) -> list[Any]:  # pyright: ignore[reportIncompatibleMethodOverride]
        return [*self, *other]

    def __radd__(self, other: Iterable[Any]) -> list[Any]:
        return [*other, *self]

    def __mul__(self, times: SupportsIndex) -> list[Any]:
        return list(self) * times

    def __rmul__(self, times: SupportsIndex) -> list[Any]:
        return list(self) * times

    def __copy__(self) -> list[Any]:
        return self.copy()

    def __deepcopy__(self, memo: dict[int, Any]) -> list[Json]:
        return cast("list[Json]", clean(self))

    def __reduce__(self) -> tuple[type[list[Any]], tuple[list[Json]]]:
        return list, (cast("list[Json]", clean(self)),)


def _containers(items: Iterable[Any]) -> frozenset[int]:
    """The objects and lists among these, by identity: they are the thread's, and never handed out as they are."""
    return frozenset([id(item) for item in items if item.__class__ is dict or item.__class__ is list])


def _settled(item: Any, before: Any, shared: frozenset[int]) -> Json:
    """An entry as it is now. One that was in its place before, or is the thread's, is clean already."""
    if item is before or id(item) in shared:
        return item
    return settled(item)


def _is_view(item: Any) -> bool:
    return isinstance(item, StateObject | StateList)


def _at(items: list[Any], index: int) -> Any:
    return items[index] if index < len(items) else _MISSING
