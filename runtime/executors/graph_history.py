"""From our history to LangChain's messages, for a graph. It waits for nothing."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, Final

import orjson
from langchain_core.messages import AIMessage, BaseMessage, HumanMessage, SystemMessage, ToolMessage
from langchain_core.messages.tool import invalid_tool_call, tool_call

from runtime.canonical import JsonObject
from runtime.dialects.history import arguments_of
from runtime.items import Content, FunctionCall, FunctionCallOutput, Item, Message, Reasoning

_TYPES: Final = {"document": "file"}
"""What LangChain calls a kind of media, if not as we do."""
_SOURCES: Final = {"data": "base64", "url": "url", "file": "file_id"}


def said(news: Iterable[tuple[str, Message | FunctionCallOutput]]) -> list[BaseMessage]:
    """What is new to the graph, under its ids."""
    return [_user(id_, item) if isinstance(item, Message) else _output(id_, item) for id_, item in news]


def history(items: Sequence[Item], users: Sequence[str], prefix: str) -> list[BaseMessage]:
    """A whole history, for a graph that holds nothing of it. Thoughts are not part of it. `users` are the ids of the
    last messages of users, other ids begin with `prefix`."""
    messages: list[BaseMessage] = []
    unnamed = sum(isinstance(item, Message) and item.role == "user" for item in items) - len(users)
    names = iter([*(None for _ in range(unnamed)), *users])
    for number, item in enumerate(items, 1):
        id_ = f"{prefix}-{number}"
        match item:
            case Message(role="assistant", content=content):
                messages.append(AIMessage(_text(content), id=id_))
            case Message(role="user"):
                messages.append(_user(next(names) or id_, item))
            case Message(content=content):
                messages.append(SystemMessage(_text(content), id=id_))
            case FunctionCall():
                _add_call(messages, item, id_)
            case FunctionCallOutput():
                messages.append(_output(id_, item))
            case Reasoning():
                pass
    return messages


def _add_call(messages: list[BaseMessage], call: FunctionCall, id_: str) -> None:
    """A call belongs to the message before it."""
    last = messages[-1] if messages else None
    if not isinstance(last, AIMessage):
        last = AIMessage("", id=id_)
        messages.append(last)
    if call.malformed:
        last.invalid_tool_calls.append(invalid_tool_call(name=call.name, args=call.arguments_json, id=call.call_id))
    else:
        arguments = orjson.loads(arguments_of(call))
        last.tool_calls.append(tool_call(name=call.name, args=arguments, id=call.call_id))


def _user(id_: str, message: Message) -> HumanMessage:
    return HumanMessage(_blocks(message.content), id=id_)


def _output(id_: str, output: FunctionCallOutput) -> ToolMessage:
    status = "error" if output.is_error else "success"
    return ToolMessage(
        _blocks(output.output), tool_call_id=output.call_id, name=output.tool_name, status=status, id=f"{id_}-output"
    )


def _text(content: Content) -> str:
    return content if isinstance(content, str) else "".join(part.get("text", "") for part in content)


def _blocks(content: Content) -> Any:
    return content if isinstance(content, str) else [_block(part) for part in content]


def _block(part: JsonObject) -> JsonObject:
    if part["type"] == "text":
        return {"type": "text", "text": part["text"]}
    source: JsonObject = part["source"]
    block: JsonObject = {"type": _TYPES.get(part["type"], part["type"]), _SOURCES[source["type"]]: source["value"]}
    return {**block, "mime_type": source["mime_type"]} if source.get("mime_type") else block
