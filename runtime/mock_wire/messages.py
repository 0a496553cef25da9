"""Anthropic's Messages: blocks one after the other, each begun, streamed and stopped."""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.errors import ProviderError
from runtime.mock_wire.frames import Call, anthropic_failure, anthropic_usage, frame

_STOPS = {
    "stop": "end_turn",
    "tool_calls": "tool_use",
    "length": "max_tokens",
    "content_filter": "refusal",
    "refusal": "refusal",
}
"""Our finish reasons in the API's words; it calls a filtered answer a refusal."""


@dataclass(slots=True)
class _Block:
    """A content block; `deltas` wait until the blocks before it are over."""

    begins: JsonObject
    deltas: list[JsonObject] = field(default_factory=list[JsonObject])
    begun: bool = False
    over: bool = False


class MessagesWriter:
    """Writes one response. A refusal is text, as in the API itself; phases have no place here.

    Calls that a script writes at the same time come one after the other: a later one waits for the commit of the
    earlier.
    """

    def __init__(self, model: str, number: int, end: s.Completed | None) -> None:
        self._usage = anthropic_usage((end and end.usage) or {})
        response_id = (end and end.provider_response_id) or f"msg_{number}"
        head = {"id": response_id, "type": "message", "role": "assistant", "model": (end and end.model) or model}
        reads = {name: count for name, count in self._usage.items() if name != "output_tokens"}
        self._message: JsonObject = {**head, "content": [], "stop_reason": None, "stop_sequence": None, "usage": reads}
        self._blocks: list[_Block] = []
        self._calls: dict[str, tuple[Call, _Block]] = {}
        self._speech: _Block | None = None
        self._stopped = 0  # how many blocks are written
        self._begun = False

    def feed(self, sample: s.Sample) -> bytes:
        """See `Writer.feed`."""
        match sample:
            case s.TextDelta(text) | s.RefusalDelta(text):
                self._say({"type": "text", "text": ""}, {"type": "text_delta", "text": text})
            case s.ReasoningDelta(text):
                delta = {"type": "thinking_delta", "thinking": text}
                self._say({"type": "thinking", "thinking": "", "signature": ""}, delta)
            case s.ReasoningDone():
                self._thought_done(sample)
            case s.AssistantMessageDone():
                self._end_speech()
            case s.ToolCallDelta():
                self._call(sample.key, sample.name, sample.provider_call_id, sample.arguments)
            case s.ToolCallCommitted():
                call, block = self._call(sample.key, sample.name, sample.provider_call_id, "")
                self._piece(block, call.rest(sample.arguments_json))
                block.over = True
            case s.Completed():
                return self._end(sample)
        return self._written()

    @classmethod
    def failure(cls, error: ProviderError) -> tuple[int, JsonObject]:
        """See `Writer.failure`."""
        status, body = anthropic_failure(error)
        return status, {"type": "error", "error": body}

    @classmethod
    def broken(cls, error: ProviderError) -> bytes:
        """See `Writer.broken`."""
        return _event({"type": "error", "error": anthropic_failure(error)[1]})

    # --- blocks ---------------------------------------------------------------------------------------------------

    def _say(self, begins: JsonObject, delta: JsonObject) -> None:
        speech = self._speech
        if speech is None or speech.begins["type"] != begins["type"]:
            speech = self._speech = self._open(begins)
        speech.deltas.append(delta)

    def _open(self, begins: JsonObject) -> _Block:
        self._end_speech()
        block = _Block(begins)
        self._blocks.append(block)
        return block

    def _end_speech(self) -> None:
        if self._speech is not None:
            self._speech.over = True
            self._speech = None

    def _thought_done(self, done: s.ReasoningDone) -> None:
        if done.signature:
            delta = {"type": "signature_delta", "signature": done.signature}
            self._say({"type": "thinking", "thinking": "", "signature": ""}, delta)
        if done.encrypted_value:
            self._open({"type": "redacted_thinking", "data": done.encrypted_value}).over = True
        self._end_speech()

    def _call(self, key: str, name: str, call_id: str, arguments: str) -> tuple[Call, _Block]:
        if key not in self._calls:
            call = Call(len(self._blocks), name, call_id or f"toolu_{len(self._blocks)}")
            begins: JsonObject = {"type": "tool_use", "id": call.call_id, "name": name, "input": {}}
            self._calls[key] = call, self._open(begins)
        call, block = self._calls[key]
        self._piece(block, call.more(arguments))
        return call, block

    def _piece(self, block: _Block, arguments: str) -> None:
        if arguments:
            block.deltas.append({"type": "input_json_delta", "partial_json": arguments})

    # --- events ---------------------------------------------------------------------------------------------------

    def _written(self) -> bytes:
        """What may be written by now: the blocks in their order, up to the first that is not over."""
        frames: list[bytes] = []
        if not self._begun:
            self._begun = True
            frames.append(_event({"type": "message_start", "message": self._message}))
        while self._stopped < len(self._blocks):
            block, at = self._blocks[self._stopped], self._stopped
            if not block.begun:
                block.begun = True
                frames.append(_event({"type": "content_block_start", "index": at, "content_block": block.begins}))
            for delta in block.deltas:
                frames.append(_event({"type": "content_block_delta", "index": at, "delta": delta}))
            block.deltas.clear()
            if not block.over:
                break
            frames.append(_event({"type": "content_block_stop", "index": at}))
            self._stopped += 1
        return b"".join(frames)

    def _end(self, sample: s.Completed) -> bytes:
        for block in self._blocks:
            block.over = True
        stop = {"stop_reason": _STOPS.get(sample.finish, sample.finish), "stop_sequence": None}
        ends = _event({"type": "message_delta", "delta": stop, "usage": self._usage})
        return self._written() + ends + _event({"type": "message_stop"})


def _event(document: JsonObject) -> bytes:
    return frame(document, document["type"])
