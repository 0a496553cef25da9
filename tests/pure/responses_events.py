"""The events of a Responses stream in short, and what the decoder makes of them."""

from __future__ import annotations

from typing import Any

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.dialects.openai_responses import OpenAIResponses


def ev(name: str, /, **members: Any) -> JsonObject:
    return {"type": f"response.{name}", **members}


def added(index: int | None, **item: Any) -> JsonObject:
    return ev("output_item.added", output_index=index, item=item)


def done(index: int | None, **item: Any) -> JsonObject:
    return ev("output_item.done", output_index=index, item=item)


def text(index: int | None, delta: str, at: int = 0, **members: Any) -> JsonObject:
    return ev("output_text.delta", output_index=index, content_index=at, delta=delta, **members)


def args(index: int | None, delta: str, **members: Any) -> JsonObject:
    return ev("function_call_arguments.delta", output_index=index, delta=delta, **members)


def completed(*output: JsonObject, **members: Any) -> JsonObject:
    return ev("completed", response={"id": "r1", "model": "m-1", "status": "completed", "output": [*output], **members})


def incomplete(reason: str | None, *output: JsonObject) -> JsonObject:
    details = {"reason": reason} if reason else None
    return ev("incomplete", response={"status": "incomplete", "incomplete_details": details, "output": [*output]})


def message(words: str, **members: Any) -> JsonObject:
    return {"type": "message", "content": [{"type": "output_text", "text": words}], **members}


def call(arguments: object, name: str = "t", call_id: str = "c1", **members: Any) -> JsonObject:
    return {"type": "function_call", "name": name, "call_id": call_id, "arguments": arguments, **members}


def reasoning(*summary: str, **members: Any) -> JsonObject:
    return {"type": "reasoning", "summary": [{"type": "summary_text", "text": one} for one in summary], **members}


def heard(*chunks: JsonObject, **dialect: Any) -> list[s.Sample]:
    decoder = OpenAIResponses(**dialect).decoder([])
    return [sample for chunk in chunks for sample in decoder.feed(chunk)] + decoder.finish()


def said(*chunks: JsonObject) -> str:
    return "".join(one.text for one in heard(*chunks) if isinstance(one, s.TextDelta))


def called(*chunks: JsonObject) -> list[tuple[str, str, str]]:
    calls = [one for one in heard(*chunks) if isinstance(one, s.ToolCallCommitted)]
    assert len({one.key for one in calls}) == len(calls)
    return [(one.name, one.arguments_json, one.provider_call_id) for one in calls]


def summary(at: int, delta: str, index: int = 0) -> JsonObject:
    return ev("reasoning_summary_text.delta", output_index=index, summary_index=at, delta=delta)
