"""What Anthropic's Messages API asks of a request, said once more and independently: a judge for tests."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from typing import Any

from runtime.canonical import JsonObject

NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
ID = re.compile(r"[a-zA-Z0-9_-]{1,64}")
THOUGHTS = {"thinking", "redacted_thinking"}
USER = {"text", "image", "document", "tool_result"}
SOURCES = {
    "base64": {"type", "media_type", "data"},
    "text": {"type", "media_type", "data"},
    "url": {"type", "url"},
    "file": {"type", "file_id"},
}


def judge(request: JsonObject) -> None:
    """Raises AssertionError for a request that the API would refuse."""
    json.dumps(request).encode("utf-8")
    assert request["max_tokens"] > 0
    messages = request["messages"]
    assert messages
    assert [message["role"] for message in messages] == [("user", "assistant")[at % 2] for at in range(len(messages))]
    for message in messages:
        assert message["content"], "every message says something"
        for block in message["content"]:
            _block(block, message["role"])
        if message["role"] == "assistant":
            assert message["content"][-1]["type"] not in THOUGHTS, "a thought leads to something"
    if messages[-1]["role"] == "assistant":
        assert messages[-1]["content"][-1].get("text", "x") == messages[-1]["content"][-1].get("text", "x").rstrip()
    _tools(request)
    _calls(messages)
    _server_tools(messages)
    _thinking(request)
    assert sum(1 for _ in breakpoints(request)) <= 4


def breakpoints(request: JsonObject) -> Iterator[JsonObject]:
    """The blocks that hold a breakpoint, in the order in which the API reads them."""
    content = [block for message in request["messages"] for block in message["content"]]
    for block in [*request.get("tools", []), *request.get("system", []), *content]:
        if "cache_control" in block:
            assert block.get("type") not in THOUGHTS
            yield block


def _block(block: JsonObject, role: str) -> None:
    kind = block["type"]
    if role == "user":
        assert kind in USER
    else:
        assert kind not in USER - {"text"}
    match kind:
        case "text":
            assert block["text"].strip(), "no text is empty"
            assert all("file_id" not in one for one in block.get("citations", []))
            assert block.get("citations", [0]) != []
        case "image" | "document":
            _media(block)
        case "thinking":
            assert block["signature"]
            assert isinstance(block["thinking"], str)
        case "redacted_thinking":
            assert block["data"]
        case "tool_use":
            assert ID.fullmatch(block["id"])
            assert NAME.fullmatch(block["name"])
            assert isinstance(block["input"], dict)
        case "tool_result":
            _result(block)
        case _:
            assert role == "assistant"


def _media(block: JsonObject) -> None:
    source = block["source"]
    assert set(source) == SOURCES[source["type"]]
    assert all(source.values())
    if block["type"] == "image":
        assert source["type"] != "text"
        if source["type"] == "base64":
            assert source["media_type"] in ("image/jpeg", "image/png", "image/gif", "image/webp")
    elif source["type"] in ("base64", "text"):
        assert source["media_type"] == {"base64": "application/pdf", "text": "text/plain"}[source["type"]]


def _result(block: JsonObject) -> None:
    content: Any = block["content"]
    if isinstance(content, list):
        assert content
        for part in content:
            assert part["type"] in ("text", "image", "document")
            assert part["type"] == "text" or not block.get("is_error"), "an error holds nothing but text"
            _block(part, "user")
    else:
        assert content == content if content.strip() else content == ""
    assert content or not block.get("is_error"), "an error says something"


def _tools(request: JsonObject) -> None:
    names = [tool["name"] for tool in request.get("tools", [])]
    assert len(names) == len(set(names))
    assert all(NAME.fullmatch(name) for name in names)
    for tool in request.get("tools", []):
        assert "type" in tool or tool["input_schema"]["type"] == "object"
    used = any(block["type"] == "tool_use" for message in request["messages"] for block in message["content"])
    assert names or not used, "a history with calls needs tools"
    assert names or "tool_choice" not in request


def _calls(messages: list[JsonObject]) -> None:
    """Each call has its one result at the beginning of the next message, in call order; no id stands twice."""
    seen: set[str] = set()
    waiting: list[str] = []
    for message in messages:
        results = [block["tool_use_id"] for block in message["content"] if block["type"] == "tool_result"]
        assert results == waiting
        assert [block["type"] for block in message["content"][: len(results)]] == ["tool_result"] * len(results)
        waiting = [block["id"] for block in message["content"] if block["type"] == "tool_use"]
        ids = [block["id"] for block in message["content"] if block["type"].endswith("tool_use")]
        assert len(set(ids)) == len(ids)
        assert seen.isdisjoint(ids)
        seen.update(ids)
    assert not waiting


def _server_tools(messages: list[JsonObject]) -> None:
    """A server tool's use has its result behind it before a user speaks, unless nobody has spoken since."""
    waiting: set[str] = set()
    for message in messages:
        for block in message["content"]:
            if message["role"] == "user":
                assert block["type"] == "tool_result" or not waiting, "a server tool without its result"
            elif block["type"].endswith("tool_use") and block["type"] != "tool_use":
                waiting.add(block["id"])
            elif "tool_use_id" in block:
                assert block["tool_use_id"] in waiting, "a result without its server tool"
                waiting.remove(block["tool_use_id"])


def _thinking(request: JsonObject) -> None:
    """With thinking on, a tool loop that still runs began with a thought."""
    if request.get("thinking", {}).get("type") != "enabled":
        return
    assert request["max_tokens"] > request["thinking"]["budget_tokens"]
    loop: list[JsonObject] = []
    for message in request["messages"]:
        if message["role"] == "assistant":
            loop.append(message)
        elif any(block["type"] != "tool_result" for block in message["content"]):
            loop = []
    if loop and any(block["type"] == "tool_use" for block in loop[0]["content"]):
        assert loop[0]["content"][0]["type"] in THOUGHTS
