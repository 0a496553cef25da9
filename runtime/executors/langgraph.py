"""An executor that is a LangGraph graph: any `CompiledStateGraph`, with its own checkpointer in charge of its memory.

The graph keeps its state under the id of our thread. What of the history is new to it is sent as messages under their
ids; where its memory is gone, or never was, it is given the history. Which checkpoint a run has come to is remembered
with the run, so that an edit, and a run after one that was stopped or lost, begin where this branch of the history
stands.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeAlias, cast

from runtime.canonical import JsonObject, clean
from runtime.errors import ConfigurationError
from runtime.executors.context import Answered, RunContext
from runtime.executors.graph_history import history, said
from runtime.executors.graph_words import BREAKPOINT, MESSAGES, MODES, GraphWords, members, shared
from runtime.executors.words import Word
from runtime.items import Message

try:
    from langgraph.checkpoint.memory import InMemorySaver
    from langgraph.types import Command
except ImportError as missing:
    raise ConfigurationError("LangGraph is not installed: pip install 'agui-bridge[langgraph]'.") from missing

if TYPE_CHECKING:
    from langchain_core.messages import BaseMessage
    from langchain_core.runnables import RunnableConfig
    from langgraph.graph.state import CompiledStateGraph
    from langgraph.types import StateSnapshot

ToInput: TypeAlias = "Callable[[RunContext, list[BaseMessage]], Any]"
"""From a run and the messages that are new to the graph to what it is given."""

CANCELLED = "__agui_cancelled__"
"""The member of what a graph is resumed with that says that nobody will answer."""

PAGE_TOOLS = "tools"
"""The key of a graph's state that takes the page's tools, as functions in OpenAI's form, if its input has it."""


class LangGraphExecutor:
    """Performs a round by running a graph. `config` is given to it each time, with `thread_id`, `run_id`, `user_id` and
    `agent_id` among its `configurable`.

    A graph without a checkpointer gets one in memory: it can be interrupted then, and is given the history where that
    is gone. A graph's state is the shared state, its `messages` apart; what a page changes of it is given to the graph,
    as far as its input has that key, and the page's tools as `tools`. `to_input` makes another input of a run. Raises
    ConfigurationError for a graph that is not compiled.
    """

    kind = "langgraph"

    def __init__(
        self,
        graph: CompiledStateGraph[Any, Any, Any, Any],
        *,
        config: RunnableConfig | None = None,
        to_input: ToInput | None = None,
    ) -> None:
        if not hasattr(graph, "astream"):
            raise ConfigurationError("A graph is to be compiled: LangGraphExecutor(builder.compile()).")
        self._graph: Any = graph
        if not self._graph.checkpointer:
            self._graph = graph.copy({"checkpointer": InMemorySaver()})
        self._given: RunnableConfig = config or {}
        self._to_input = to_input
        self._inputs = frozenset(graph.get_input_jsonschema().get("properties", {}))

    async def perform(self, context: RunContext) -> AsyncGenerator[Word, None]:
        """See the port."""
        config = self._config(context)
        begin, heard = await self._beginning(context, config)
        words = GraphWords(heard, context.open_calls, context.state)
        parts: Any = self._graph.astream(begin, config, stream_mode=MODES, subgraphs=True, version="v2")
        async with aclosing(cast("AsyncGenerator[JsonObject, None]", parts)) as stream:
            async for part in stream:
                for word in words.take(part):
                    yield word

    def _config(self, context: RunContext) -> RunnableConfig:
        run, given = context.run, self._given.get("configurable") or {}
        own = {"thread_id": run.thread_id, "run_id": run.run_id, "user_id": run.owner_id, "agent_id": run.agent_id}
        return cast("RunnableConfig", {**self._given, "configurable": {**given, **own}})

    # --- where it begins ------------------------------------------------------------------------------------------

    async def _beginning(self, context: RunContext, config: RunnableConfig) -> tuple[Any, set[str]]:
        """What the graph is given, and the ids of the messages that it holds. `config` is set to where it begins."""
        configurable = config.get("configurable", {})
        remembered = cast("JsonObject", context.remembered or {})
        configurable["thread_id"] = remembered.get("thread_id", configurable["thread_id"])
        at = head = await self._graph.aget_state(config)
        place = remembered.get("checkpoint_id")
        if place is not None and _place(head) != place:
            configurable["checkpoint_id"] = place
            at = await self._graph.aget_state(config)
        if place is None or at.metadata is None:
            return self._afresh(context, configurable, is_used=head.metadata is not None)
        held = _messages(at.values)
        heard = {message.id for message in held if message.id}
        if (resumed := _resumed(context, at)) is not None:
            return resumed.value, heard
        new = said(context.news)
        return self._input(context, new, at.values), heard | {message.id for message in new if message.id}

    def _afresh(self, context: RunContext, configurable: JsonObject, *, is_used: bool) -> tuple[Any, set[str]]:
        """Begin with the history: the graph's memory is gone, or is that of another branch."""
        configurable.pop("checkpoint_id", None)
        if is_used:
            configurable["thread_id"] = f"{context.run.thread_id}/{context.run.run_id}"
        users = [id_ for id_, item in context.news if isinstance(item, Message)]
        messages = history(context.items, users, context.run.run_id)
        return self._input(context, messages, {}), {message.id for message in messages if message.id}

    def _input(self, context: RunContext, messages: list[BaseMessage], values: Any) -> Any:
        """What the graph is given: the new messages, and what the page has changed of the state that it takes."""
        if self._to_input is not None:
            return self._to_input(context, messages)
        before, state = shared(values), cast("JsonObject", context.state if isinstance(context.state, dict) else {})
        keys = self._inputs & state.keys() - {MESSAGES, PAGE_TOOLS}
        given: JsonObject = {key: clean(state[key]) for key in keys if clean(state[key]) != clean(before.get(key))}
        if PAGE_TOOLS in self._inputs:
            given[PAGE_TOOLS] = _page_tools(context)
        if MESSAGES in self._inputs:
            given[MESSAGES] = messages
        return given


@dataclass(frozen=True, slots=True)
class _Resumed:
    value: Any


def _resumed(context: RunContext, at: StateSnapshot) -> _Resumed | None:
    """With what a graph goes on that has asked something, or stopped at a breakpoint; None if it has not, or if nobody
    has answered."""
    asked = [interrupt.id for interrupt in at.interrupts]
    if asked and all(key in context.answers for key in asked):
        return _Resumed(Command(resume={key: _payload(key, context.answers[key]) for key in asked}))
    stopped = context.answers.get(BREAKPOINT)
    return _Resumed(None) if at.next and not asked and stopped is not None and stopped.is_resolved else None


def _payload(key: str, given: Answered) -> Any:
    return given.payload if given.is_resolved else {CANCELLED: True, "interrupt_id": key}


def _place(state: StateSnapshot) -> str | None:
    return (state.config.get("configurable") or {}).get("checkpoint_id")


def _messages(values: Any) -> list[BaseMessage]:
    return cast("list[BaseMessage]", members(values).get(MESSAGES) or [])


def _page_tools(context: RunContext) -> list[JsonObject]:
    return [
        {
            "type": "function",
            "function": {"name": tool.name, "description": tool.description, "parameters": tool.parameters},
        }
        for tool in context.tools
        if tool.name in context.client_tools
    ]
