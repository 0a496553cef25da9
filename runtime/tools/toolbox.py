"""Tools as an agent declares them: a function with a name, words and a schema, and the box that holds them.

Pure: declaring and validating only. Whether a call may run is the gate's business, running it is `execute`'s.
"""

from __future__ import annotations

import inspect
import math
import re
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from runtime.canonical import JsonObject
from runtime.errors import AguiBridgeError, CallerError, ConfigurationError
from runtime.items import ToolSpec
from runtime.tools.context import ToolContext
from runtime.tools.signature import Signature, Unfit, read_signature, read_words

if TYPE_CHECKING:
    from runtime.agent import Agent
    from runtime.authority import Principal

Function: TypeAlias = Callable[..., object]
ApprovalPolicy: TypeAlias = Callable[[JsonObject, ToolContext], bool | Awaitable[bool]]
"""Says of a call, by its arguments as JSON, whether it needs an approval."""
ApproverPolicy: TypeAlias = "Callable[[Principal, str], bool]"
"""Says whether this principal may answer what a call asks, in a run that the principal of that id asked for."""

NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
"""What every provider accepts as a tool's name."""


NOT_IN_A_NAME = re.compile(r"[^a-zA-Z0-9_-]")


class ToolError(AguiBridgeError):
    """The tool could not do what it was asked to. Raise it in a tool: the model reads exactly its message."""

    code = "tool_error"


class Declined(ToolError):
    """Declined by the user."""

    code = "declined"


class ReplayMismatch(ToolError):
    """The call was to be gone on with, and asked for something else than when it was suspended."""

    code = "replay_mismatch"


class InvalidArguments(CallerError):
    """The arguments do not fit the tool's parameters. The message is written for the model."""

    code = "invalid_arguments"
    status = 422


@dataclass(frozen=True, slots=True, eq=False)
class Tool:
    """A function that a model may call. Made by `tool`; calling it calls the function."""

    spec: ToolSpec
    function: Function
    signature: Signature
    is_async: bool
    parallel: bool = False
    """Whether it may run beside other calls of the same round."""
    timeout_s: float | None = None
    idempotent: bool = False
    """Whether a call may be executed again when it is unknown whether it ran."""
    approval: bool | ApprovalPolicy = False
    """Whether somebody outside has to say first that a call may run."""
    approvers: ApproverPolicy | None = None
    """Who may say so, and answer what the tool asks; without, whoever may use the session."""
    delegates_to: Agent | None = None
    """The agent to which it hands its calls on."""
    predicts: Mapping[str, str] = field(default_factory=dict[str, str])
    """Which argument each of these members of the state will be."""
    streams: bool = False
    """Whether the function is a generator: what it yields last is the output, and what it yields before is progress."""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.function(*args, **kwargs)

    @property
    def name(self) -> str:
        """The name by which the model calls it."""
        return self.spec.name

    @property
    def wants_context(self) -> bool:
        """Whether the function asks for the `ToolContext`."""
        return self.signature.context_parameter is not None

    def validate(self, arguments: JsonObject) -> dict[str, object]:
        """The function's keyword arguments, defaults included, for a call's arguments. Raises InvalidArguments."""
        try:
            return self.signature.bind(arguments)
        except Unfit as error:
            problems = "\n".join(f"- {problem}" for problem in error.problems)
            raise InvalidArguments(f"The arguments of {self.name} do not fit its parameters:\n{problems}") from error

    def keywords(self, arguments: dict[str, object], context: ToolContext) -> dict[str, object]:
        """What to call the function with: validated arguments, and the context if it asks for one."""
        if self.signature.context_parameter is None:
            return arguments
        return {**arguments, self.signature.context_parameter: context}


@overload
def tool(function: Function, /) -> Tool: ...
@overload
def tool(
    *,
    name: str | None = None,
    description: str | None = None,
    parallel: bool = False,
    timeout_s: float | None = None,
    idempotent: bool = False,
    approval: bool | ApprovalPolicy = False,
    approvers: ApproverPolicy | None = None,
    delegates_to: Agent | None = None,
    predict_state: Mapping[str, str] | None = None,
) -> Callable[[Function], Tool]: ...
def tool(
    function: Function | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    parallel: bool = False,
    timeout_s: float | None = None,
    idempotent: bool = False,
    approval: bool | ApprovalPolicy = False,
    approvers: ApproverPolicy | None = None,
    delegates_to: Agent | None = None,
    predict_state: Mapping[str, str] | None = None,
) -> Tool | Callable[[Function], Tool]:
    """Make a tool of a function, sync or async, or of a generator: `@tool` or `@tool(name=…, …)`.

    The name is the function's, the description the first paragraph of its docstring, the schema that of its type
    hints, with descriptions from `Field(description=…)` or the docstring's `Args`. A parameter annotated
    `ToolContext` receives the context. With `approval` (or where that policy says so) a call runs only when somebody
    outside has said that it may; `approvers` says who may answer (see `interrupts`). A tool that hands its calls on
    with `ctx.delegate` may say to which agent (`delegates_to`), so that capabilities name it. `predict_state` says
    which members of the state will be which arguments: a page may show them while the model still writes the call.
    Raises ConfigurationError for a function that a model cannot call.
    """
    if timeout_s is not None and not 0 < timeout_s < math.inf:
        raise ConfigurationError(f"timeout_s is a number of seconds greater than 0, not {timeout_s}.")

    def declare(function: Function) -> Tool:
        _require_function(function)
        words = read_words(function)
        signature = read_signature(function, words)
        return Tool(
            spec=ToolSpec(
                name=function.__name__ if name is None else name,
                description=words.summary if description is None else description,
                parameters=signature.parameters,
            ),
            function=function,
            signature=signature,
            is_async=inspect.iscoroutinefunction(function) or inspect.isasyncgenfunction(function),
            parallel=parallel,
            timeout_s=timeout_s,
            idempotent=idempotent,
            approval=approval,
            approvers=approvers,
            delegates_to=delegates_to,
            predicts=_predictions(predict_state or {}, signature),
            streams=inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function),
        )

    return declare if function is None else declare(function)


def _require_function(function: Function) -> None:
    """Other callables are refused: a partial, for one, would show the model the values that it binds."""
    if not (inspect.isfunction(function) or inspect.ismethod(function)):
        raise ConfigurationError(f"A tool is made of a function, not of {function!r}; wrap it in one.")


def _predictions(given: Mapping[str, str], signature: Signature) -> dict[str, str]:
    known: JsonObject = signature.parameters.get("properties", {})
    if unknown := [argument for argument in given.values() if argument not in known]:
        raise ConfigurationError(f"predict_state names the argument {unknown[0]!r}, which the tool does not have.")
    return dict(given)


class Toolbox:
    """The tools of an agent by name, in the order in which they were given."""

    __slots__ = ("_tools",)

    def __init__(self, tools: Iterable[Tool | Function] = ()):
        """Plain functions become tools. Raises ConfigurationError for a bad name or one that is given twice."""
        self._tools: dict[str, Tool] = {}
        for entry in tools:
            declared = entry if isinstance(entry, Tool) else tool(entry)
            if not NAME.fullmatch(declared.name):
                raise ConfigurationError(
                    f"{declared.name!r} cannot be a tool's name: letters, digits, _ and -, 1 to 64 of them."
                )
            if declared.name in self._tools:
                raise ConfigurationError(f"Two tools are named {declared.name}; give one of them another name.")
            self._tools[declared.name] = declared

    @property
    def names(self) -> tuple[str, ...]:
        """The tools' names."""
        return tuple(self._tools)

    def __iter__(self) -> Iterator[Tool]:
        return iter(self._tools.values())

    def get(self, name: str) -> Tool | None:
        """The tool of this name."""
        return self._tools.get(name)

    def specs(self) -> list[ToolSpec]:
        """What a model is told of the tools."""
        return [declared.spec for declared in self._tools.values()]
