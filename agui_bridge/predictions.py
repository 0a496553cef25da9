"""Predictions: what a page shows of the state while the model still writes a call, and what becomes of it.

A page takes the arguments for what the state will be (CopilotKit's `PredictState`). It works that into the state that
it holds, so whatever the call does not make true is taken back: with the whole state, because the page's differs.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from runtime.canonical import JsonObject

PREDICT_STATE = "PredictState"
"""The name of the CUSTOM event, as pages know it."""


class Predictions:
    """The predictions of one run for one reader."""

    def __init__(self) -> None:
        self._open: dict[str, set[str]] = {}
        """By call, the paths of the members that the page shows as the call will make them."""

    def begin(self, call_id: str, tool_name: str, predicts: Mapping[str, str]) -> list[JsonObject]:
        """A call begins whose arguments will be members of the state; the value of `PREDICT_STATE`."""
        self._open[call_id] = {f"/{key.replace('~', '~0').replace('/', '~1')}" for key in predicts}
        return [{"state_key": key, "tool": tool_name, "tool_argument": name} for key, name in predicts.items()]

    def come_true(self, delta: Sequence[JsonObject]) -> None:
        """The page is told of a change of the state: members that it sets as a whole are what they should be."""
        for paths in self._open.values():
            paths.difference_update(operation["path"] for operation in delta)

    def replaced(self, anew: Collection[str] = ()) -> None:
        """The page is told the whole state, and then what these calls will make of it, anew."""
        self._open = {call: paths for call, paths in self._open.items() if call in anew}

    def end(self, call_id: str) -> bool:
        """The call has its output: whether the page shows something of it that did not come true."""
        return bool(self._open.pop(call_id, None))

    def end_all(self) -> bool:
        """No call goes on: whether the page shows something that did not come true."""
        false = any(self._open.values())
        self._open.clear()
        return false
