"""A history as the messages of Anthropic's API, which are valid whatever the history was.

Pure. User and assistant take turns, beginning with the user; the results of a turn's calls stand at the beginning of
the user's next message, in call order. No text is empty. Beyond that:

1. A thought goes back with its signature, or its encrypted value, to the provider that issued it. If one of a message
   cannot (it has no signature, nothing follows it, another block of the message had to go), none of that message does.
2. Blocks of the provider's own kinds go back as they came, at their place. The use of a server tool without a result
   stays only as long as no user has spoken since; a result without its use goes.
3. A text with citations takes the place of the same words at the end of the text before it.
4. A message that says nothing is said to be empty, so that later requests begin alike.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

import orjson

from runtime.canonical import JsonObject
from runtime.dialects.anthropic_media import parts_of
from runtime.dialects.history import NO_OUTPUT, Pairs, arguments_of, said_by_user
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, text_of

EMPTY = "(empty message)"
BEGINNING = "(The conversation begins with the assistant.)"
APPLICATION = "Instructions of the application:\n"

_BAD_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_GOOD_ID = re.compile(r"[A-Za-z0-9_-]{1,60}")
_LONGEST_NAME = 128
_THOUGHTS = frozenset({"thinking", "redacted_thinking"})
_NEVER_KEPT = frozenset({"tool_use", "tool_result", "image", "document", *_THOUGHTS})
_NOT_SENT_BACK = frozenset({"file_id"})
"""What a citation has in a response only."""


def wire_name(name: str) -> str:
    """A tool's name as the API accepts it."""
    return _BAD_IN_NAME.sub("_", name)[:_LONGEST_NAME] or "unnamed"


@dataclass(slots=True)
class _Said:
    """What the assistant says until somebody else speaks; `spoiled` when its thoughts may not go back."""

    blocks: list[JsonObject] = field(default_factory=list[JsonObject])
    spoiled: bool = False


class History:
    """The messages of one request, with the `system` texts that stand before them."""

    def __init__(self, items: Sequence[Item], provider: str, replay: str) -> None:
        self.system: list[str] = []
        self.messages: list[JsonObject] = []
        self.called: list[str] = []
        """The names of the tools that were called, each once."""
        self.ends: list[tuple[list[JsonObject], int]] = []
        """The places where a request may have ended: behind each message of the user, and behind results."""
        self._provider = provider
        self._pairs = Pairs(items)
        self._server = _ServerTools(items, provider, self._pairs)
        users = (at for at, item in enumerate(items) if isinstance(item, Message) and item.role == "user")
        self._replay_from = {"always": -1, "loop": max(users, default=-1)}.get(replay, len(items))
        self._write(items)

    @property
    def may_think(self) -> bool:
        """Whether thinking may be on: within a tool loop the API asks for the thought that began it."""
        first: list[JsonObject] = []
        for message in reversed(self.messages):
            if message["role"] == "assistant":
                first = message["content"]
            elif any(block["type"] != "tool_result" for block in message["content"]):
                break
        return all(block["type"] != "tool_use" for block in first) or first[0]["type"] in _THOUGHTS

    # --- messages -------------------------------------------------------------------------------------------------

    def _write(self, items: Sequence[Item]) -> None:
        said = _Said()
        for entry in _turns(items):
            if isinstance(entry, Message):
                self._close(said)
                said = _Said()
                self._spoken(entry)
                continue
            results: list[JsonObject] = []
            for at, item in entry:
                self._assistant(at, item, said, results)
            if results:
                self._close(said)
                said = _Said()
                self._add("user", results)
        self._close(said)
        if not self.messages or self.messages[0]["role"] == "assistant":
            text = BEGINNING if self.messages else EMPTY
            self.messages.insert(0, {"role": "user", "content": [_text(text)]})
        last = self.messages[-1]["content"][-1]
        if self.messages[-1]["role"] == "assistant" and last["type"] == "text":
            self.messages[-1]["content"][-1] = {**last, "text": last["text"].rstrip()}

    def _add(self, role: str, blocks: list[JsonObject]) -> None:
        if self.messages and self.messages[-1]["role"] == role:
            self.messages[-1]["content"] += blocks
        elif blocks:
            self.messages.append({"role": role, "content": blocks})
        if role == "user":
            content = cast("list[JsonObject]", self.messages[-1]["content"])
            self.ends.append((content, len(content) - 1))

    def _close(self, said: _Said) -> None:
        """The assistant's message is complete."""
        blocks = said.blocks
        if said.spoiled or (blocks and blocks[-1]["type"] in _THOUGHTS):
            blocks = [block for block in blocks if block["type"] not in _THOUGHTS]
        self._add("assistant", blocks)

    def _spoken(self, message: Message) -> None:
        if message.role == "system":
            text = text_of(message.content)
            if not self.messages:
                self.system.append(text)
            elif text.strip():
                self._add("user", [_text(APPLICATION + text)])
            return
        self._add("user", parts_of(said_by_user(message), self._provider) or [_text(EMPTY)])

    # --- the assistant --------------------------------------------------------------------------------------------

    def _assistant(self, at: int, item: Item, said: _Said, results: list[JsonObject]) -> None:
        if isinstance(item, Message):
            _say(said.blocks, text_of(item.content))
        elif isinstance(item, FunctionCall):
            call = self._call(item)
            said.blocks.append(call)
            results.append(self._result(call["id"], self._pairs.output(at)))
        elif isinstance(item, Reasoning) and item.provider == self._provider:
            kind = (item.opaque or {}).get("type")
            if isinstance(kind, str):
                self._kept(at, kind, dict(item.opaque or {}), said)
            elif at > self._replay_from:
                _think(said, item)

    def _kept(self, at: int, kind: str, block: JsonObject, said: _Said) -> None:
        if kind == "text":
            _cite(said.blocks, block)
        elif kind not in _NEVER_KEPT:
            if self._server.keeps(at, block):
                said.blocks.append(block)
            else:
                said.spoiled = True

    def _call(self, call: FunctionCall) -> JsonObject:
        opaque = dict(call.opaque) if call.opaque and call.provider == self._provider else {}
        caller = opaque.get("caller")
        used = cast("JsonObject", caller).get("tool_id") if isinstance(caller, dict) else None
        if used is not None and not self._server.has(used):
            del opaque["caller"]
        name = wire_name(call.name)
        if name not in self.called:
            self.called.append(name)
        good = call.call_id if _GOOD_ID.fullmatch(call.call_id) else _digest(call.call_id)
        return {
            **opaque,
            "type": "tool_use",
            "id": self._pairs.unique(good, joint="-"),
            "name": name,
            "input": orjson.loads(arguments_of(call)),
        }

    def _result(self, call_id: str, output: FunctionCallOutput | None) -> JsonObject:
        made: JsonObject = {"type": "tool_result", "tool_use_id": call_id}
        if output is None:
            return {**made, "content": NO_OUTPUT, "is_error": True}
        content = output.output
        if isinstance(content, str):
            sent: str | list[JsonObject] = content if content.strip() else ""
        else:
            parts = parts_of(content, self._provider)
            # The result of a failure may hold nothing but text.
            sent = [part for part in parts if part["type"] == "text" or not output.is_error] or ""
        if output.is_error:
            return {**made, "content": sent or "Error", "is_error": True}
        return {**made, "content": sent}


class _ServerTools:
    """The uses of the provider's own tools and their results: which of them may go back."""

    def __init__(self, items: Sequence[Item], provider: str, pairs: Pairs) -> None:
        self._kept: set[int] = set()
        self._ids: set[object] = set()
        open_uses: dict[str, int] = {}
        for at, item in enumerate(items):
            if isinstance(item, Message) and item.role != "assistant":
                open_uses.clear()
            if not isinstance(item, Reasoning) or item.provider != provider:
                continue
            block = item.opaque or {}
            used, id_ = block.get("tool_use_id"), block.get("id")
            if isinstance(used, str) and used in open_uses:
                self._keep(used, {at, open_uses.pop(used)})
            elif _is_use(block) and isinstance(id_, str) and _GOOD_ID.fullmatch(id_) and pairs.unique(id_) == id_:
                open_uses[id_] = at
        for id_, at in open_uses.items():  # nobody spoke since: the provider goes on with them
            self._keep(id_, {at})

    def _keep(self, id_: str, places: set[int]) -> None:
        self._kept |= places
        self._ids.add(id_)

    def keeps(self, at: int, block: JsonObject) -> bool:
        """Whether the block at this place of the history goes back."""
        return at in self._kept or not (_is_use(block) or "tool_use_id" in block)

    def has(self, id_: object) -> bool:
        """Whether the use with this id goes back."""
        return id_ in self._ids


def _is_use(block: JsonObject) -> bool:
    return str(block.get("type")).endswith("tool_use")


def _turns(items: Sequence[Item]) -> Iterator[Message | list[tuple[int, Item]]]:
    """User and system messages as they are; what the assistant did between them and its outputs, with its places."""
    turn: list[tuple[int, Item]] = []
    for at, item in enumerate(items):
        is_spoken = isinstance(item, Message) and item.role != "assistant"
        if not is_spoken and not isinstance(item, FunctionCallOutput):
            turn.append((at, item))
            continue
        if turn:
            yield turn
            turn = []
        if isinstance(item, Message):
            yield item
    if turn:
        yield turn


# --- blocks -------------------------------------------------------------------------------------------------------


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _say(blocks: list[JsonObject], text: str) -> None:
    """Add a text. White space alone is no text of its own: it goes to the text before it."""
    if text.strip():
        blocks.append(_text(text))
    elif blocks and blocks[-1]["type"] == "text":
        blocks[-1] = {**blocks[-1], "text": blocks[-1]["text"] + text}


def _cite(blocks: list[JsonObject], cited: JsonObject) -> None:
    """Put a text with citations in the place of the same words, which end what was said."""
    words, citations = cited.get("text"), cited.get("citations")
    said = blocks[-1] if blocks and blocks[-1]["type"] == "text" and "citations" not in blocks[-1] else None
    if said is None or not isinstance(words, str) or not words.strip() or not said["text"].endswith(words):
        return
    kept = [
        {name: value for name, value in cast("JsonObject", one).items() if name not in _NOT_SENT_BACK}
        for one in cast("list[object]", citations if isinstance(citations, list) else [])
        if isinstance(one, dict)
    ]
    if kept:
        blocks.pop()
        before = said["text"].removesuffix(words)
        count = len(blocks)
        _say(blocks, before)
        lost = before if len(blocks) == count and not (blocks and blocks[-1]["type"] == "text") else ""
        blocks.append({"type": "text", "text": lost + words, "citations": kept})


def _think(said: _Said, thought: Reasoning) -> None:
    if thought.signature:
        said.blocks.append({"type": "thinking", "thinking": thought.text, "signature": thought.signature})
    elif thought.encrypted_value:
        said.blocks.append({"type": "redacted_thinking", "data": thought.encrypted_value})
    elif thought.text:
        said.spoiled = True


def _digest(call_id: str) -> str:
    """An id in place of one that the API refuses."""
    return f"toolu_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"
