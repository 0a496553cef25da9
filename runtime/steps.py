"""Steps: what the sampling loop asks its engine to do next. Pure values."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from runtime import events as e
from runtime.canonical import Json
from runtime.errors import AguiBridgeError


@dataclass(frozen=True, slots=True)
class CallModel:
    """Ask the model; `round` counts from 1."""

    round: int


@dataclass(frozen=True, slots=True)
class RunTools:
    """Judge and execute these committed calls, then say what came of each."""

    calls: list[e.ToolCallCommitted]
    affordable: int | None = None
    """How many of them the budget still allows, in order; None: all."""


@dataclass(frozen=True, slots=True)
class Succeed:
    """The run is done. `pending` are the frontend calls that wait for the client, `result` is the run's value."""

    pending: list[str]
    result: Json = None


@dataclass(frozen=True, slots=True)
class Fail:
    """The run failed."""

    error: AguiBridgeError


@dataclass(frozen=True, slots=True)
class Stop:
    """A budget is used up: the run is stopped on purpose."""

    reason: str


@dataclass(frozen=True, slots=True)
class Suspend:
    """Calls wait for somebody outside. `raised` is what they ask now; what was asked before may be open, too."""

    raised: list[e.InterruptRaised]


Step: TypeAlias = CallModel | RunTools | Succeed | Fail | Stop | Suspend
