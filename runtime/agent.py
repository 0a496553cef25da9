"""An agent: a name, a model, instructions and tools. A value; what performs it is the engine."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias, cast

from runtime.budget import Budget
from runtime.canonical import Json, JsonObject
from runtime.errors import ConfigurationError
from runtime.executors import Executor
from runtime.executors.function import AgentFunction, FunctionExecutor
from runtime.history_policy import HistoryPolicy
from runtime.hooks import Hook, hooks_by_point
from runtime.items import ToolSpec
from runtime.models import Model, Offering
from runtime.output import FINAL_TOOL, MODES, TOOL, Output, output_for
from runtime.output_type import OutputType, read_output_type
from runtime.state_type import StateType, read_state_type
from runtime.timeouts import Timeouts
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import NOT_IN_A_NAME, Tool, Toolbox, tool

STANDARD = "standard"
LEGACY = "legacy"
BOTH = "both"
INTERRUPT_STYLES = (STANDARD, LEGACY, BOTH)

ExtractText: TypeAlias = "Callable[[str, bytes], str | Awaitable[str | None] | None]"
"""From a media type and bytes to the text in them; None: no text is known."""


@dataclass(frozen=True)
class Agent:
    """An agent as its author writes it.

    `model` is a model object, or a string such as `openai:gpt-5-mini` or `scripted`; none means the server's default.
    `tools` are functions, `Tool`s, or agents (see `as_tool`). `model_options` go into every request (temperature, …).
    `budget` limits each run; rounds that it does not limit are limited by the server's setting. `history_policy`
    decides how much of the history a request shows (see `history_policy`). `deps` is handed to every tool as
    `ctx.deps`.

    With an `output_type` (a pydantic model, a dataclass, whatever `pydantic.TypeAdapter` takes) a run's answer is a
    value of that type. `output_mode` says how a model is asked for it: `native` (the provider is given the schema),
    `tool` (the model calls a final tool), none: as its model is best asked.

    With a `state_type` (a pydantic model, a dataclass, a TypedDict) the state that a client sends has to fit it, and
    `ctx.state` in tools is a value of it.

    `input_media` says which kinds of media its model takes (`image`, `audio`, `video`, `document`), if the model does
    not know it itself; none at all is a text-only model. What it does not take is left out, but for documents that are
    text. `extract_text(media_type, data)` gives the text of others, or None; it may be async.

    `hooks` are asked at four points of each run (see `hooks`), in their order. `timeouts` are those of its model calls;
    without, the server's settings hold. Those for connecting and silence belong to a model that is named; one that was
    made has its own.

    An `executor` performs its runs in the place of a model (see `executors`): an async function of one `RunContext`, or
    whatever keeps the port. It has no use for a model, for instructions or for an output type.

    `interrupt_style` says how a page is asked: `standard` (the outcome of the run), `legacy` (as pages made for
    LangGraph expect it) or `both`.
    """

    def __post_init__(self) -> None:
        if self.interrupt_style not in INTERRUPT_STYLES:
            known = ", ".join(INTERRUPT_STYLES)
            raise ConfigurationError(f"interrupt_style is one of {known}, not {self.interrupt_style!r}.")

    name: str
    model: Model | str | None = None
    instructions: str = ""
    tools: Sequence[Tool | Agent | Callable[..., Any]] = ()
    model_options: JsonObject = field(default_factory=dict[str, Json])
    description: str = ""
    budget: Budget = field(default_factory=Budget)
    history_policy: HistoryPolicy | None = None
    deps: object = None
    hooks: Sequence[Hook] = ()
    timeouts: Timeouts | None = None
    output_type: Any = None
    output_mode: str | None = None
    state_type: Any = None
    input_media: Collection[str] | None = None
    extract_text: ExtractText | None = None
    executor: Executor | AgentFunction | None = None
    interrupt_style: str = STANDARD

    @cached_property
    def performer(self) -> Executor | None:
        """What performs its runs, if no model does. Raises ConfigurationError."""
        given = self.executor
        if given is None:
            return None
        if self.model is not None or self.instructions or self.output_type is not None:
            unfit = "a model, instructions and an output type have no place there"
            raise ConfigurationError(f"The agent {self.name!r} has an executor: {unfit}.")
        return FunctionExecutor(given) if inspect.isroutine(given) else cast("Executor", given)

    @cached_property
    def toolbox(self) -> Toolbox:
        """The tools by name. Raises ConfigurationError for names that clash or cannot be told to a model."""
        return Toolbox(each.as_tool() if isinstance(each, Agent) else each for each in self.tools)

    def as_tool(self, *, name: str | None = None, description: str | None = None, parallel: bool = True) -> Tool:
        """A tool by which another agent hands work to this one, each time to a child run of its own.

        It is named and described as the agent is, if nothing else is said; what no name of a tool may have in it
        becomes `_`. Raises ConfigurationError.
        """

        async def delegate(ctx: ToolContext, prompt: str) -> Json:
            """Hand a task to another agent.

            Args:
                prompt: The task, with all that the agent has to know: it sees nothing of this conversation.
            """
            return await ctx.delegate(self, prompt)

        return tool(
            name=NOT_IN_A_NAME.sub("_", self.name) if name is None else name,
            description=description or self.description or f"Hand a task to the agent {self.name}.",
            parallel=parallel,
            delegates_to=self,
        )(delegate)

    @cached_property
    def hooks_at(self) -> dict[str, tuple[Hook, ...]]:
        """The hooks of each point. Raises ConfigurationError for what is no hook."""
        return hooks_by_point(self.hooks)

    def output(self, model: Model) -> Output | None:
        """The value that a run on this model owes, None if its answer is text. Raises ConfigurationError."""
        if self.output_type is None:
            return None
        if self.output_mode not in (None, *MODES):
            raise ConfigurationError(f"output_mode is one of {', '.join(MODES)}, not {self.output_mode!r}.")
        offered = model.output_mode if isinstance(model, Offering) else TOOL
        asked = output_for(self._output_type, self.output_mode, offered, model.dialect.name)
        if asked.mode == TOOL and FINAL_TOOL in self.toolbox.names:
            raise ConfigurationError(f"{FINAL_TOOL} is the tool that gives the output; give yours another name.")
        return asked

    def specs(self, model: Model) -> list[ToolSpec]:
        """What this model is told of the agent's tools, the final one among them if it is asked for a value so."""
        output = self.output(model)
        return [*self.toolbox.specs(), *(output.tools() if output is not None else [])]

    @cached_property
    def shared_state(self) -> StateType | None:
        """The type of the shared state, if the agent has one. Raises ConfigurationError."""
        return None if self.state_type is None else read_state_type(self.state_type)

    @cached_property
    def _output_type(self) -> OutputType:
        return read_output_type(self.output_type)

    def snapshot(self, model: Model) -> JsonObject:
        """What a run freezes of the agent: everything that decides what the model is asked.

        Raises ConfigurationError for an agent that cannot be performed.
        """
        output = self.output(model)
        performer = self.performer
        hooks = [{"point": hook.point, "name": hook.name} for each in self.hooks_at.values() for hook in each]
        return {
            "name": self.name,
            "model": {"name": model.name, "provider": model.provider, "dialect": model.dialect.name},
            "model_options": self.model_options,
            "instructions": self.instructions,
            "tools": [
                {"name": spec.name, "description": spec.description, "parameters": spec.parameters}
                for spec in self.toolbox.specs()
            ],
            **({"executor": performer.kind} if performer is not None else {}),
            **({"hooks": hooks} if hooks else {}),
            **({"output": output.as_payload()} if output is not None else {}),
            **({"state": state.schema} if (state := self.shared_state) is not None else {}),
        }
