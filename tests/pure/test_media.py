"""Media in content: what they are, when two are the same, and which URLs are links of ours."""

from __future__ import annotations

import base64
import hashlib
from dataclasses import replace

import pytest

from agui_bridge.content import content_in, content_out
from agui_bridge.links import Links, Signer, linked, linked_content
from runtime.items import same_words
from runtime.media import (
    blob_source,
    data_source,
    decoded,
    inline_of,
    kind_of,
    labelled,
    media_type_of,
    medium_id,
    text_in,
    with_sources,
)
from tests.pictures import JsonObject, inline, png, text

CAT = png(3, 16)
KEPT = blob_source("med_1", "d" * 64, "image/png", 7)
LINKS = Links(Signer(b"k" * 32, 60), "http://here.example/app", lambda: 1_700_000_000.0)


def image(source: JsonObject) -> JsonObject:
    return {"type": "image", "source": source}


@pytest.mark.parametrize(
    "written",
    [
        base64.b64encode(b"\xff\xfe?\x00").decode(),
        base64.urlsafe_b64encode(b"\xff\xfe?\x00").decode(),
        base64.b64encode(b"\xff\xfe?\x00").decode().rstrip("="),
        " //4\r\n/AA==\n",
    ],
)
def test_base64_is_read_however_it_is_written(written: str):
    assert decoded(written) == b"\xff\xfe?\x00"


@pytest.mark.parametrize("written", ["§", "abc$", "a", "ab=c"])
def test_what_is_no_base64_has_no_bytes(written: str):
    assert decoded(written) is None


def test_a_data_url_holds_its_bytes():
    url = {"type": "url", "value": f"data:image/png;charset=x;base64,{base64.b64encode(CAT).decode()}"}
    found = inline_of(url)
    assert found is not None
    assert (found.data, found.mime_type) == (CAT, "image/png")
    assert inline_of({"type": "url", "value": "data:text/plain,hello"}) is None
    assert inline_of({"type": "url", "value": "https://a.example/x"}) is None
    assert inline_of({"type": "file", "value": "abcd"}) is None


def test_the_same_bytes_are_the_same_words_wherever_they_are():
    data = data_source(CAT, "image/png")
    by_url = {"type": "url", "value": f"data:image/png;base64,{data['value']}"}
    kept = blob_source("med_2", "0", "image/jpeg", 1)
    digest = same_words([text("See"), image(data)])
    assert same_words([text("See"), image(by_url)]) == digest
    assert same_words([text("See"), image(replace_digest(kept, CAT))]) == digest
    assert same_words([text("See"), image(data_source(png(4, 16), "image/png"))]) != digest
    assert same_words([text("See"), image(KEPT)]) != same_words([text("See"), image({**KEPT, "digest": "e" * 64})])


def replace_digest(source: JsonObject, data: bytes) -> JsonObject:
    return {**source, "digest": hashlib.sha256(data).hexdigest()}


def test_a_mediums_id_tells_nothing_of_what_others_have():
    ids = {medium_id("thr_1", "d"), medium_id("thr_2", "d"), medium_id("thr_1", "e"), medium_id("thr_1", "d", "upl_1")}
    assert len(ids) == 4
    assert all(id_.startswith("med_") and "thr" not in id_ for id_ in ids)


def test_content_that_is_not_changed_stays_the_same_object():
    content = [text("a"), image(KEPT)]
    assert with_sources(content, lambda _: None) is content
    assert with_sources("words", lambda _: KEPT) == "words"


@pytest.mark.parametrize(
    ("said", "data", "is_"),
    [
        ("image/jpeg", CAT, "image/png"),
        ("", b"\xff\xd8\xff\xe0", "image/jpeg"),
        ("image/x", b"RIFF\0\0\0\0WEBPVP8 ", "image/webp"),
        ("text/plain", b"%PDF-1.4", "application/pdf"),
        ("Text/Markdown; charset=utf-8", b"# Hi", "text/markdown"),
        ("", b"?", ""),
        ("text/html\r\nset-cookie: a=b", b"?", ""),
    ],
)
def test_what_bytes_begin_with_is_trusted_more_than_what_is_said(said: str, data: bytes, is_: str):
    assert media_type_of(said, data) == is_


def test_each_media_type_has_its_kind_of_part():
    types = ("image/png", "audio/wav", "video/mp4", "application/pdf", "text/csv", "image/svg+xml")
    assert [kind_of(each) for each in types] == ["image", "audio", "video", "document", "document", "document"]


def test_text_is_found_in_what_is_text_alone():
    assert text_in("text/csv", b"\xef\xbb\xbfa,b") == "a,b"
    assert text_in("text/plain", "Grüße".encode("utf-16")) == "Grüße"
    assert text_in("application/vnd.x+json", b"{}") == "{}"
    assert text_in("text/plain", b"\xff\x41") == "\ufffdA"
    for media_type in ("application/pdf", "image/png", "application/octet-stream", ""):
        assert text_in(media_type, b"words") is None
    assert text_in("text/plain", b"  ") is None


def test_a_document_without_a_name_says_so():
    assert labelled("a", "", "text/csv").startswith("[Text of the document without a name (text/csv)]\na\n")


# --- links --------------------------------------------------------------------------------------------------------


def test_kept_media_are_told_as_links_wherever_they_are_shown():
    content = content_out([text("See"), image(KEPT), image(data_source(CAT, "image/png"))])
    events = [
        {"type": "TOOL_CALL_RESULT", "content": content},
        {"type": "MESSAGES_SNAPSHOT", "messages": [{"id": "u", "role": "user", "content": content}]},
        {"type": "TOOL_CALL_RESULT", "content": "words"},
    ]
    result, snapshot, words = linked(events, LINKS)
    for shown in (result["content"], snapshot["messages"][0]["content"]):
        assert shown[1]["source"] == {"type": "url", "value": LINKS("med_1"), "mimeType": "image/png"}
        assert shown[2] == inline(CAT)
    assert words["content"] == "words"
    assert linked(events, None) is events
    assert content_in(content)[1] == image(KEPT)
    assert linked_content("words", LINKS) == "words"


def test_a_link_of_ours_is_known_by_its_place_or_by_its_signature():
    link = LINKS("med_1")
    assert LINKS.id_in(link) == "med_1"
    assert LINKS.id_in("http://here.example/app/api/artifacts/med%201?expires=1") == "med 1"
    moved = replace(LINKS, base_url="https://elsewhere.example")
    assert moved.id_in(link) == "med_1", "it was told under another name of this server"
    assert replace(LINKS, now_s=lambda: 9e9).id_in(link) == "med_1", "its time is over"
    assert moved.id_in(link.replace("signature=", "signature=0")) is None
    for foreign in ("https://a.example/cat.png", "https://a.example/api/artifacts/med_1", "data:,x", "http://[", ""):
        assert LINKS.id_in(foreign) is None
    assert LINKS.id_in("http://here.example/app/api/artifacts/") is None
