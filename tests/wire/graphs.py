"""LangGraph graphs for tests, on a chat model that plays rounds: no provider, no network."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import orjson
from langchain_core.language_models.chat_models import BaseChatModel
from langchain_core.messages import AIMessage, AIMessageChunk
from langchain_core.outputs import ChatGeneration, ChatGenerationChunk, ChatResult
from langchain_core.tools import tool
from langgraph.graph import END, START, MessagesState, StateGraph
from langgraph.prebuilt import ToolNode
from langgraph.types import interrupt


class ScriptedChatModel(BaseChatModel):
    """Plays messages in order, word by word, and keeps what it was asked."""

    rounds: list[Any]
    asked: list[list[Any]] = []

    @property
    def _llm_type(self) -> str:
        return "scripted"

    def bind_tools(self, tools: Any, **kwargs: Any) -> Any:
        """It knows its tools."""
        return self

    def _generate(self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any) -> ChatResult:
        self.asked.append(list(messages))
        said = self.rounds.pop(0)
        if isinstance(said, Exception):
            raise said
        return ChatResult(generations=[ChatGeneration(message=said)])

    async def _astream(
        self, messages: Any, stop: Any = None, run_manager: Any = None, **kwargs: Any
    ) -> AsyncIterator[ChatGenerationChunk]:
        self.asked.append(list(messages))
        said = self.rounds.pop(0)
        if isinstance(said, Exception):
            yield _chunk(content="half a ", id="broken")
            raise said
        if said.additional_kwargs.get("thought"):
            yield _chunk(
                content="", id=said.id, additional_kwargs={"reasoning_content": said.additional_kwargs["thought"]}
            )
        words = said.content.split(" ") if said.content else []
        for number, word in enumerate(words):
            yield _chunk(content=word if number == len(words) - 1 else f"{word} ", id=said.id)
        for index, call in enumerate(said.tool_calls):
            written = orjson.dumps(call["args"]).decode()
            for name, id_, piece in (
                (call["name"], call["id"], ""),
                (None, None, written[:4]),
                (None, None, written[4:]),
            ):
                piece_ = {"index": index, "id": id_, "name": name, "args": piece}
                yield _chunk(content="", id=said.id, tool_call_chunks=[piece_])
        counted = {"input_tokens": 5, "output_tokens": 3, "total_tokens": 8}
        yield _chunk(content="", id=said.id, usage_metadata=counted, response_metadata={"model_name": "scripted-1"})


def _chunk(**members: Any) -> ChatGenerationChunk:
    return ChatGenerationChunk(message=AIMessageChunk(**members))


def says(text: str, id_: str, thought: str | None = None) -> AIMessage:
    """A message of text."""
    return AIMessage(text, id=id_, additional_kwargs={"thought": thought} if thought else {})


def calls(id_: str, *given: tuple[str, str, dict[str, Any]], text: str = "") -> AIMessage:
    """A message with calls: each its id, tool and arguments."""
    return AIMessage(text, id=id_, tool_calls=[{"id": call, "name": name, "args": args} for call, name, args in given])


@tool
def search(words: str) -> str:
    """Search."""
    if words == "nothing":
        raise ValueError("nothing found")
    return f"found {words}"


@tool
def ask(question: str) -> str:
    """Ask the user."""
    return f"the user says {interrupt({'question': question})}"


class Counting(MessagesState):
    """Messages, how often the model was asked, and what the page notes."""

    asked: int
    note: str


def react(model: BaseChatModel, *, checkpointer: Any = None, **compiled: Any) -> Any:
    """A model and its tools, round after round."""

    async def agent(state: Counting) -> dict[str, Any]:
        return {"messages": [await model.ainvoke(state["messages"])], "asked": state.get("asked", 0) + 1}

    def route(state: Counting) -> str:
        last = state["messages"][-1]
        ours = isinstance(last, AIMessage) and any(call["name"] in ("search", "ask") for call in last.tool_calls)
        return "tools" if ours else END

    graph = StateGraph(Counting)
    graph.add_node("agent", agent)
    graph.add_node("tools", ToolNode([search, ask], handle_tool_errors=True))
    graph.add_edge(START, "agent")
    graph.add_conditional_edges("agent", route)
    graph.add_edge("tools", "agent")
    return graph.compile(checkpointer=checkpointer, **compiled)
