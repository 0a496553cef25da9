"""The media of a request: what is large is referred to by its digest, and what refers to what we have is looked up.

It waits for the store. It comes before the histories are reconciled, so that a picture that is restated, inline or by
the link that a page was told, is the one that is stored; and its bytes are kept before the run begins that speaks of
them, and only if a new fact does. Nothing is fetched here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Final, TypeAlias

from agui_bridge.content import content_in, content_out
from agui_bridge.run_input import RunInput
from runtime import events as e
from runtime.authority import Principal
from runtime.canonical import JsonObject
from runtime.errors import InvalidInput
from runtime.items import Content
from runtime.media import source_of, with_sources
from runtime.media_shelf import MediaShelf, MediumNotFound, Referred
from runtime.sessions import owner_of

PROVIDER: Final = "agui-bridge"
"""The `provider` of a `file` source that names an upload of ours."""

IdIn: TypeAlias = Callable[[str], str | None]
"""From a URL to the id of the artifact or medium that it is a link to, if it is one of ours."""


class MediaIntake:
    """Reads the media of requests. Every method may raise StoreError."""

    def __init__(self, shelf: MediaShelf, id_in: IdIn) -> None:
        self._shelf = shelf
        self._id_in = id_in

    async def take(
        self, run_input: RunInput, principal: Principal, thread_id: str, *, strict: bool = True
    ) -> tuple[RunInput, Referred]:
        """The request as this thread would have it, and what it refers to. Raises MediumNotFound (unless not `strict`),
        InvalidInput."""
        referred: Referred = {}
        messages: list[JsonObject] = []
        for message in run_input.messages:
            content = message.get("content")
            if isinstance(content, list):
                given = content_in(content)
                made = await self.content(given, principal, thread_id, referred, strict=strict)
                message = message if made is given else {**message, "content": content_out(made)}
            messages.append(message)
        if not referred:
            return run_input, referred
        is_large = any(given.data is not None for given in referred.values())
        return replace(run_input, messages=messages, has_large_media=is_large), referred

    async def content(
        self, content: Content, principal: Principal, thread_id: str, referred: Referred, *, strict: bool = True
    ) -> Content:
        """One content, and into `referred` what it refers to. Raises as `take`."""
        if isinstance(content, str):
            return content
        made, inline = await self._shelf.refer(thread_id, content)
        _refuse_large(made, 2 * self._shelf.inline_bytes)
        referred.update(inline)
        known: dict[str, JsonObject] = {}
        for given_id in {id_ for part in content if (id_ := self._named(source_of(part))) is not None}:
            try:
                known[given_id], given = await self._shelf.given(principal, thread_id, given_id)
            except MediumNotFound:
                if strict:
                    raise
            else:
                referred[known[given_id]["id"]] = given
        return with_sources(made, lambda source: known.get(self._named(source) or ""))

    def _named(self, source: JsonObject | None) -> str | None:
        """The id by which a source refers to what we have."""
        if source is None:
            return None
        if source["type"] == "file" and source.get("provider") == PROVIDER:
            return source["value"]
        return self._id_in(source["value"]) if source["type"] == "url" else None

    async def keep(self, facts: Iterable[e.Event], principal: Principal, thread_id: str, referred: Referred) -> None:
        """Have all that these facts refer to kept. Raises MediumNotFound."""
        for content in contents_of(facts) if referred else ():
            await self._shelf.keep(owner_of(principal), thread_id, content, referred)


def contents_of(facts: Iterable[e.Event]) -> Sequence[Content]:
    """The contents that a client's request brought into these facts."""
    contents: list[Content] = []
    for fact in facts:
        match fact:
            case e.MessageCompleted(content=content):
                contents.append(content)
            case e.ToolCallCompleted(result=content):
                contents.append(content)
            case e.HistorySeeded(messages):
                contents += [message["content"] for message in messages if "content" in message]
            case _:
                pass
    return contents


def _refuse_large(content: Content, most: int) -> None:
    """Whatever is large and inline still is no base64: nobody could keep it. Small data that are none are left out when
    the model is asked."""
    for part in content if not isinstance(content, str) else ():
        value = str((source_of(part) or {}).get("value", ""))
        if len(value) > most and (part["source"]["type"] == "data" or value[:5].lower() == "data:"):
            raise InvalidInput("The data of media must be base64.", details={"path": "/messages", "type": part["type"]})
