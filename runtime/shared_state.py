"""The shared state in the hands of foreign code: opened when it is first looked at, settled when it is to be told.

Pure.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from runtime.canonical import Json
from runtime.state_delta import carried
from runtime.state_type import StateMisfit, StateType
from runtime.state_view import settled, view

_UNREAD: Any = object()


class SharedState:
    """The state `before`, as a view of it or as a value of its type."""

    __slots__ = ("_basis", "_before", "_kind", "_value")

    def __init__(self, before: Json, kind: StateType | None) -> None:
        self._before = before
        self._kind = kind
        self._basis: Json = None
        self._value: Any = _UNREAD

    @property
    def value(self) -> Any:
        """The state, which may be changed. Raises StateMisfit if it does not fit its type."""
        if self._value is _UNREAD:
            self._value = self._opened()
        return self._value

    @value.setter
    def value(self, value: Any) -> None:
        if self._value is _UNREAD and self._kind is not None:
            with suppress(StateMisfit):
                self._opened()
        self._value = value

    def _opened(self) -> Any:
        if self._kind is None:
            return view(self._before)
        value = self._kind.read(self._before)
        self._basis = self._kind.write(value)
        return value

    def settled(self) -> Json:
        """What became of it by now: the very one of before if nothing was changed.

        Raises StateMisfit, RecursionError, and what foreign code raises in telling its values.
        """
        if self._value is _UNREAD:
            return self._before
        if self._kind is None:
            return settled(self._value)
        return carried(self._before, self._basis, self._kind.written(self._value))
