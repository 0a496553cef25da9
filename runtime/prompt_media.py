"""The media of a prompt: loaded where the model takes them, told as text where they are text, left out otherwise.

It waits for bytes; what a format has a place for is the dialect's to say, what a kind of media is `media`'s. Nothing
that a history holds ends a run here: what cannot be used is left out, in the log and once a run in the journal.
"""

from __future__ import annotations

import logging
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import Final

from runtime import events as e
from runtime.canonical import JsonObject, clean_text, digest
from runtime.fetched_media import fetch, is_allowed
from runtime.hook_runner import HookRunner
from runtime.hooks import HookError
from runtime.items import Content, FunctionCallOutput, Item, Message
from runtime.media import (
    BLOB,
    Inline,
    data_source,
    inline_of,
    kind_of,
    labelled,
    media_type_of,
    name_of,
    source_of,
    text_in,
)
from runtime.models import Receiving
from runtime.scope import RunScope

log = logging.getLogger("agui_bridge.media")

LEFT_OUT: Final = "agui-bridge.media_left_out"
"""The name of the `custom` event that says which media the model was not shown, and why."""

_ANY_BYTES: Final = b"a"
"""Stands for bytes that are not loaded yet: whether a format has a place for a part does not depend on them."""


class _Unusable(Exception):
    """The part is left out; says why."""

    def __init__(self, reason: str) -> None:
        super().__init__(reason)
        self.reason = reason


class PromptMedia:
    """Prepares the history of one run for its model, round after round."""

    def __init__(self, scope: RunScope, hooks: HookRunner) -> None:
        self._scope = scope
        self._hooks = hooks
        given, model = scope.agent.input_media, scope.model
        known = model.input_media if isinstance(model, Receiving) else None
        self._kinds: Collection[str] | None = known if given is None else given
        self._fetched: dict[str, Inline | None] = {}
        self._texts: dict[str, str | None] = {}
        self._left_out: list[JsonObject] = []
        self._has_told = False

    async def prepared(self, items: Sequence[Item]) -> list[Item]:
        """The items with media that the model can be sent. Raises StoreError, and what stopped the run."""
        self._left_out = []
        made = [await self._item(item) for item in items]
        if self._left_out and not self._has_told:
            self._has_told = True  # the history goes on holding them: once is enough
            log.warning("run %s: the model was not shown %s", self._scope.run.run_id, self._left_out)
            self._scope.log.emit([e.Custom(LEFT_OUT, {"parts": self._left_out})])
        return made

    async def _item(self, item: Item) -> Item:
        if isinstance(item, Message) and not isinstance(item.content, str):
            return replace(item, content=await self._content(item.content, in_output=False))
        if isinstance(item, FunctionCallOutput) and not isinstance(item.output, str):
            return replace(item, output=await self._content(item.output, in_output=True))
        return item

    async def _content(self, content: list[JsonObject], *, in_output: bool) -> Content:
        made: list[JsonObject] = []
        for part in content:
            source = source_of(part)
            if source is None:
                made.append(part)
                continue
            try:
                made.append(await self._part(part, source, in_output))
            except _Unusable as unusable:
                told = {"type": part["type"], "reason": unusable.reason}
                of = {"name": name_of(part), "media_type": source.get("mime_type")}
                self._left_out.append(told | {name: value for name, value in of.items() if value})
        return made

    async def _part(self, part: JsonObject, source: JsonObject, in_output: bool) -> JsonObject:
        inline = await self._inline(source)
        if inline is None and source["type"] != BLOB:  # a URL or a provider's file: as it is, or not at all
            if not self._takes(part, part["type"], in_output):
                raise _Unusable(f"the model takes no {part['type']} by {source['type']}")
            return part
        said = source.get("mime_type") or ""
        media_type = said if inline is None else media_type_of(inline.mime_type or said, inline.data)
        kind = kind_of(media_type) if media_type else part["type"]
        sample = {**part, "type": kind, "source": data_source(_ANY_BYTES, media_type)}
        takes = self._takes(sample, kind, in_output)
        if not takes and kind != "document" and self._scope.agent.extract_text is None:
            raise _Unusable(f"the model takes no {media_type or kind}")
        data = inline.data if inline is not None else await self._loaded(source)
        if takes:
            return {**sample, "source": data_source(data, media_type)}
        text = await self._text(media_type, data, digest(source))
        if text is None:
            raise _Unusable(f"the model takes no {media_type or kind}, and no text is known of it")
        return {"type": "text", "text": labelled(text, name_of(part), media_type)}

    def _takes(self, part: JsonObject, kind: str, in_output: bool) -> bool:
        received = self._kinds is None or kind in self._kinds
        return received and self._scope.model.dialect.takes(part, in_output=in_output)

    async def _inline(self, source: JsonObject) -> Inline | None:
        """The bytes that are in the source, or that may be fetched for it. Raises _Unusable for data that are none."""
        inline = inline_of(source)
        if inline is not None:
            if not inline.data:
                raise _Unusable("it is empty")
            return inline
        if source["type"] == "data":
            raise _Unusable("it is no base64")
        url, limits = str(source.get("value")), self._scope.limits
        if source["type"] != "url" or not is_allowed(url, limits.fetch_media_from):
            return None
        if url not in self._fetched:
            self._fetched[url] = await fetch(url, limits.most_media_bytes)
        return self._fetched[url]

    async def _loaded(self, source: JsonObject) -> bytes:
        data = await self._scope.media.load(source)
        if data is None:
            raise _Unusable("its bytes are gone")
        return data

    async def _text(self, media_type: str, data: bytes, key: str) -> str | None:
        """The text of a document, as far as anybody can read it."""
        if key not in self._texts:
            text = text_in(media_type, data)
            if text is None:
                try:
                    text = await self._hooks.extract_text(media_type, data)
                except HookError as error:
                    raise _Unusable("its text could not be extracted") from error
            self._texts[key] = clean_text(text) if text and text.strip() else None
        return self._texts[key]
