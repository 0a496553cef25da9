"""What clients of other versions are told: one pure module for each, behind the projection.

The projection speaks AG-UI 1.0. A client that says which version it speaks gets that, whatever it says: a newer minor
reads 1.0, and what cannot be read is taken for newer. One that says nothing is older than the saying of it.

A shape changes how something is told and never what happened, in which order, or under which id.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias

from agui_bridge.wire.events import AguiEvent

Shape: TypeAlias = Callable[[Sequence[AguiEvent]], Sequence[AguiEvent]]
"""From the events that one fact becomes in 1.0 to those that this client is told, in order."""


def current(events: Sequence[AguiEvent]) -> Sequence[AguiEvent]:
    """The shape of AG-UI 1.0: as the projection tells it."""
    return events
