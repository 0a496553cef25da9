"""Links to artifacts: absolute, signed, and good for a while, because an `<img>` sends no token.

Pure: key and time are given. A link names its artifact and its end, and the signature covers both. Links of one hour
are the same, so that a page that is told twice shows the same picture.
"""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Final, TypeAlias
from urllib.parse import quote

from agui_bridge.wire.events import AguiEvent
from runtime.canonical import JsonObject
from runtime.thread import ARTIFACT

PATH: Final = "/api/artifacts/"
KEY_BYTES: Final = 32
STEP_S: Final = 3600
"""Ends of links are whole hours."""

LinkOf: TypeAlias = Callable[[str], str]
"""From an artifact's id to its link."""


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

    def accepts(self, artifact_id: str, expires: str, signature: str, now_s: float) -> bool:
        """Whether these are the members of a link of ours that is still good."""
        if not (expires.isascii() and expires.isdecimal() and len(expires) <= 12 and signature.isascii()):
            return False
        good = hmac.compare_digest(self._signature(artifact_id, int(expires)), signature)
        return good and now_s < int(expires)

    def _signature(self, artifact_id: str, expires: int) -> str:
        said = f"artifact\n{artifact_id}\n{expires}".encode("utf-8", "surrogatepass")
        return hmac.new(self.key, said, hashlib.sha256).hexdigest()


def linked(events: Sequence[AguiEvent], link_of: LinkOf | None) -> Sequence[AguiEvent]:
    """The events with a `url` in whatever shows an artifact; as they are without links."""
    if link_of is None or not any(event["type"] in _SHOWS for event in events):
        return events
    return [_linked(event, link_of) for event in events]


def _linked(event: AguiEvent, link_of: LinkOf) -> AguiEvent:
    if event["type"] == "MESSAGES_SNAPSHOT":
        return {**event, "messages": [_with_link(message, link_of) for message in event["messages"]]}
    return _with_link(event, link_of) if event["type"] in _SHOWS else event


def _with_link(shown: JsonObject, link_of: LinkOf) -> JsonObject:
    if shown.get("activityType") != ARTIFACT:
        return shown
    content = shown["content"]
    return {**shown, "content": {**content, "url": link_of(content["id"])}}


_SHOWS: Final = frozenset({"MESSAGES_SNAPSHOT", "ACTIVITY_SNAPSHOT"})
