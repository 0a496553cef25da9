"""The Responses dialect, of OpenAI and of the servers that speak it.

Pure: chunks in, samples out. What a request looks like is in `openai_responses_request`, how the several tellings of
one item become one in `response_items`. The decoder holds to this:

1. Nothing is committed before `finish()`, and there only if the response's own end was seen (`response.completed` or
   `response.incomplete`; a bare `[DONE]` is none). What was streamed counts more than the list in that event, which
   may be empty; what only that list has is said then.
2. An item is known by its `output_index`, a part by its index in the item; ids change under way. Deltas are given out
   as they come, and of a `.done` text only what is missing. Messages that are written at the same time are told one
   after the other.
3. An answer cut by its length commits no call, one stopped by the content filter nothing. A call that the provider
   itself calls incomplete is never committed.
4. Each part of a reasoning summary is a reasoning part of its own. The item's encrypted value comes with the last of
   them, or as a part without text; `ReasoningDone.opaque` has the item's other members (`type`, `id`, `summary`).
5. An item of any other kind (hosted tools, compaction, what is yet to be invented) is nobody's call: it becomes a
   `ReasoningDone` without text whose `opaque` is the item as it came, so that it is kept in its place for its
   provider.
6. The free text of a custom tool is committed as `{"input": text}`.
7. A request for the approval of a tool call at the provider's is a call that is committed and not ours to execute: its
   output is what somebody said to it, and goes back as an `mcp_approval_response`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import cast

import orjson

from runtime import samples as s
from runtime.canonical import Json, JsonObject, clean
from runtime.dialects import DONE
from runtime.dialects.faults import provider_error
from runtime.dialects.openai_responses_request import encode, takes
from runtime.dialects.openai_usage import usage_of
from runtime.dialects.response_items import (
    APPROVAL,
    CUSTOM_CALL,
    FUNCTION_CALL,
    MESSAGE,
    REASONING,
    SPOKEN,
    CallItem,
    Item,
    Items,
    arguments_in,
    part_text,
    text_in,
)
from runtime.dialects.response_speech import SUMMARY, Speech
from runtime.errors import ProtocolError, ProviderError
from runtime.items import Item as HistoryItem
from runtime.items import ToolSpec

COMPLETED = "completed"

_ENDS = frozenset({f"response.{word}" for word in ("completed", "incomplete", "failed", "cancelled", "done")})
_INCOMPLETE = {
    "max_output_tokens": "length",
    "max_tokens": "length",
    "length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
}


def is_last(chunk: Json) -> bool:
    """Whether nothing of a response follows this chunk."""
    return chunk is DONE or (isinstance(chunk, dict) and cast("JsonObject", chunk).get("type") in tuple(_ENDS))


class OpenAIResponses:
    """The dialect. `provider` is who issued the encrypted reasoning and the items that we send back.

    `think_tags` parts text around <think> tags (see `think`), which servers of open models leave in it.
    """

    def __init__(self, provider: str = "openai", *, think_tags: bool = True) -> None:
        self.name = "openai-responses"
        self.provider = provider
        self.think_tags = think_tags

    def takes(self, part: JsonObject, *, in_output: bool) -> bool:
        """See `Dialect.takes`."""
        return takes(part, self.provider)

    def encode(self, items: Sequence[HistoryItem], tools: Sequence[ToolSpec], options: JsonObject) -> JsonObject:
        """The request for this history; see `openai_responses_request.encode`."""
        return encode(items, tools, options, self.provider)

    def decoder(self, declared: Collection[str]) -> ResponsesDecoder:
        """A fresh decoder for one response. Names are never written in pieces here: those declared do not matter."""
        return ResponsesDecoder(think_tags=self.think_tags)


class ResponsesDecoder:
    """Turns the events of one response into samples."""

    def __init__(self, *, think_tags: bool = True) -> None:
        self._items = Items(think_tags=think_tags)
        self._speech = Speech(self._items.all)
        self._finish: str | None = None
        self._usage: JsonObject | None = None
        self._response_id: str | None = None
        self._model: str | None = None

    # --- the port -------------------------------------------------------------------------------------------------

    @property
    def usage(self) -> JsonObject | None:
        """See `Decoder.usage`."""
        return self._usage

    @property
    def model(self) -> str | None:
        """See `Decoder.model`."""
        return self._model

    def feed(self, chunk: JsonObject) -> list[s.Sample]:
        """What this chunk says. Raises ProviderError for an error in the stream, ProtocolError for nonsense."""
        try:
            out: list[s.Sample] = []
            self._chunk(chunk, out)
            return out
        except (RecursionError, orjson.JSONEncodeError) as error:
            raise ProtocolError("The provider sent a value that is nested too deeply.") from error

    def finish(self) -> list[s.Sample]:
        """The commits and the end. Raises ProtocolError `stream_cut` if the response's end was not seen."""
        if self._finish is None:
            raise ProtocolError("The provider's stream ended in the middle.", code="stream_cut", retryable=True)
        out: list[s.Sample] = []
        for item in self._items.all:
            if not item.done:
                self._complete(item, item.fields, out)
        self._speech.end_thought(out)
        calls = [item for item in self._items.all if isinstance(item, CallItem) and not item.says_nothing]
        out += [s.ToolCallDelta(call.key, call.name, "", call.call_id) for call in calls if not call.shown]
        if self._finish != "content_filter":
            said = sorted((item for item in self._items.all if item.spoke), key=lambda item: item.order)
            out += [s.AssistantMessageDone(item.phase) for item in said]
        finish = self._finish
        if finish == COMPLETED:
            finish = "tool_calls" if calls else "stop"
            out += [
                s.ToolCallCommitted(
                    call.key, call.name, call.arguments, call.call_id, call.opaque, at_provider=call.kind == APPROVAL
                )
                for call in calls
                if not call.cut
            ]
        out.append(s.Completed(finish, self._usage, self._response_id, self._model))
        return out

    # --- a chunk --------------------------------------------------------------------------------------------------

    def _chunk(self, chunk: Json, out: list[s.Sample]) -> None:
        if not isinstance(chunk, dict):
            raise ProtocolError("The provider sent a chunk that is no JSON object.")
        event = cast("JsonObject", chunk)
        if self._finish is not None:
            return
        kind = event.get("type")
        handler = _EVENTS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            handler(self, event, out)
        elif kind == "error" or event.get("error") or event.get("object") == "error":
            raise provider_error(event)

    def _begun(self, event: JsonObject, out: list[s.Sample]) -> None:
        self._note(event.get("response"))

    def _note(self, response: Json) -> JsonObject:
        """What a response says of itself."""
        fields = cast("JsonObject", response) if isinstance(response, dict) else {}
        self._response_id = self._response_id or text_in(fields, "id") or None
        self._model = self._model or text_in(fields, "model") or None
        usage = fields.get("usage")
        if isinstance(usage, dict) and (counts := usage_of(cast("JsonObject", usage))):
            self._usage = counts
        return fields

    def _end(self, event: JsonObject, out: list[s.Sample]) -> None:
        response = self._note(event.get("response"))
        words = (str(event["type"]).removeprefix("response."), response.get("status"))
        if response.get("error") or "failed" in words or "cancelled" in words:
            raise _failure(response, cancelled="cancelled" in words)
        output = response.get("output")
        for at, item in enumerate(cast("list[Json]", output) if isinstance(output, list) else []):
            if isinstance(item, dict):
                fields = cast("JsonObject", item)
                self._complete(self._items.listed(at, fields), fields, out, is_whole=True)
        self._finish = _cut_by(response) if "incomplete" in words else COMPLETED

    # --- items ----------------------------------------------------------------------------------------------------

    def _added(self, event: JsonObject, out: list[s.Sample]) -> None:
        said = event.get("item")
        if isinstance(said, dict):
            fields = cast("JsonObject", said)
            item = self._items.announced(_index(event.get("output_index")), fields)
            item.describe(fields)
            if isinstance(item, CallItem):
                self._show(item, out)

    def _done(self, event: JsonObject, out: list[s.Sample]) -> None:
        said = event.get("item")
        if isinstance(said, dict):
            fields = cast("JsonObject", said)
            self._complete(self._items.done(_index(event.get("output_index")), fields), fields, out, is_whole=True)

    def _complete(self, item: Item, fields: JsonObject, out: list[s.Sample], *, is_whole: bool = False) -> None:
        """The item is over: what of it is missing follows. What we keep of it is kept if it was said as a whole."""
        is_kept = is_whole and not item.done
        item.done = True
        item.describe(fields)
        if isinstance(item, CallItem):
            item.absorb(arguments_in(fields))
            item.finish()
            self._show(item, out)
        elif item.kind in SPOKEN:
            self._speech.finish(item, fields, out)
            if item.kind == REASONING and is_kept:
                self._speech.keep(item, fields, out)
        elif is_kept and item.kind:
            self._speech.end_thought(out)
            out.append(s.ReasoningDone(opaque=clean(fields)))

    # --- deltas ---------------------------------------------------------------------------------------------------

    def _text_delta(self, event: JsonObject, out: list[s.Sample]) -> None:
        self._delta(event, MESSAGE, "text", "content_index", out)

    def _refusal_delta(self, event: JsonObject, out: list[s.Sample]) -> None:
        self._delta(event, MESSAGE, "refusal", "content_index", out)

    def _thought_delta(self, event: JsonObject, out: list[s.Sample]) -> None:
        self._delta(event, REASONING, REASONING, "content_index", out)

    def _summary_delta(self, event: JsonObject, out: list[s.Sample]) -> None:
        self._delta(event, REASONING, SUMMARY, "summary_index", out)

    def _delta(self, event: JsonObject, of: str, kind: str, place: str, out: list[s.Sample]) -> None:
        """A piece of text, or (in a `.done`) all of it."""
        item = self._item(event, of)
        if item is None:
            return
        if item.kind == REASONING and kind == "text":
            kind = REASONING
        at = _index(event.get(place)) or 0
        piece = event.get("delta")
        if isinstance(piece, str):
            self._speech.piece(item, kind, at, piece, out)
        else:
            self._speech.whole(item, kind, at, text_in(event, "refusal" if kind == "refusal" else "text"), out)

    def _part(self, event: JsonObject, out: list[s.Sample]) -> None:
        is_summary = "summary_index" in event
        item = self._item(event, REASONING if is_summary else MESSAGE)
        if item is not None:
            kind, text = part_text(event.get("part"), item.kind)
            at = _index(event.get("summary_index" if is_summary else "content_index")) or 0
            self._speech.whole(item, SUMMARY if is_summary else kind, at, text, out)

    def _item(self, event: JsonObject, kind: str) -> Item | None:
        return self._items.of_delta(_index(event.get("output_index")), event.get("item_id"), kind)

    def _function_delta(self, event: JsonObject, out: list[s.Sample]) -> None:
        self._call_delta(event, FUNCTION_CALL, out)

    def _custom_delta(self, event: JsonObject, out: list[s.Sample]) -> None:
        self._call_delta(event, CUSTOM_CALL, out)

    def _call_delta(self, event: JsonObject, kind: str, out: list[s.Sample]) -> None:
        call = self._item(event, kind)
        if not isinstance(call, CallItem):
            return
        call.name = call.name or text_in(event, "name")
        call.call_id = call.call_id or text_in(event, "call_id")
        piece = event.get("delta")
        if isinstance(piece, str):
            call.feed(piece)
        else:
            call.absorb(arguments_in(event))
        self._show(call, out)

    def _show(self, call: CallItem, out: list[s.Sample]) -> None:
        text = call.take()
        if text is not None:
            self._speech.end_thought(out)
            out.append(s.ToolCallDelta(call.key, call.name, text, call.call_id))


def _cut_by(response: JsonObject) -> str:
    """Why a response is incomplete, in our words if there is one; without a reason it was the length."""
    details = response.get("incomplete_details")
    reason = text_in(cast("JsonObject", details), "reason") if isinstance(details, dict) else ""
    return _INCOMPLETE.get(reason, reason) or "length"


def _failure(response: JsonObject, *, cancelled: bool) -> ProviderError:
    if response.get("error"):
        return provider_error({"error": response["error"]})
    if cancelled:
        return ProviderError("The provider cancelled the answer.")
    return ProviderError("The provider could not complete the answer.", retryable=True)


def _index(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_Handler = Callable[[ResponsesDecoder, JsonObject, "list[s.Sample]"], None]

_EVENTS: dict[str, _Handler] = {
    **dict.fromkeys(_ENDS, ResponsesDecoder._end),
    "response.created": ResponsesDecoder._begun,
    "response.in_progress": ResponsesDecoder._begun,
    "response.output_item.added": ResponsesDecoder._added,
    "response.output_item.done": ResponsesDecoder._done,
    "response.content_part.done": ResponsesDecoder._part,
    "response.reasoning_summary_part.done": ResponsesDecoder._part,
    "response.output_text.delta": ResponsesDecoder._text_delta,
    "response.output_text.done": ResponsesDecoder._text_delta,
    "response.refusal.delta": ResponsesDecoder._refusal_delta,
    "response.refusal.done": ResponsesDecoder._refusal_delta,
    "response.reasoning_text.delta": ResponsesDecoder._thought_delta,
    "response.reasoning_text.done": ResponsesDecoder._thought_delta,
    "response.reasoning_summary_text.delta": ResponsesDecoder._summary_delta,
    "response.reasoning_summary_text.done": ResponsesDecoder._summary_delta,
    "response.function_call_arguments.delta": ResponsesDecoder._function_delta,
    "response.function_call_arguments.done": ResponsesDecoder._function_delta,
    "response.custom_tool_call_input.delta": ResponsesDecoder._custom_delta,
    "response.custom_tool_call_input.done": ResponsesDecoder._custom_delta,
}
