"""Histories in short, and the requests that come of them, each judged."""

from __future__ import annotations

import base64
from typing import Any

from runtime.canonical import JsonObject
from runtime.dialects.anthropic import Anthropic
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, ToolSpec
from tests.pure.anthropic_rules import judge

USER = Message("user", "x")
AGAIN = Message("user", "y")


def encode(*items: Item, tools: tuple[ToolSpec, ...] = (), provider: str = "anthropic", **options: Any) -> JsonObject:
    request = Anthropic(provider).encode(items, tools, {"model": "m", **options})
    judge(request)
    return request


def sent(*items: Item, provider: str = "anthropic", **options: Any) -> list[JsonObject]:
    """The messages, without breakpoints."""
    return encode(*items, provider=provider, cache_ttl=None, **options)["messages"]


def blocks(*items: Item, **options: Any) -> list[tuple[str, JsonObject]]:
    """Every block with who said it."""
    return [(message["role"], block) for message in sent(*items, **options) for block in message["content"]]


def words(text: str, role: str = "assistant") -> Message:
    return Message(role, text, "final_response" if role == "assistant" else None)


def called(call_id: str = "c1", **members: Any) -> FunctionCall:
    return FunctionCall(call_id, members.pop("name", "t"), members.pop("arguments", "{}"), **members)


def answered(call_id: str = "c1", output: Any = "1", *, is_error: bool = False) -> FunctionCallOutput:
    return FunctionCallOutput(call_id, "t", output, is_error)


def thought(text: str = "Hm", signature: str | None = "S", provider: str = "anthropic") -> Reasoning:
    return Reasoning(text, provider, signature)


def redacted(data: str = "R") -> Reasoning:
    return Reasoning("", "anthropic", None, data)


def hosted(kind: str, **members: Any) -> Reasoning:
    return Reasoning("", "anthropic", opaque={"type": kind, **members})


def search(id_: str = "s1") -> Reasoning:
    return hosted("server_tool_use", id=id_, name="web_search", input={"q": 1})


def found(id_: str = "s1") -> Reasoning:
    return hosted("web_search_tool_result", tool_use_id=id_, content=[])


def source(kind: str, value: str, **members: Any) -> JsonObject:
    return {"type": kind, "value": value, **members}


PDF = "application/pdf"
CSV = base64.b64encode(b"a,b").decode()
MEDIA: list[tuple[str, JsonObject, JsonObject | None]] = [
    (
        "image",
        source("data", "QQ==", mime_type="image/jpeg"),
        {"type": "base64", "media_type": "image/jpeg", "data": "QQ=="},
    ),
    (
        "image",
        source("data", "QQ==", mime_type="image/JPG"),
        {"type": "base64", "media_type": "image/jpeg", "data": "QQ=="},
    ),
    ("image", source("data", "QQ=="), {"type": "base64", "media_type": "image/png", "data": "QQ=="}),
    ("image", source("data", "QQ==", mime_type="image/svg+xml"), None),
    ("image", source("data", "", mime_type="image/png"), None),
    ("image", source("url", "https://a.test/b.png"), {"type": "url", "url": "https://a.test/b.png"}),
    (
        "image",
        source("url", "data:image/gif;base64,QQ=="),
        {"type": "base64", "media_type": "image/gif", "data": "QQ=="},
    ),
    ("image", source("url", "/artifacts/1"), None),
    ("image", source("file", "f1", provider="anthropic"), {"type": "file", "file_id": "f1"}),
    ("image", source("file", "f1", provider="openai"), None),
    ("document", source("data", "QQ==", mime_type=PDF), {"type": "base64", "media_type": PDF, "data": "QQ=="}),
    (
        "document",
        source("data", CSV, mime_type="text/csv; charset=utf-8"),
        {"type": "text", "media_type": "text/plain", "data": "a,b"},
    ),
    ("document", source("data", "QQ==", mime_type="application/zip"), None),
    ("document", source("data", "x", mime_type="text/plain"), None),
    ("document", source("url", "https://a.test/b.pdf"), {"type": "url", "url": "https://a.test/b.pdf"}),
    ("document", source("file", "f1"), {"type": "file", "file_id": "f1"}),
    ("audio", source("data", "QQ==", mime_type="audio/mpeg"), None),
    ("video", source("url", "https://a.test/v"), None),
]
