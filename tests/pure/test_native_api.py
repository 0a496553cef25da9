"""What the native API makes of words from outside, always: cursors and bodies are taken whole or refused."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from contextlib import suppress
from typing import Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_bridge.messages import messages_of
from agui_bridge.native_intake import (
    NewMessage,
    facts_for,
    key_digest,
    new_message,
    new_session,
    request_digest,
    session_change,
)
from agui_bridge.transcript import transcript
from agui_bridge.web.paging import cursor, limit_of, message_of, place_of
from runtime.errors import InvalidCursor, InvalidInput
from runtime.items import FunctionCall, FunctionCallOutput, Message
from runtime.journal.catalogue import Place, SessionChange
from tests.pure.conversation import Conversation
from tests.pure.histories import Drawn

IDS = st.text(st.characters(exclude_categories=["Cc", "Cs"]), min_size=1, max_size=256)
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)


@given(st.integers(0, 2**63 - 1), IDS)
def test_a_cursor_leads_back_to_the_place_that_it_was_made_of(created_at: int, id_: str):
    assert place_of({"cursor": cursor(created_at, id_)}) == Place(created_at, id_)
    assert message_of({"cursor": cursor(id_)}) == id_


@given(st.text(max_size=40) | JSON.map(lambda value: urlsafe_b64encode(orjson.dumps(value)).decode()))
def test_a_cursor_from_elsewhere_is_a_place_or_refused(given_: str):
    for read in (place_of, message_of):
        try:
            found = read({"cursor": given_})
        except InvalidCursor:
            continue
        assert found is not None


@given(st.text(max_size=5))
def test_a_limit_is_a_number_of_a_page_or_refused(given_: str):
    try:
        assert 1 <= limit_of({"limit": given_}) <= 200
    except InvalidInput:
        assert given_ not in [str(number) for number in range(1, 201)]


@given(JSON | st.dictionaries(st.sampled_from(["content", "agent_id", "busy", "title"]), JSON))
def test_a_body_is_taken_or_refused_and_nothing_else(document: Any):
    for read in (new_message, new_session, session_change):
        with suppress(InvalidInput):
            read(document)


def test_what_is_absent_stays_and_what_is_null_is_taken_away():
    assert session_change({}) == SessionChange()
    assert session_change({"title": None}) == SessionChange(retitle=True)
    assert session_change({"title": "x", "agent_id": "b"}) == SessionChange("b", "x", retitle=True)
    with pytest.raises(InvalidInput):
        session_change({"agent_id": None})


def test_two_requests_are_the_same_when_they_ask_for_the_same():
    asked = request_digest("s1", NewMessage("hello"))
    assert asked == request_digest("s1", NewMessage("hello"))
    others = [
        request_digest("s2", NewMessage("hello")),
        request_digest("s1", NewMessage("hello ")),
        request_digest("s1", NewMessage("hello", "b")),
        request_digest("s1", NewMessage([{"type": "text", "text": "hello"}])),
    ]
    assert len({asked, *others}) == 5


def test_a_key_is_not_kept_as_it_is():
    assert key_digest("k") == key_digest("k") != key_digest("l")
    assert "secret" not in key_digest("secret")


# --- on histories of chance ---------------------------------------------------------------------------------------

STEPS = 5


@given(st.data())
def test_the_messages_of_any_thread_are_what_was_said_each_under_an_id_of_its_own(data: st.DataObject):
    conversation = Conversation(Drawn(data))
    thread = conversation.theatre.thread
    for _ in range(STEPS):
        conversation.step()
        messages = messages_of(thread, str.upper)
        ids = [message["message_id"] for message in messages]
        assert len(set(ids)) == len(ids)
        assert all(message["run_id"] in thread.agents for message in messages)
        assert all(message["agent_name"] == message["agent_id"].upper() for message in messages)
        shown = [line.message for line in transcript(thread)]
        assert _said_by("user", messages) == _said_by("user", shown)
        parts = [part for message in messages for part in message.get("parts", [])]
        spoken = "".join(part["text"] for part in parts if part["kind"] in ("text", "refusal"))
        assert spoken == "".join(message.get("content", "") for message in shown if message["role"] == "assistant")
        outputs = [item for item in thread.items() if isinstance(item, FunctionCallOutput)]
        results = [message for message in messages if message["role"] == "tool"]
        assert [result["tool_call_id"] for result in results] == [output.call_id for output in outputs]


def _said_by(role: str, messages: list[dict[str, Any]]) -> list[Any]:
    return [message["content"] for message in messages if message["role"] == role]


@given(st.data())
def test_a_new_message_leaves_no_call_open_on_any_thread(data: st.DataObject):
    conversation = Conversation(Drawn(data))
    thread = conversation.theatre.thread
    for _ in range(STEPS):
        conversation.step()
    for seq, fact in enumerate(facts_for(thread, NewMessage("hello"), "msg_new", 0), 1):
        thread.apply("run_new", thread.position, seq, fact)
    items = thread.items()
    assert thread.open_calls() == []
    assert isinstance(items[-1], Message)
    assert items[-1].content == "hello"
    called = [item.call_id for item in items if isinstance(item, FunctionCall)]
    answered = [item.call_id for item in items if isinstance(item, FunctionCallOutput)]
    assert sorted(called) == sorted(answered)
