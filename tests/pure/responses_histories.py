"""Histories in short, and the requests that come of them, each judged."""

from __future__ import annotations

from typing import Any

from runtime.canonical import JsonObject
from runtime.dialects.openai_responses import OpenAIResponses
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, ToolSpec
from tests.pure.responses_rules import judge

USER = Message("user", "x")


def encode(*items: Item, tools: tuple[ToolSpec, ...] = (), provider: str = "openai", **options: Any) -> JsonObject:
    request = OpenAIResponses(provider).encode(items, tools, {"model": "m", **options})
    judge(request["input"])
    return request


def sent(*items: Item, **options: Any) -> list[JsonObject]:
    return encode(*items, **options)["input"]


def called(call_id: str = "c1", **members: Any) -> FunctionCall:
    return FunctionCall(call_id, members.pop("name", "t"), members.pop("arguments", "{}"), **members)


def answered(call_id: str = "c1", output: Any = "1", *, is_error: bool = False) -> FunctionCallOutput:
    return FunctionCallOutput(call_id, "t", output, is_error)


def thought(id_: str | None = "rs_1", encrypted: str | None = "E", provider: str = "openai") -> Reasoning:
    opaque: JsonObject = {"type": "reasoning", "summary": []}
    return Reasoning("Hm", provider, None, encrypted, opaque if id_ is None else {**opaque, "id": id_})


def hosted(kind: str, **members: Any) -> Reasoning:
    return Reasoning("", "openai", opaque={"type": kind, **members})


def source(kind: str, value: str, **members: Any) -> JsonObject:
    return {"type": kind, "value": value, **members}


PDF = "application/pdf"
MEDIA: list[tuple[str, JsonObject, JsonObject | None]] = [
    ("image", source("data", "QQ==", mime_type="image/jpeg"), {"image_url": "data:image/jpeg;base64,QQ=="}),
    ("image", source("url", "https://a.test/b.png"), {"image_url": "https://a.test/b.png"}),
    ("image", source("file", "f1", provider="openai"), {"file_id": "f1"}),
    ("image", source("file", "f1", provider="other"), None),
    (
        "document",
        source("data", "QQ==", mime_type=PDF),
        {"filename": "document.pdf", "file_data": f"data:{PDF};base64,QQ=="},
    ),
    (
        "document",
        source("data", "QQ==", mime_type="text/csv"),
        {"filename": "document.csv", "file_data": "data:text/csv;base64,QQ=="},
    ),
    ("document", source("url", "https://a.test/b.pdf"), {"file_url": "https://a.test/b.pdf"}),
    ("document", source("file", "f1"), {"file_id": "f1"}),
    ("audio", source("data", "QQ==", mime_type="audio/mpeg"), None),
    ("video", source("url", "https://a.test/v"), None),
]
