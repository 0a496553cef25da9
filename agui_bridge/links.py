"""Links to artifacts and media: absolute, signed, and good for a while, because an `<img>` sends no token.

Pure: key and time are given. A link names its artifact and its end, and the signature covers both. Links of one hour
are the same, so that a page that is told twice shows the same picture. What a page sends back of a link of ours is
known again by its place or its signature, be the link too old to be followed.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import parse_qs, quote, unquote, urlsplit

from agui_bridge.wire.events import AguiEvent
from runtime.canonical import Json, JsonObject
from runtime.media import BLOB, Parts, with_sources
from runtime.thread import ARTIFACT

PATH: Final = "/api/artifacts/"
KEY_BYTES: Final = 32
STEP_S: Final = 3600
"""Ends of links are whole hours."""

LinkOf: TypeAlias = Callable[[str], str]
"""From the id of an artifact or a medium to its link."""


@dataclass(frozen=True, slots=True)
class Signer:
    """Signs and checks links with `key`; a link is good for at least `ttl_s` seconds."""

    key: bytes
    ttl_s: float

    def link(self, base_url: str, artifact_id: str, now_s: float) -> str:
        """A link that is good from now on. `base_url` has no slash at its end."""
        expires = (int(now_s + self.ttl_s) // STEP_S + 1) * STEP_S
        signature = self._signature(artifact_id, expires)
        return f"{base_url}{PATH}{quote(artifact_id, safe='')}?expires={expires}&signature={signature}"

    def made(self, artifact_id: str, expires: str, signature: str) -> bool:
        """Whether these are the members of a link of ours, be it that its time is over."""
        if not (expires.isascii() and expires.isdecimal() and len(expires) <= 12 and signature.isascii()):
            return False
        return hmac.compare_digest(self._signature(artifact_id, int(expires)), signature)

    def accepts(self, artifact_id: str, expires: str, signature: str, now_s: float) -> bool:
        """Whether these are the members of a link of ours that is still good."""
        return self.made(artifact_id, expires, signature) and now_s < int(expires)

    def _signature(self, artifact_id: str, expires: int) -> str:
        said = f"artifact\n{artifact_id}\n{expires}".encode("utf-8", "surrogatepass")
        return hmac.new(self.key, said, hashlib.sha256).hexdigest()


@dataclass(frozen=True, slots=True)
class Links:
    """The links that one page is told, below `base_url`, which has no slash at its end; `now_s` is the time."""

    signer: Signer
    base_url: str
    now_s: Callable[[], float]

    def __call__(self, artifact_id: str) -> str:
        """The link to an artifact or a medium."""
        return self.signer.link(self.base_url, artifact_id, self.now_s())

    def id_in(self, url: str) -> str | None:
        """The id of what a URL is a link to, if it is one of ours: below `base_url`, or with a signature of ours."""
        before, found, rest = url.partition(PATH)
        if not found:
            return None
        try:
            parts = urlsplit(rest)
        except ValueError:
            return None
        id_, query = unquote(parts.path), parse_qs(parts.query)
        signed = self.signer.made(id_, query.get("expires", [""])[0], query.get("signature", [""])[0])
        return id_ if id_ and (signed or before == self.base_url) else None


def linked(events: Sequence[AguiEvent], link_of: LinkOf | None) -> Sequence[AguiEvent]:
    """The events with a `url` in whatever shows an artifact, and in the place of media that are kept; as they are
    without links."""
    if link_of is None or not any(event["type"] in _SHOWS for event in events):
        return events
    return [_linked(event, link_of) for event in events]


def _linked(event: AguiEvent, link_of: LinkOf) -> AguiEvent:
    if event["type"] == "MESSAGES_SNAPSHOT":
        return {**event, "messages": [_with_link(message, link_of) for message in event["messages"]]}
    return _with_link(event, link_of) if event["type"] in _SHOWS else event


def _with_link(shown: JsonObject, link_of: LinkOf) -> JsonObject:
    content: Json = shown.get("content")
    if isinstance(content, list):
        return {**shown, "content": linked_content(shown["content"], link_of)}
    if shown.get("activityType") != ARTIFACT:
        return shown
    return {**shown, "content": {**content, "url": link_of(content["id"])}}


def linked_content(content: Parts, link_of: LinkOf) -> Parts:
    """Content as AG-UI writes it, with links in the place of media that are kept."""

    def link(source: JsonObject) -> JsonObject | None:
        if source["type"] != BLOB:
            return None
        made: JsonObject = {"type": "url", "value": link_of(source["id"])}
        return made | ({"mimeType": source["mimeType"]} if source["mimeType"] else {})

    return with_sources(content, link)


_SHOWS: Final = frozenset({"MESSAGES_SNAPSHOT", "ACTIVITY_SNAPSHOT", "TOOL_CALL_RESULT"})
