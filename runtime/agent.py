"""An agent: a name, a model, instructions and tools. A value; what performs it is the engine."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from runtime.budget import Budget
from runtime.canonical import Json, JsonObject
from runtime.history_policy import HistoryPolicy
from runtime.models import Model
from runtime.tools.toolbox import Tool, Toolbox


@dataclass(frozen=True)
class Agent:
    """An agent as its author writes it.

    `model` is a model object, or a string such as `openai:gpt-5-mini` or `scripted`; none means the server's default.
    `tools` are functions or `Tool`s. `model_options` go into every request (temperature, …). `budget` limits each run;
    rounds that it does not limit are limited by the server's setting. `history_policy` decides how much of the
    history a request shows (see `history_policy`). `deps` is handed to every tool as `ctx.deps`.
    """

    name: str
    model: Model | str | None = None
    instructions: str = ""
    tools: Sequence[Tool | Callable[..., Any]] = ()
    model_options: JsonObject = field(default_factory=dict[str, Json])
    description: str = ""
    budget: Budget = field(default_factory=Budget)
    history_policy: HistoryPolicy | None = None
    deps: object = None

    @cached_property
    def toolbox(self) -> Toolbox:
        """The tools by name. Raises ConfigurationError for names that clash or cannot be told to a model."""
        return Toolbox(self.tools)

    def snapshot(self, model: Model) -> JsonObject:
        """What a run freezes of the agent: everything that decides what the model is asked."""
        return {
            "name": self.name,
            "model": {"name": model.name, "provider": model.provider, "dialect": model.dialect.name},
            "model_options": self.model_options,
            "instructions": self.instructions,
            "tools": [
                {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
                for spec in self.toolbox.specs()
            ],
        }
