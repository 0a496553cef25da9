"""From a message of the native API to a run.

Pure. Here the server's history is the only one: a request brings one new message and nothing that could disagree with
what is stored, so there is nothing to reconcile. What still waits for a page is closed: who writes a new message has
gone on without answering.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final, TypeAlias, cast

from agui_bridge.content import content_in
from agui_bridge.run_input import MalformedInput, is_id, read_content
from runtime import events as e
from runtime.authority import Principal
from runtime.canonical import Json, JsonObject, clean_text, digest, digest_of
from runtime.ending import closing_output
from runtime.errors import InvalidInput
from runtime.items import Content
from runtime.journal import Idempotency, Session
from runtime.journal.catalogue import SessionChange
from runtime.journal.inbox import BUSY_POLICIES, REJECT
from runtime.pause import standing
from runtime.request import RunRequest
from runtime.thread import Thread
from runtime.titles import LONGEST

MAX_TITLE: Final = LONGEST
"""How many characters a title may have."""

MAX_KEY: Final = 255
"""How many characters an idempotency key may have."""

Members: TypeAlias = dict[str, Json]

_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_KEY = re.compile(r"[\x21-\x7e]+")


@dataclass(frozen=True, slots=True)
class NewMessage:
    """A message to be answered. `agent_id` names an agent for this send only; None is the session's own. `busy` says
    what becomes of it on a busy thread."""

    content: Content
    agent_id: str | None = None
    busy: str = REJECT


@dataclass(frozen=True, slots=True)
class NewSession:
    """A session to be made; without an `agent_id` the first agent is its default."""

    title: str | None = None
    agent_id: str | None = None


def new_message(document: Json) -> NewMessage:
    """The message in a request's document. Raises InvalidInput."""
    members = _members(document, "content", "agent_id", "busy")
    busy = members.get("busy", REJECT)
    if not isinstance(busy, str) or busy not in BUSY_POLICIES:
        raise _malformed("busy", " or ".join(f'"{policy}"' for policy in BUSY_POLICIES))
    return NewMessage(_content(members), _id_or_none(members, "agent_id"), busy)


def new_session(document: Json) -> NewSession:
    """The session in a request's document. Raises InvalidInput."""
    members = _members(document, "title", "agent_id")
    return NewSession(title_of(members), _id_or_none(members, "agent_id"))


def session_change(document: Json) -> SessionChange:
    """What a request's document wants changed: an absent member stays, a title of null is taken away.

    Raises InvalidInput.
    """
    members = _members(document, "title", "agent_id")
    if "agent_id" in members and members["agent_id"] is None:
        raise _malformed("agent_id", "the id of an agent")
    return SessionChange(_id_or_none(members, "agent_id"), title_of(members), retitle="title" in members)


def key_digest(key: str | None) -> str:
    """What is stored of an Idempotency-Key. Raises InvalidInput for none and for one that is none."""
    if key is None or len(key) > MAX_KEY or _KEY.fullmatch(key) is None:
        expected = f"1 to {MAX_KEY} printable ASCII characters without spaces, chosen anew for each message"
        raise InvalidInput(f"The header Idempotency-Key is required: {expected}.", details={"path": "Idempotency-Key"})
    return digest_of(key.encode())


def request_digest(session_id: str, message: NewMessage) -> str:
    """SHA-256 of what makes two requests the same one: what the client asked, not what became of it."""
    return digest([session_id, message.content, message.agent_id, *([message.busy] if message.busy != REJECT else [])])


def run_request(
    principal: Principal,
    session: Session,
    thread: Thread,
    message: NewMessage,
    agent_id: str,
    idempotency: Idempotency,
    now: int,
) -> RunRequest:
    """The run that answers `message` on `thread`, as it was read. It goes on whether anybody reads it or not."""
    return RunRequest(
        principal=principal,
        agent_id=agent_id,
        session_id=session.session_id,
        client_run_id=None,
        input_digest=idempotency.request_digest,
        base=thread.position,
        facts=facts_for(thread, message, idempotency.message_id, now),
        call_model=not standing(thread, now).waits,
        cancel_when_unread=False,
        idempotency=idempotency,
    )


def facts_for(thread: Thread, message: NewMessage, message_id: str, now: int) -> list[e.Event]:
    """The first facts of that run. While somebody is asked something the message is stored, and nothing is closed."""
    said = e.MessageCompleted(message_id, "user", message.content, digest(message.content))
    pause = standing(thread, now)
    if pause.waits:
        return [said]
    return [*pause.facts, *(closing_output(call, "unanswered") for call in thread.open_calls()), said]


def _members(document: Json, *known: str) -> Members:
    if not isinstance(document, dict):
        raise MalformedInput("The body must be an object.", details={"path": "", "expected": "an object"})
    members = cast("JsonObject", document)
    if unknown := [name for name in members if name not in known]:
        name = clean_text(str(unknown[0]))[:80]
        raise InvalidInput(f"There is no member {name!r}; known are {', '.join(known)}.", details={"path": f"/{name}"})
    return members


def _content(members: Members) -> Content:
    warnings: list[str] = []
    content = read_content(members.get("content"), "", "content", warnings)
    if warnings:  # of a page much is forgiven; who writes for this API is told
        raise InvalidInput(f"The content cannot be taken as it is: {warnings[0]}.", details={"path": "/content"})
    if not content:
        raise _malformed("content", "a text or a list of content parts, and not empty")
    return content_in(content)


def _id_or_none(members: Members, name: str) -> str | None:
    value = members.get(name)
    if value is None:
        return None
    if not is_id(value):
        raise _malformed(name, "the id of an agent")
    return value


def title_of(members: Members, name: str = "title") -> str | None:
    """The title in this member; None if there is none. Raises MalformedInput."""
    title = members.get(name)
    if title is None:
        return None
    if not isinstance(title, str) or not title.strip() or len(title) > MAX_TITLE or _CONTROL.search(title):
        raise _malformed(name, f"a text of 1 to {MAX_TITLE} characters in one line, or null")
    return clean_text(title)


def _malformed(name: str, expected: str) -> MalformedInput:
    return MalformedInput(f"/{name} must be {expected}.", details={"path": f"/{name}", "expected": expected})
