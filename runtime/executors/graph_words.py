"""From the parts of a LangGraph stream to the words of an executor.

Pure: it knows the shapes of the parts (`{type, ns, data}`, version 2 of `astream`) and of LangChain's messages, and
imports neither. A chunk is provisional; what a node returned, as `updates` tell it, is the commit point. Nodes that
speak at the same time are told one after the other: whoever began has the floor until its message is done.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any, Final, cast

import orjson

from runtime.canonical import Json, JsonObject, clean
from runtime.executors.words import (
    Custom,
    Interrupt,
    MessageDone,
    Reasoning,
    Remember,
    State,
    Text,
    ToolCall,
    ToolCallDelta,
    ToolResult,
    Word,
)
from runtime.items import Content

MESSAGES: Final = "messages"
"""The key of a graph's state that is its history, and no part of the shared state."""
REASON: Final = "langgraph:interrupt"
BREAKPOINT: Final = "langgraph:breakpoint"
"""The key, and the reason, of the question whether to go on behind a breakpoint of the graph."""
CUSTOM: Final = "langgraph.custom"
INTERRUPT: Final = "__interrupt__"

MODES: Final = ["messages", "updates", "values", "custom", "checkpoints"]

_COUNTS: Final = ("input_tokens", "output_tokens", "total_tokens")


class GraphWords:
    """The words of one stream. `heard` are the ids of messages that the graph holds already, `open_calls` those of its
    calls without a result; `state` is the shared state, of which the graph's values are a part."""

    def __init__(self, heard: set[str], open_calls: Collection[str], state: Json) -> None:
        self._done = set(heard)
        self._waiting = set(open_calls)
        self._state = dict(cast("JsonObject", state)) if isinstance(state, dict) else {}
        self._streamed: dict[str, str] = {}
        self._calls: dict[tuple[str, Any], tuple[str, str]] = {}
        self._floor: str | None = None
        self._held: dict[str, list[Word]] = {}
        self._answered: bool = False
        self._asked: set[str] = set()

    def take(self, part: JsonObject) -> list[Word]:
        """What this part says."""
        kind, is_root, data = part["type"], not part["ns"], part["data"]
        match kind:
            case "messages":
                return self._message(data[0])
            case "updates":
                return self._updates(data)
            case "values" if is_root:
                return self._values(data)
            case "checkpoints" if is_root:
                return self._checkpoint(data)
            case "custom":
                return [_custom(data)]
            case _:
                return []

    # --- messages as they come ------------------------------------------------------------------------------------

    def _message(self, message: Any) -> list[Word]:
        if message.type != "AIMessageChunk" or message.id is None or message.id in self._done:
            return []  # whole messages are told when their node has returned
        blocks = _blocks(message)
        if not blocks and not message.tool_call_chunks:
            return []
        return self._said(message.id, self._chunk(message, blocks))

    def _chunk(self, message: Any, blocks: list[Any]) -> list[Word]:
        words: list[Word] = []
        for block in blocks:
            if block["type"] == "text":
                self._streamed[message.id] = self._streamed.get(message.id, "") + block["text"]
                words.append(Text(block["text"]))
            elif block["type"] == "reasoning" and block.get("reasoning"):
                words.append(Reasoning(block["reasoning"]))
        for chunk in message.tool_call_chunks:
            key = (message.id, chunk.get("index"))
            if chunk.get("id") and chunk.get("name"):
                self._calls[key] = (chunk["id"], chunk["name"])
            if key in self._calls:
                words.append(ToolCallDelta(*self._calls[key], chunk.get("args") or ""))
        self._streamed.setdefault(message.id, "")
        return words

    def _said(self, id_: str, words: list[Word]) -> list[Word]:
        """The words of a message, now if it has the floor."""
        if self._floor in (None, id_):
            self._floor = id_
            return words
        self._held.setdefault(id_, []).extend(words)
        return []

    # --- what a node returned -------------------------------------------------------------------------------------

    def _updates(self, data: JsonObject) -> list[Word]:
        words: list[Word] = []
        for node, update in data.items():
            if node == INTERRUPT:
                words += self._interrupts(update)
                continue
            for message in _messages_in(update):
                words += self._returned(message)
        return words

    def _returned(self, message: Any) -> list[Word]:
        if message.type == "tool":
            return self._result(message)
        if message.type not in ("ai", "AIMessageChunk") or message.id in self._done:
            return []
        whole = self._whole(message)
        self._done.add(message.id)
        words = self._said(message.id, whole)
        if self._floor != message.id:
            return words
        self._floor = None
        return words + self._next_speaker()

    def _whole(self, message: Any) -> list[Word]:
        """What is left to be said of a message when its node has returned it."""
        words: list[Word] = []
        streamed, text = self._streamed.get(message.id), _text(message)
        if streamed is None:
            words += [
                Reasoning(b["reasoning"]) for b in _blocks(message) if b["type"] == "reasoning" and b["reasoning"]
            ]
        if text.startswith(streamed or "") and len(text) > len(streamed or ""):
            words.append(Text(text[len(streamed or "") :]))
        for call in (*message.tool_calls, *message.invalid_tool_calls):
            words.append(ToolCall(call["name"] or "", call["args"] or {}, call["id"] or ""))
            self._waiting.add(call["id"])
        model = message.response_metadata.get("model_name")
        words.append(MessageDone(_usage(message.usage_metadata), model))
        self._answered = not (message.tool_calls or message.invalid_tool_calls)
        return words

    def _next_speaker(self) -> list[Word]:
        """Whoever spoke meanwhile has the floor now; if its node has returned, so has the one after it."""
        words: list[Word] = []
        while self._held:
            id_ = next(iter(self._held))
            words += self._held.pop(id_)
            if id_ not in self._done:
                self._floor = id_
                break
        return words

    def _result(self, message: Any) -> list[Word]:
        if message.tool_call_id not in self._waiting:  # told already, or a graph's own mending of its history
            return []
        self._waiting.discard(message.tool_call_id)
        return [ToolResult(message.tool_call_id, _content(message.content), message.status == "error")]

    def _interrupts(self, raised: Any) -> list[Word]:
        if not raised:
            return [Interrupt(BREAKPOINT, "Paused at a breakpoint. Go on?", reason=BREAKPOINT)]
        new = [one for one in raised if one.id not in self._asked]
        self._asked |= {one.id for one in new}
        return [question(one) for one in new]

    # --- state ----------------------------------------------------------------------------------------------------

    def _values(self, values: Any) -> list[Word]:
        told = {key: clean(value) for key, value in shared(values).items()}
        if all(key in self._state and self._state[key] == value for key, value in told.items()):
            return []
        self._state = {**self._state, **told}
        return [State(self._state)]

    def _checkpoint(self, data: JsonObject) -> list[Word]:
        if data["metadata"].get("source") == "input":  # its input is not in it yet
            return []
        done: list[Word] = [MessageDone(final=not data["next"])] if self._answered else []
        self._answered = False
        place = data["config"]["configurable"]
        return [*done, Remember({"thread_id": place["thread_id"], "checkpoint_id": place["checkpoint_id"]})]


def question(raised: Any) -> Interrupt:
    """The question that an `interrupt(value)` of a graph is; its members count where the value has them."""
    value: Json = clean(raised.value)
    given = cast("JsonObject", value) if isinstance(value, dict) else {}
    message = value if isinstance(value, str) else given.get("message") or given.get("question")
    reason = given.get("reason")
    schema: Any = getattr(raised, "response_schema", None) or given.get("response_schema")
    return Interrupt(
        raised.id,
        message if isinstance(message, str) else None,
        cast("JsonObject", schema) if isinstance(schema, dict) else None,
        reason if isinstance(reason, str) and reason else REASON,
        metadata={"langgraph": {"raw": value}},
    )


def shared(values: Any) -> JsonObject:
    """What of a graph's values is shared state."""
    return {key: value for key, value in members(values).items() if key not in (MESSAGES, INTERRUPT)}


def members(values: Any) -> JsonObject:
    """A graph's values, or what a node returned, by their keys, whatever type they have."""
    if isinstance(values, dict):
        return cast("JsonObject", values)
    return {**vars(values)} if hasattr(values, "__dict__") else {}


def _custom(data: Any) -> Custom:
    name = members(data).get("name")
    return Custom(name if isinstance(name, str) and name else CUSTOM, clean(data))


def _messages_in(update: Any) -> list[Any]:
    if isinstance(update, list | tuple):
        return [message for each in cast("list[Any]", update) for message in _messages_in(each)]
    found: Any = members(update).get(MESSAGES)
    listed = cast("list[Any]", found) if isinstance(found, list) else [found]
    return [one for one in listed if hasattr(one, "type")]


def _blocks(message: Any) -> list[Any]:
    if isinstance(message.content, str) and "reasoning_content" not in message.additional_kwargs:
        return [{"type": "text", "text": message.content}] if message.content else []
    return list(message.content_blocks)


def _text(message: Any) -> str:
    return "".join(block["text"] for block in _blocks(message) if block["type"] == "text")


def _content(content: Any) -> Content:
    """The output of a graph's tool: text, content parts as far as ours are like them, else JSON text."""
    if isinstance(content, str):
        return content
    if all(isinstance(part, str) or part.get("type") == "text" for part in content):
        return "".join(part if isinstance(part, str) else part["text"] for part in content)
    return orjson.dumps(clean(content)).decode()


def _usage(counted: Any) -> JsonObject | None:
    if not counted:
        return None
    told = cast("JsonObject", counted)
    read: JsonObject = told.get("input_token_details") or {}
    written: JsonObject = told.get("output_token_details") or {}
    usage: JsonObject = {
        **{name: told.get(name) for name in _COUNTS},
        "cached_input_tokens": read.get("cache_read"),
        "cache_write_input_tokens": read.get("cache_creation"),
        "reasoning_tokens": written.get("reasoning"),
    }
    return {name: count for name, count in usage.items() if count is not None}
