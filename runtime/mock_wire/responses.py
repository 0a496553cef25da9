"""The Responses API: numbered events, in which every item is announced, streamed, said as a whole and listed."""

from __future__ import annotations

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.errors import ProviderError
from runtime.mock_wire.frames import Call, frame, openai_failure, openai_usage

_PARTS = {"output_text": "text", "refusal": "refusal"}
_COMPLETE = frozenset({"stop", "tool_calls", "refusal"})
_INCOMPLETE = {"length": "max_output_tokens"}


class ResponsesWriter:
    """Writes one response. A thought is an item with a summary of one part; signatures have no place here."""

    def __init__(self, model: str, number: int, end: s.Completed | None) -> None:
        response_id = (end and end.provider_response_id) or f"resp_{number}"
        head = {"id": response_id, "object": "response", "created_at": 1_700_000_000}
        self._response: JsonObject = {**head, "model": (end and end.model) or model, "status": "in_progress"}
        self._output: list[JsonObject] = []
        self._message: int | None = None
        self._thought: int | None = None
        self._calls: dict[str, Call] = {}
        self._written: list[bytes] = []
        self._events = 0

    def feed(self, sample: s.Sample) -> bytes:
        """See `Writer.feed`."""
        if not self._events:
            for kind in ("created", "in_progress"):
                self._write(f"response.{kind}", {"response": {**self._response, "output": []}})
        match sample:
            case s.TextDelta(text):
                self._speak("output_text", text)
            case s.RefusalDelta(text):
                self._speak("refusal", text)
            case s.ReasoningDelta(text):
                self._think(text)
            case s.ReasoningDone():
                self._thought_done(sample)
            case s.AssistantMessageDone(phase):
                self._end_message(phase)
            case s.ToolCallDelta():
                self._call(sample.key, sample.name, sample.provider_call_id, sample.arguments)
            case s.ToolCallCommitted():
                self._commit(sample)
            case s.Completed():
                self._end(sample)
        written = b"".join(self._written)
        self._written.clear()
        return written

    @classmethod
    def failure(cls, error: ProviderError) -> tuple[int, JsonObject]:
        """See `Writer.failure`."""
        status, body = openai_failure(error)
        return status, {"error": body}

    @classmethod
    def broken(cls, error: ProviderError) -> bytes:
        """See `Writer.broken`."""
        body = openai_failure(error)[1]
        return frame({"type": "error", "code": body["code"], "message": body["message"], "param": None}, "error")

    # --- messages -------------------------------------------------------------------------------------------------

    def _speak(self, kind: str, text: str) -> None:
        self._end_thought()
        if self._message is None:
            self._message = self._open("msg", {"type": "message", "role": "assistant", "content": []})
        parts: list[JsonObject] = self._output[self._message]["content"]
        if not parts or parts[-1]["type"] != kind:
            self._end_part()
            extra: JsonObject = {"annotations": []} if kind == "output_text" else {}
            parts.append({"type": kind, _PARTS[kind]: "", **extra})
            self._write("response.content_part.added", self._at_part({"part": dict(parts[-1])}))
        parts[-1][_PARTS[kind]] += text
        self._write(f"response.{kind}.delta", self._at_part({"delta": text}))

    def _at_part(self, fields: JsonObject) -> JsonObject:
        assert self._message is not None
        item = self._output[self._message]
        at = {"item_id": item["id"], "output_index": self._message, "content_index": len(item["content"]) - 1}
        return {**at, **fields}

    def _end_part(self) -> None:
        parts: list[JsonObject] = self._output[self._message]["content"] if self._message is not None else []
        if parts:
            kind, member = parts[-1]["type"], _PARTS[parts[-1]["type"]]
            self._write(f"response.{kind}.done", self._at_part({member: parts[-1][member]}))
            self._write("response.content_part.done", self._at_part({"part": dict(parts[-1])}))

    def _end_message(self, phase: str | None = None) -> None:
        if self._message is not None:
            self._end_part()
            self._close(self._message, {"phase": phase} if phase else {})
            self._message = None

    # --- thoughts -------------------------------------------------------------------------------------------------

    def _think(self, text: str) -> None:
        self._end_message()
        if self._thought is None:
            self._thought = self._open("rs", {"type": "reasoning", "summary": []})
            summary: list[JsonObject] = [{"type": "summary_text", "text": ""}]
            self._output[self._thought]["summary"] = summary
            self._write("response.reasoning_summary_part.added", self._at_summary({"part": dict(summary[0])}))
        self._output[self._thought]["summary"][0]["text"] += text
        self._write("response.reasoning_summary_text.delta", self._at_summary({"delta": text}))

    def _at_summary(self, fields: JsonObject) -> JsonObject:
        assert self._thought is not None
        item_id = self._output[self._thought]["id"]
        return {"item_id": item_id, "output_index": self._thought, "summary_index": 0, **fields}

    def _thought_done(self, done: s.ReasoningDone) -> None:
        extra: JsonObject = {name: value for name, value in (done.opaque or {}).items() if name != "summary"}
        if done.encrypted_value:
            extra["encrypted_content"] = done.encrypted_value
        if self._thought is None and extra:
            self._end_message()
            self._thought = self._open("rs", {"type": "reasoning", "summary": []})
        self._end_thought(extra)

    def _end_thought(self, extra: JsonObject | None = None) -> None:
        if self._thought is not None:
            summary: list[JsonObject] = self._output[self._thought]["summary"]
            for part in summary:
                self._write("response.reasoning_summary_text.done", self._at_summary({"text": part["text"]}))
                self._write("response.reasoning_summary_part.done", self._at_summary({"part": dict(part)}))
            self._close(self._thought, extra or {})
            self._thought = None

    # --- calls ----------------------------------------------------------------------------------------------------

    def _call(self, key: str, name: str, call_id: str, arguments: str) -> Call:
        call = self._calls.get(key)
        if call is None:
            self._end_thought()
            self._end_message()
            call_id = call_id or f"call_{len(self._output) + 1}"
            item = {"type": "function_call", "call_id": call_id, "name": name, "arguments": ""}
            call = self._calls[key] = Call(self._open("fc", item), name, call_id)
        if arguments:
            fields = {"delta": call.more(arguments)}
            self._write("response.function_call_arguments.delta", self._at(call.place, fields))
        return call

    def _commit(self, sample: s.ToolCallCommitted) -> None:
        call = self._call(sample.key, sample.name, sample.provider_call_id, "")
        if rest := call.rest(sample.arguments_json):
            self._write("response.function_call_arguments.delta", self._at(call.place, {"delta": rest}))
        self._end_call(call)

    def _end_call(self, call: Call) -> None:
        done = {"name": call.name, "arguments": call.arguments}
        self._write("response.function_call_arguments.done", self._at(call.place, done))
        self._close(call.place, {"arguments": call.arguments})

    # --- items and events -----------------------------------------------------------------------------------------

    def _open(self, prefix: str, item: JsonObject) -> int:
        place = len(self._output)
        self._output.append({"id": f"{prefix}_{place + 1}", "status": "in_progress", **item})
        self._write("response.output_item.added", {"output_index": place, "item": dict(self._output[place])})
        return place

    def _close(self, place: int, extra: JsonObject, status: str = "completed") -> None:
        self._output[place].update({**extra, "status": status})
        self._write("response.output_item.done", {"output_index": place, "item": dict(self._output[place])})

    def _at(self, place: int, fields: JsonObject) -> JsonObject:
        return {"item_id": self._output[place]["id"], "output_index": place, **fields}

    def _end(self, sample: s.Completed) -> None:
        self._end_thought()
        self._end_message()
        is_whole = sample.finish in _COMPLETE
        for call in self._calls.values():
            if self._output[call.place]["status"] == "in_progress":
                self._close(call.place, {"arguments": call.arguments}, "completed" if is_whole else "incomplete")
        status = "completed" if is_whole else "incomplete"
        reason = None if is_whole else {"reason": _INCOMPLETE.get(sample.finish, sample.finish)}
        response = {**self._response, "status": status, "incomplete_details": reason, "error": None}
        usage = openai_usage(sample.usage, "input", "output") if sample.usage else None
        self._write(f"response.{status}", {"response": {**response, "output": self._output, "usage": usage}})

    def _write(self, kind: str, fields: JsonObject) -> None:
        self._written.append(frame({"type": kind, "sequence_number": self._events, **fields}, kind))
        self._events += 1
