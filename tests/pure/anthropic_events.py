"""The events of a Messages stream in short, and what the decoder makes of them."""

from __future__ import annotations

from typing import Any

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.dialects.anthropic import Anthropic


def begun(**members: Any) -> JsonObject:
    usage = members.pop("usage", {"input_tokens": 11, "output_tokens": 1})
    message = {"id": "msg_1", "type": "message", "role": "assistant", "model": "m-1", "content": [], "usage": usage}
    return {"type": "message_start", "message": {**message, **members}}


def start(index: int | None, kind: str, **members: Any) -> JsonObject:
    return {"type": "content_block_start", "index": index, "content_block": {"type": kind, **members}}


def call(index: int | None, name: str = "t", call_id: str = "c1", given: Any = None, **members: Any) -> JsonObject:
    return start(index, "tool_use", id=call_id, name=name, input={} if given is None else given, **members)


def delta(index: int | None, kind: str, **members: Any) -> JsonObject:
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, **members}}


def text(index: int | None, words: Any) -> JsonObject:
    return delta(index, "text_delta", text=words)


def args(index: int | None, piece: Any) -> JsonObject:
    return delta(index, "input_json_delta", partial_json=piece)


def thinking(index: int | None, words: str) -> JsonObject:
    return delta(index, "thinking_delta", thinking=words)


def signature(index: int | None, piece: str) -> JsonObject:
    return delta(index, "signature_delta", signature=piece)


def stop(index: int | None) -> JsonObject:
    return {"type": "content_block_stop", "index": index}


def ends(reason: str | None = "end_turn", **members: Any) -> list[JsonObject]:
    usage = members.pop("usage", {"output_tokens": 9})
    return [
        {"type": "message_delta", "delta": {"stop_reason": reason, **members}, "usage": usage},
        {"type": "message_stop"},
    ]


def block(index: int, kind: str, *deltas: JsonObject, **members: Any) -> list[JsonObject]:
    return [start(index, kind, **members), *deltas, stop(index)]


def heard(*chunks: JsonObject, declared: tuple[str, ...] = (), **dialect: Any) -> list[s.Sample]:
    decoder = Anthropic(**dialect).decoder(declared)
    return [sample for chunk in chunks for sample in decoder.feed(chunk)] + decoder.finish()


def answered(*chunks: JsonObject, reason: str | None = "end_turn", **dialect: Any) -> list[s.Sample]:
    """A whole message of these blocks, without its end sample."""
    samples = heard(begun(), *chunks, *ends(reason), **dialect)
    assert isinstance(samples[-1], s.Completed)
    return samples[:-1]


def said(samples: list[s.Sample]) -> str:
    return "".join(one.text for one in samples if isinstance(one, s.TextDelta))


def called(samples: list[s.Sample]) -> list[tuple[str, str, str]]:
    calls = [one for one in samples if isinstance(one, s.ToolCallCommitted)]
    assert len({one.key for one in calls}) == len(calls)
    return [(one.name, one.arguments_json, one.provider_call_id) for one in calls]


def finish(samples: list[s.Sample]) -> s.Completed:
    last = samples[-1]
    assert isinstance(last, s.Completed)
    return last
