"""The dialect of Anthropic's Messages API, and of the servers that speak it.

Pure: chunks in, samples out. What a request looks like is in `anthropic_request`, what becomes of the blocks of a
response in `anthropic_blocks`. The decoder holds to this:

1. Nothing is committed before `finish()`, and there only with evidence: a stop reason or `message_stop`.
2. Whether a round has calls is decided by the calls, never by the stop reason. The arguments of a call are its deltas;
   what its block began with counts only without any.
3. An answer cut by its length commits no call, a refusal nothing. A call whose block was not ended counts only if the
   stop reason says that the answer is whole.
4. The thoughts of a message are `ReasoningDone` each, with their signatures, empty ones too. Redacted ones are the
   encrypted value of one without text.
5. A block of any other kind is nobody's call: it becomes a `ReasoningDone` without text whose `opaque` is the block.
   So does a text with citations, behind its text.
6. A turn that the provider paused commits what it said and completes as `pause_turn`: the same content is to be sent
   back, and the answer goes on.
7. Pings, and events and deltas that nobody knows, say nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Sequence
from typing import cast

import orjson

from runtime import samples as s
from runtime.canonical import Json, JsonObject, clean_text
from runtime.dialects.anthropic_blocks import (
    FALLBACK,
    REDACTED,
    TEXT,
    THINKING,
    TOOL_USE,
    Block,
    CallBlock,
    KeptBlock,
    TextBlock,
    ThinkingBlock,
    block_of,
    text_in,
)
from runtime.dialects.anthropic_media import parts_of
from runtime.dialects.anthropic_request import encode, names_of
from runtime.dialects.anthropic_speech import Speech
from runtime.dialects.anthropic_usage import UsageCount
from runtime.dialects.faults import provider_error, scrub
from runtime.dialects.think import ThinkTags
from runtime.errors import ProtocolError
from runtime.items import Item, ToolSpec

PAUSED = "pause_turn"

_FINISH = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "tool_use": "tool_calls",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "pause_turn": PAUSED,
    "compaction": PAUSED,
    "refusal": "refusal",
}
_BEGINS = {"text_delta": TEXT, "thinking_delta": THINKING, "input_json_delta": TOOL_USE}
_OUTWEIGHS = frozenset({"length", "refusal"})
_DECIDED_BY_CALLS = frozenset({"stop", "tool_calls", PAUSED})
_ENDS_BLOCKS = frozenset({"stop", "tool_calls"})
"""Finish reasons that say that all was written, also a call whose end was not told."""


def is_last(chunk: Json) -> bool:
    """Whether nothing of a response follows this chunk."""
    return isinstance(chunk, dict) and cast("JsonObject", chunk).get("type") == "message_stop"


class Anthropic:
    """The dialect. `provider` is who issued the signatures and the blocks that we send back.

    `think_tags` parts text around <think> tags (see `think`), which servers of open models leave in it.
    """

    def __init__(self, provider: str = "anthropic", *, think_tags: bool = True) -> None:
        self.name = "anthropic"
        self.provider = provider
        self.think_tags = think_tags

    def takes(self, part: JsonObject, *, in_output: bool) -> bool:
        """See `Dialect.takes`."""
        return bool(parts_of([part], self.provider))

    def encode(self, items: Sequence[Item], tools: Sequence[ToolSpec], options: JsonObject) -> JsonObject:
        """The request for this history; see `anthropic_request.encode`."""
        return encode(items, tools, options, self.provider)

    def decoder(self, declared: Collection[str]) -> MessagesDecoder:
        """A fresh decoder for one response to a request that declared these tool names."""
        return MessagesDecoder(names_of(declared), ThinkTags() if self.think_tags else None)


class MessagesDecoder:
    """Turns the events of one response into samples. `names` are our own names of tools that were sent as others."""

    def __init__(self, names: dict[str, str], tags: ThinkTags | None = None) -> None:
        self._names = names
        self._speech = Speech(tags)
        self._blocks: list[Block] = []
        self._at_index: dict[int, Block] = {}
        self._finish: str | None = None
        self._ended = False
        self._usage = UsageCount()
        self._response_id: str | None = None
        self._model: str | None = None
        self._explanation: str | None = None

    # --- the port -------------------------------------------------------------------------------------------------

    @property
    def usage(self) -> JsonObject | None:
        """See `Decoder.usage`."""
        return self._usage.totals()

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
        """The commits and the end. Raises ProtocolError `stream_cut` if the stream ended without evidence."""
        if self._finish is None and not self._ended:
            raise ProtocolError("The provider's stream ended in the middle.", code="stream_cut", retryable=True)
        out: list[s.Sample] = []
        finish = self._finish or "stop"
        is_known = finish in _DECIDED_BY_CALLS
        ended = {block.key for block in self._blocks if block.done or self._finish in _ENDS_BLOCKS}
        for block in self._blocks:
            if not block.done and not (isinstance(block, KeptBlock) and not (is_known and block.is_whole)):
                self._stop(block, out)
        self._speech.end(out)
        calls = [one for one in self._blocks if isinstance(one, CallBlock) and not (one.repeats or one.says_nothing)]
        if finish != "refusal":
            if self._speech.spoke:
                out.append(s.AssistantMessageDone())
            if finish != "length":
                out += [
                    s.ToolCallCommitted(call.key, call.name, call.arguments, call.call_id, call.opaque)
                    for call in calls
                    if call.key in ended and not call.declined
                ]
        if calls and is_known:
            finish = "tool_calls"
        elif finish == "tool_calls":
            finish = "stop"
        out.append(s.Completed(finish, self._usage.totals(), self._response_id, self._model, self._explanation))
        return out

    # --- a chunk --------------------------------------------------------------------------------------------------

    def _chunk(self, chunk: Json, out: list[s.Sample]) -> None:
        if not isinstance(chunk, dict):
            raise ProtocolError("The provider sent a chunk that is no JSON object.")
        event = cast("JsonObject", chunk)
        if self._ended:
            return
        kind = event.get("type")
        handler = _EVENTS.get(kind) if isinstance(kind, str) else None
        if handler is not None:
            handler(self, event, out)
        elif kind == "error" or event.get("error"):
            raise provider_error(event)

    def _begun(self, event: JsonObject, out: list[s.Sample]) -> None:
        message = event.get("message")
        if isinstance(message, dict):
            fields = cast("JsonObject", message)
            self._response_id = self._response_id or text_in(fields, "id") or None
            self._model = self._model or text_in(fields, "model") or None
            self._usage.begin(fields.get("usage"))

    def _message_delta(self, event: JsonObject, out: list[s.Sample]) -> None:
        self._usage.replace(event.get("usage"))
        delta = event.get("delta")
        if not isinstance(delta, dict):
            return
        said = cast("JsonObject", delta)
        details = said.get("stop_details")
        if isinstance(details, dict):
            self._explanation = scrub(text_in(cast("JsonObject", details), "explanation")) or self._explanation
        if reason := text_in(said, "stop_reason"):
            finish = _FINISH.get(reason, reason)
            if self._finish is None or (finish in _OUTWEIGHS and self._finish not in _OUTWEIGHS):
                self._finish = finish

    def _end(self, event: JsonObject, out: list[s.Sample]) -> None:
        self._ended = True

    # --- blocks ---------------------------------------------------------------------------------------------------

    def _start(self, event: JsonObject, out: list[s.Sample]) -> None:
        said = event.get("content_block")
        if not isinstance(said, dict):
            return
        fields = cast("JsonObject", said)
        index = _index(event.get("index"))
        before = self._at_index.get(index) if index is not None else None
        if isinstance(before, CallBlock) and before.call_id and fields.get("id") == before.call_id:
            if before.done:  # the same call once more
                self._open({**fields}, index).repeats = True
            return
        for block in self._blocks:
            if not block.done and not isinstance(block, CallBlock):  # its own end was not told
                self._stop(block, out)
        block = self._open(fields, index)
        if isinstance(block, TextBlock):
            self._text_delta(block, fields, out)
        elif isinstance(block, ThinkingBlock):
            self._thinking_delta(block, fields, out)
        elif isinstance(block, CallBlock):
            block.name = self._names.get(block.name, block.name)
            if not block.says_nothing:
                self._speech.call(block, "", out)
        elif block.kind == FALLBACK:
            self._fall_back(fields)

    def _open(self, fields: JsonObject, index: int | None) -> Block:
        block = block_of(str(len(self._blocks)), fields)
        self._blocks.append(block)
        if index is not None:
            self._at_index[index] = block
        return block

    def _fall_back(self, fields: JsonObject) -> None:
        """Another model goes on. The calls of the one that declined are not to be executed."""
        for block in self._blocks:
            if isinstance(block, CallBlock):
                block.declined = True
        to = fields.get("to")
        self._model = (text_in(cast("JsonObject", to), "model") if isinstance(to, dict) else "") or self._model

    def _delta(self, event: JsonObject, out: list[s.Sample]) -> None:
        delta = event.get("delta")
        if not isinstance(delta, dict):
            return
        said = cast("JsonObject", delta)
        kind = said.get("type")
        index = event.get("index")
        block = self._at_index.get(index) if type(index) is int else None
        if block is None:
            block = self._implied(kind, _index(index))
            if block is None:
                return
        if block.repeats or not isinstance(kind, str):
            return
        handler = _DELTAS.get(kind)
        if isinstance(block, KeptBlock) and kind != "input_json_delta":
            block.absorb(kind, said)
        elif handler is not None:
            handler(self, block, said, out)

    def _implied(self, kind: Json, index: int | None) -> Block | None:
        """The block of a delta whose block nobody began: the last one, if it names none, else a new one."""
        if index is None and self._blocks:
            return self._blocks[-1]
        of = _BEGINS.get(kind) if isinstance(kind, str) else None
        return self._open({"type": of}, index) if of else None

    def _stopped(self, event: JsonObject, out: list[s.Sample]) -> None:
        index = _index(event.get("index"))
        block = self._at_index.get(index) if index is not None else (self._blocks[-1] if self._blocks else None)
        if block is not None and not block.done:
            self._stop(block, out)

    def _stop(self, block: Block, out: list[s.Sample]) -> None:
        block.done = True
        if block.repeats:
            return
        if isinstance(block, TextBlock):
            self._speech.say(block.rest(), out)
            self._speech.keep(block.opaque, None, out)
        elif isinstance(block, CallBlock):
            if rest := block.rest():
                self._speech.call(block, rest, out)
        elif isinstance(block, ThinkingBlock):
            self._speech.think(block, block.rest(), out)
            self._speech.end_thought(block, out)
        elif isinstance(block, KeptBlock):
            block.rest()
            self._speech.keep(block.opaque, None, out)
        elif block.kind == REDACTED and (data := text_in(block.fields, "data")):
            self._speech.keep(None, data, out)

    # --- deltas ---------------------------------------------------------------------------------------------------

    def _text_delta(self, block: Block, delta: JsonObject, out: list[s.Sample]) -> None:
        text = delta.get("text")
        if isinstance(text, str) and text:
            self._speech.say(block.feed(text) if block.kind == TEXT else clean_text(text), out)

    def _thinking_delta(self, block: Block, delta: JsonObject, out: list[s.Sample]) -> None:
        text = delta.get("thinking")
        if isinstance(text, str) and isinstance(block, ThinkingBlock):
            self._speech.think(block, block.feed(text), out)

    def _signature_delta(self, block: Block, delta: JsonObject, out: list[s.Sample]) -> None:
        if isinstance(block, ThinkingBlock):
            block.sign(text_in(delta, "signature"))

    def _citation(self, block: Block, delta: JsonObject, out: list[s.Sample]) -> None:
        if isinstance(block, TextBlock) and isinstance(delta.get("citation"), dict):
            block.citations.append(delta["citation"])

    def _input(self, block: Block, delta: JsonObject, out: list[s.Sample]) -> None:
        piece = delta.get("partial_json")
        if not isinstance(piece, str) or not isinstance(block, (CallBlock, KeptBlock)):
            return
        text = block.feed(piece)
        if text and isinstance(block, CallBlock):
            self._speech.call(block, text, out)


def _index(value: Json) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) else None


_EVENTS: dict[str, Callable[[MessagesDecoder, JsonObject, list[s.Sample]], None]] = {
    "content_block_delta": MessagesDecoder._delta,
    "content_block_start": MessagesDecoder._start,
    "content_block_stop": MessagesDecoder._stopped,
    "message_start": MessagesDecoder._begun,
    "message_delta": MessagesDecoder._message_delta,
    "message_stop": MessagesDecoder._end,
}

_DELTAS: dict[str, Callable[[MessagesDecoder, Block, JsonObject, list[s.Sample]], None]] = {
    "text_delta": MessagesDecoder._text_delta,
    "input_json_delta": MessagesDecoder._input,
    "thinking_delta": MessagesDecoder._thinking_delta,
    "signature_delta": MessagesDecoder._signature_delta,
    "citations_delta": MessagesDecoder._citation,
}
