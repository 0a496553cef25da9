"""Chat Completions, as OpenAI streams it, with the `reasoning_content` that compatible servers add."""

from __future__ import annotations

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.errors import ProviderError
from runtime.mock_wire.frames import Call, frame, openai_failure, openai_usage, said


class ChatWriter:
    """Writes one response. What belongs to a thought goes out as `reasoning_details`; phases have no place here."""

    def __init__(self, model: str, number: int, end: s.Completed | None) -> None:
        response_id = (end and end.provider_response_id) or f"chatcmpl-{number}"
        head = {"id": response_id, "object": "chat.completion.chunk", "created": 1_700_000_000}
        self._head: JsonObject = {**head, "model": (end and end.model) or model}
        self._calls: dict[str, Call] = {}
        self._begun = False

    def feed(self, sample: s.Sample) -> bytes:
        """See `Writer.feed`."""
        match sample:
            case s.TextDelta(text):
                return self._delta({"content": text})
            case s.RefusalDelta(text):
                return self._delta({"refusal": text})
            case s.ReasoningDelta(text):
                return self._delta({"reasoning_content": text})
            case s.ReasoningDone():
                details = _details(sample)
                return self._delta({"reasoning_details": details}) if details else b""
            case s.AssistantMessageDone():
                return b""
            case s.ToolCallDelta():
                return self._call(sample.key, sample.name, sample.provider_call_id, sample.arguments)
            case s.ToolCallCommitted():
                begun = (
                    b"" if sample.key in self._calls else self._call(sample.key, sample.name, sample.provider_call_id)
                )
                call = self._calls[sample.key]
                return begun + self._piece(call, call.rest(sample.arguments_json))
            case s.Completed():
                return self._end(sample)

    @classmethod
    def failure(cls, error: ProviderError) -> tuple[int, JsonObject]:
        """See `Writer.failure`."""
        status, body = openai_failure(error)
        return status, {"error": body}

    @classmethod
    def broken(cls, error: ProviderError) -> bytes:
        """See `Writer.broken`."""
        return frame({"error": openai_failure(error)[1]})

    def _call(self, key: str, name: str, call_id: str, arguments: str = "") -> bytes:
        call = self._calls.get(key)
        if call is not None:
            return self._piece(call, call.more(arguments))
        call = self._calls[key] = Call(len(self._calls), name, call_id)
        function: JsonObject = {"name": name, "arguments": call.more(arguments)}
        head = {"index": call.place, "id": call_id or None, "type": "function", "function": function}
        return self._delta({"tool_calls": [said(head)]})

    def _piece(self, call: Call, arguments: str) -> bytes:
        if not arguments:
            return b""
        return self._delta({"tool_calls": [{"index": call.place, "function": {"arguments": arguments}}]})

    def _delta(self, delta: JsonObject, finish: str | None = None) -> bytes:
        role = {} if self._begun else {"role": "assistant"}
        self._begun = True
        choice = {"index": 0, "delta": {**role, **delta}, "finish_reason": finish}
        return frame({**self._head, "choices": [choice]})

    def _end(self, sample: s.Completed) -> bytes:
        ends = self._delta({}, sample.finish)
        if sample.usage:
            ends += frame({**self._head, "choices": [], "usage": openai_usage(sample.usage, "prompt", "completion")})
        return ends + b"data: [DONE]\n\n"


def _details(done: s.ReasoningDone) -> list[JsonObject]:
    """What a thought leaves to be sent back, in its own shape if the script gives one."""
    given = (done.opaque or {}).get("reasoning_details")
    if given:
        return given
    details: list[JsonObject] = []
    if done.signature:
        details.append({"type": "reasoning.text", "signature": done.signature, "index": 0})
    if done.encrypted_value:
        details.append({"type": "reasoning.encrypted", "data": done.encrypted_value, "index": len(details)})
    return details
