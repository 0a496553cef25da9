"""The Chat Completions dialect, of OpenAI and of the many servers that speak it in their own way.

Pure: chunks in, samples out. What a request looks like is in `openai_chat_request`, how call fragments become calls
in `call_fragments`. Servers differ in nearly everything; the decoder holds to this:

1. Nothing is committed before `finish()`, and there only with evidence: a finish reason or `[DONE]`. The first finish
   reason counts, except that a later `length` or `content_filter` outweighs it.
2. Whether a round has calls is decided by the calls, never by the finish reason.
3. `length` with a call commits no call, `content_filter` commits nothing, `refusal` without refusal text neither.
4. A field of another type than expected says nothing. An `error` member always says something.
5. The same thought in several fields is one thought. What belongs to it and must go back (`reasoning_details`) is
   kept in `ReasoningDone.opaque`.
6. Usage replaces earlier usage, wherever it stands.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import cast

import orjson

from runtime import samples as s
from runtime.canonical import Json, JsonObject, clean, clean_text
from runtime.dialects import DONE
from runtime.dialects.call_fragments import CallFragments
from runtime.dialects.faults import provider_error
from runtime.dialects.openai_chat_request import encode, takes
from runtime.dialects.openai_usage import usage_of
from runtime.dialects.surrogates import Halves
from runtime.dialects.think import Piece, ThinkTags
from runtime.errors import ProtocolError, ProviderError
from runtime.items import Item, ToolSpec

_FINISH = {
    "stop": "stop",
    "tool_calls": "tool_calls",
    "function_call": "tool_calls",
    "length": "length",
    "max_tokens": "length",
    "model_length": "length",
    "model_context_window_exceeded": "length",
    "content_filter": "content_filter",
    "sensitive": "content_filter",
    "refusal": "refusal",
}
_OUTWEIGHS = frozenset({"length", "content_filter"})
_SAYS_MORE = frozenset({"reasoning_content", "reasoning", "reasoning_details", "refusal"})
_FAILED = frozenset({"error", "insufficient_system_resource", "network_error"})
"""Finish reasons that are failures of the provider."""


class OpenAIChat:
    """The dialect. `provider` is who issued the signatures that we send back.

    `think_tags` parts text around <think> tags (see `think`), `starts_in_thinking` says that the server's template
    wrote the opening tag. What `encode` understands of its options is described there.
    """

    def __init__(self, provider: str = "openai", *, think_tags: bool = True, starts_in_thinking: bool = False) -> None:
        self.name = "openai-chat"
        self.provider = provider
        self.think_tags = think_tags
        self.starts_in_thinking = starts_in_thinking

    def takes(self, part: JsonObject, *, in_output: bool) -> bool:
        """See `Dialect.takes`."""
        return takes(part, self.provider, in_output=in_output)

    def encode(self, items: Sequence[Item], tools: Sequence[ToolSpec], options: JsonObject) -> JsonObject:
        """The request for this history; see `openai_chat_request.encode`."""
        return encode(items, tools, options, self.provider)

    def decoder(self, declared: Collection[str]) -> ChatDecoder:
        """A fresh decoder for one response to a request that declared these tool names."""
        tags = ThinkTags(starts_in_thinking=self.starts_in_thinking) if self.think_tags else None
        return ChatDecoder(declared, tags)


class ChatDecoder:
    """Turns the chunks of one response into samples."""

    def __init__(self, declared: Collection[str], tags: ThinkTags | None = None) -> None:
        self._tags = tags
        self._calls = CallFragments(declared)
        self._text = Halves()
        self._refusal = Halves()
        self._thought = Halves()
        self._thinking = False  # whether a reasoning part is open
        self._details: list[JsonObject] = []
        self._has_text = False
        self._has_refusal = False
        self._finish: str | None = None
        self._done = False
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
            return self._chunk(chunk)
        except (RecursionError, orjson.JSONEncodeError) as error:
            raise ProtocolError("The provider sent a value that is nested too deeply.") from error

    def finish(self) -> list[s.Sample]:
        """The commits and the end. Raises ProtocolError `stream_cut` if the stream ended without evidence."""
        if self._finish is None and not self._done:
            raise ProtocolError("The provider's stream ended in the middle.", code="stream_cut", retryable=True)
        out = self._say_rest()
        calls = self._calls.settle()
        out += calls
        finish = self._finish or "stop"
        refused = finish == "refusal" and not self._has_refusal
        if finish != "content_filter" and not refused:
            if self._has_text or self._has_refusal:
                out.append(s.AssistantMessageDone())
            if finish != "length":
                out += self._calls.commit()
        if finish in ("stop", "tool_calls"):
            finish = "tool_calls" if calls or self._calls.any else "stop"
        out.append(s.Completed(finish, self._usage, self._response_id, self._model))
        return out

    # --- a chunk --------------------------------------------------------------------------------------------------

    def _chunk(self, chunk: Json) -> list[s.Sample]:
        if not isinstance(chunk, dict):
            raise ProtocolError("The provider sent a chunk that is no JSON object.")
        chunk = cast("JsonObject", chunk)
        if chunk == DONE:
            self._done = True
            return []
        if chunk.get("error") or chunk.get("object") == "error":
            raise provider_error(chunk)
        if self._response_id is None:
            self._response_id = _word(chunk.get("id"))
        if self._model is None:
            self._model = _word(chunk.get("model"))
        if "usage" in chunk:
            self._count(chunk["usage"])
        if "x_groq" in chunk and isinstance(groq := chunk["x_groq"], dict):
            self._count(cast("JsonObject", groq).get("usage"))
        choices = chunk.get("choices")
        out: list[s.Sample] = []
        if isinstance(choices, list):
            for choice in cast("list[Json]", choices):
                if isinstance(choice, dict):
                    self._choice(cast("JsonObject", choice), out)
        return out

    def _choice(self, choice: JsonObject, out: list[s.Sample]) -> None:
        if choice.get("index") not in (0, None):
            return
        if choice.get("error"):
            raise provider_error(choice)
        delta = choice.get("delta")
        if isinstance(delta, dict):
            self._delta(cast("JsonObject", delta), out)
        if "usage" in choice:
            self._count(choice["usage"])
        reason = choice.get("finish_reason")
        if reason and isinstance(reason, str):
            self._reason(clean_text(reason))

    def _reason(self, reason: str) -> None:
        word = reason.lower()
        if word in _FAILED:
            raise ProviderError(
                "The provider could not complete the answer.",
                code=provider_error({"code": word}).code,
                details={"finish_reason": reason},
                retryable=True,
            )
        finish = _FINISH.get(word, reason)
        if self._finish is None or (finish in _OUTWEIGHS and self._finish not in _OUTWEIGHS):
            self._finish = finish

    def _delta(self, delta: JsonObject, out: list[s.Sample]) -> None:
        content = delta.get("content")
        if len(delta) == 1 and isinstance(content, str):  # the hot case
            self._say_text(content, out)
            return
        thought, text, refusal = "", "", ""
        if content:
            thought, text, refusal = _contents(content)
        if not _SAYS_MORE.isdisjoint(delta):
            thought = self._thought_of(delta) or thought
            refusal = refusal or _plain(delta.get("refusal"))
        if thought:
            self._think(self._thought.feed(thought), out)
        if text:
            self._say_text(text, out)
        if refusal:
            self._refuse(self._refusal.feed(refusal), out)
        fragments = delta.get("tool_calls")
        legacy = delta.get("function_call")
        if not fragments and isinstance(legacy, dict) and legacy:
            fragments = [{"index": -1, "function": cast("JsonObject", legacy)}]
        if fragments:
            self._call(fragments, out)

    def _call(self, fragments: Json, out: list[s.Sample]) -> None:
        deltas = self._calls.feed(fragments)
        if deltas:
            if self._tags is not None:
                self._partition(self._tags.finish(), out)
            self._end_thought(out)
            out += deltas

    # --- text -----------------------------------------------------------------------------------------------------

    def _say_text(self, text: str, out: list[s.Sample]) -> None:
        text = self._text.feed(text)
        if not text:
            return
        if self._tags is None:
            self._partition([("text", text)], out)
        else:
            self._partition(self._tags.feed(text), out)

    def _partition(self, pieces: list[Piece], out: list[s.Sample]) -> None:
        for kind, piece in pieces:
            if kind == "text":
                if self._thinking or self._details:
                    self._end_thought(out)
                self._has_text = True
                out.append(s.TextDelta(piece))
            else:
                self._think(piece, out)

    def _refuse(self, text: str, out: list[s.Sample]) -> None:
        if text:
            self._end_thought(out)
            self._has_refusal = True
            out.append(s.RefusalDelta(text))

    def _say_rest(self) -> list[s.Sample]:
        """What was held back for what might have come."""
        out: list[s.Sample] = []
        self._think(self._thought.finish(), out)
        lonely = self._text.finish()
        if self._tags is not None:
            self._partition(self._tags.feed(lonely) if lonely else [], out)
            self._partition(self._tags.finish(), out)
        elif lonely:
            self._partition([("text", lonely)], out)
        self._refuse(self._refusal.finish(), out)
        self._end_thought(out)
        return out

    # --- reasoning ------------------------------------------------------------------------------------------------

    def _think(self, text: str, out: list[s.Sample]) -> None:
        if text:
            self._thinking = True
            out.append(s.ReasoningDelta(text))

    def _thought_of(self, delta: JsonObject) -> str:
        details = _objects(delta.get("reasoning_details"))
        for detail in details:
            _merge_detail(self._details, clean(detail))
        for field in ("reasoning_content", "reasoning"):
            if text := _plain(delta.get(field)):
                return text
        return "".join(_plain(detail.get("text")) or _plain(detail.get("summary")) for detail in details)

    def _end_thought(self, out: list[s.Sample]) -> None:
        """Something else begins: the thought is complete, with all that belongs to it."""
        if not self._thinking and not self._details:
            return
        details, self._details, self._thinking = self._details, [], False
        signature = next((_word(detail.get("signature")) for detail in details if detail.get("signature")), None)
        encrypted = next((_word(detail.get("data")) for detail in details if detail.get("data")), None)
        out.append(s.ReasoningDone(signature, encrypted, {"reasoning_details": details} if details else None))

    # --- usage ----------------------------------------------------------------------------------------------------

    def _count(self, usage: Json) -> None:
        if isinstance(usage, dict) and (counts := usage_of(cast("JsonObject", usage))):
            self._usage = counts


def _merge_detail(details: list[JsonObject], detail: JsonObject) -> None:
    """Add a streamed reasoning detail: pieces of the same one (index and type) become one."""
    last = details[-1] if details else None
    if last is None or any(last.get(name) != detail.get(name) for name in ("index", "type")):
        details.append(detail)
        return
    for name, value in detail.items():
        if name in ("text", "summary", "data") and isinstance(value, str) and isinstance(last.get(name), str):
            last[name] += value
        elif value is not None:
            last[name] = value


def _contents(content: Json) -> tuple[str, str, str]:
    """Reasoning, text and refusal of a `content`, which is text or a list of typed parts."""
    if isinstance(content, str):
        return "", content, ""
    thought: list[str] = []
    text: list[str] = []
    refusal: list[str] = []
    for part in cast("list[Json]", content) if isinstance(content, list) else [content]:
        if isinstance(part, str):
            text.append(part)
        elif isinstance(part, dict):
            fields = cast("JsonObject", part)
            thought.append(_plain(fields.get("thinking")) or _plain(fields.get("reasoning")))
            text.append(_plain(fields.get("text")))
            refusal.append(_plain(fields.get("refusal")))
    return "".join(thought), "".join(text), "".join(refusal)


def _plain(value: Json) -> str:
    """The text of a value: itself, or that of the typed parts in it."""
    if isinstance(value, str):
        return value
    return "".join(text for part in _objects(value) if isinstance(text := part.get("text"), str))


def _objects(value: Json) -> list[JsonObject]:
    values = cast("list[Json]", value) if isinstance(value, list) else [value]
    return [cast("JsonObject", one) for one in values if isinstance(one, dict)]


def _word(value: Json) -> str | None:
    return clean_text(value) if isinstance(value, str) and value else None
