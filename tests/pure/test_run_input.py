"""What a run input may look like. The schema of AG-UI 1.0 is the oracle: what it accepts, `parse` accepts."""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator

from agui_bridge.content import content_in, content_out
from agui_bridge.run_input import MAX_DEPTH, MalformedInput, RunInput, input_digest, parse
from runtime.canonical import canonical

Doc = dict[str, Any]

_SCHEMA: Doc = json.loads((Path(__file__).parents[2] / "agui_check" / "schema-1.0.json").read_text("utf-8"))
VALID = Draft202012Validator({"$defs": _SCHEMA["$defs"], "$ref": "#/$defs/RunAgentInput"})

PIXEL = {"type": "data", "value": "iVBORw0KGgo=", "mimeType": "image/png"}


def an_input(*messages: Doc, **members: Any) -> Doc:
    return {"threadId": "t1", "runId": "r1", "messages": list(messages), **members}


def a_user(content: Any = "Hi", **members: Any) -> Doc:
    return {"id": "u1", "role": "user", "content": content, **members}


def the_refusal(document: object) -> MalformedInput:
    with pytest.raises(MalformedInput) as caught:
        parse(document)
    return caught.value


def as_document(run_input: RunInput) -> Doc:
    """The input as AG-UI would write it: what an echo would show."""
    members = {
        "threadId": run_input.thread_id,
        "runId": run_input.run_id,
        "protocolVersion": run_input.protocol_version,
        "parentRunId": run_input.parent_run_id,
        "state": run_input.state,
        "messages": run_input.messages,
        "tools": run_input.tools,
        "context": run_input.context,
        "forwardedProps": run_input.forwarded_props,
        "resume": run_input.resume,
    }
    return {name: value for name, value in members.items() if value is not None}


# --- what must be there and what may be absent --------------------------------------------------


@pytest.mark.requirement("R-040")
def test_thread_run_and_messages_are_all_that_an_input_needs():
    run_input = parse(an_input())
    assert run_input == RunInput("t1", "r1", [], warnings=[])
    assert (run_input.tools, run_input.context, run_input.state, run_input.resume) == ([], [], None, None)


@pytest.mark.parametrize("name", ["threadId", "runId", "messages"])
def test_a_missing_required_member_is_refused_with_its_path(name: str):
    document = an_input()
    del document[name]
    refusal = the_refusal(document)
    assert (refusal.status, refusal.code, refusal.details["path"]) == (422, "invalid_input", f"/{name}")


@pytest.mark.parametrize("state", [[1, 2], 5, "x", 0, False, "", {}, 1.5])
@pytest.mark.requirement("R-048")
def test_state_may_be_any_value(state: object):
    assert canonical(parse(an_input(state=state)).state) == canonical(state)


@pytest.mark.requirement("R-046")
def test_no_tools_and_empty_tools_are_the_same_request():
    assert input_digest(parse(an_input(a_user()))) == input_digest(parse(an_input(a_user(), tools=[], context=[])))


@pytest.mark.requirement("R-050")
def test_forwarded_props_keep_the_nulls_inside():
    assert parse(an_input(forwardedProps={"a": None, "b": [None]})).forwarded_props == {"a": None, "b": [None]}


@pytest.mark.parametrize("payload", [False, 0, "", {}, []])
def test_a_resume_payload_may_be_falsy(payload: object):  # C-151
    entry = {"interruptId": "i1", "status": "resolved", "payload": payload}
    assert parse(an_input(resume=[entry])).resume == [entry]


def test_reasoning_and_activity_messages_are_known_shapes():
    messages = [
        {"id": "rs1", "role": "reasoning", "content": "hm", "encryptedValue": "E=="},
        {"id": "x1", "role": "activity", "activityType": "PLAN", "content": {"a": [1, None]}},
    ]
    run_input = parse(an_input(*messages))
    assert (run_input.messages, run_input.warnings) == (messages, [])


# --- what AG-UI does not know is left out -------------------------------------------------------


@pytest.mark.requirement("R-053")
def test_unknown_members_are_left_out_everywhere_with_a_warning():
    call = {"id": "c1", "type": "function", "function": {"name": "f", "arguments": "{}", "x": 1}, "x": 1}
    document = an_input(
        a_user([{"type": "image", "source": {**PIXEL, "x": 1}, "x": 1}], x=1),
        {"id": "a1", "role": "assistant", "toolCalls": [call]},
        x=1,
        tools=[{"name": "t", "description": "d", "x": 1}],
        context=[{"description": "d", "value": "v", "x": 1}],
        resume=[{"interruptId": "i", "status": "cancelled", "x": 1}],
    )
    run_input = parse(document)
    assert VALID.is_valid(as_document(run_input))
    assert sorted(warning.partition(":")[0] for warning in run_input.warnings) == [
        "/context/0/x",
        "/messages/0/content/0/source/x",
        "/messages/0/content/0/x",
        "/messages/0/x",
        "/messages/1/toolCalls/0/function/x",
        "/messages/1/toolCalls/0/x",
        "/resume/0/x",
        "/tools/0/x",
        "/x",
    ]


def test_a_path_in_a_warning_is_a_json_pointer():
    assert parse(an_input(**{"a/b~c": 1})).warnings[0].startswith("/a~1b~0c:")


def test_a_flood_of_unknown_members_makes_a_short_list_of_warnings():
    warnings = parse(an_input(**{f"x{n}": 1 for n in range(5_000)}, **{"y" * 9_000: 1})).warnings
    assert len(warnings) == 101
    assert max(map(len, warnings)) < 200


def test_a_message_of_an_unknown_role_is_left_out():
    run_input = parse(an_input({"role": "oracle", "id": 5}, a_user()))
    assert run_input.messages == [a_user()]
    assert run_input.warnings == ["/messages/0/role: unknown value 'oracle', left out"]


def test_a_content_part_of_an_unknown_type_is_left_out():
    run_input = parse(an_input(a_user([{"type": "hologram"}, {"type": "text", "text": "a"}])))
    assert run_input.messages[0]["content"] == [{"type": "text", "text": "a"}]


@pytest.mark.requirement("R-054")
def test_a_part_whose_source_is_of_an_unknown_type_is_left_out_whole():
    run_input = parse(an_input(a_user([{"type": "image", "source": {"type": "cloud", "value": "x"}}])))
    assert run_input.messages[0]["content"] == []
    assert run_input.warnings == ["/messages/0/content/0/source/type: unknown value 'cloud', left out"]


@pytest.mark.parametrize(
    ("mime_type", "part_type"),
    [
        ("image/png", "image"),
        ("AUDIO/wav", "audio"),
        ("video/mp4", "video"),
        ("application/pdf", "document"),
        ("text/plain", "document"),
    ],
)
@pytest.mark.requirement("R-059")
def test_a_retired_binary_part_is_read_by_its_media_type(mime_type: str, part_type: str):
    run_input = parse(an_input(a_user([{"type": "binary", "mimeType": mime_type, "data": "AA=="}])))
    source = {"type": "data", "value": "AA==", "mimeType": mime_type}
    assert run_input.messages[0]["content"] == [{"type": part_type, "source": source}]
    assert run_input.warnings == [f"/messages/0/content/0: retired binary part, read as {part_type}"]


def test_a_retired_binary_part_keeps_its_url_and_its_file_name():
    part = {"type": "binary", "mimeType": "image/png", "url": "https://x/y.png", "id": "f", "filename": "y.png"}
    assert parse(an_input(a_user([part]))).messages[0]["content"] == [
        {
            "type": "image",
            "source": {"type": "url", "value": "https://x/y.png", "mimeType": "image/png"},
            "metadata": {"filename": "y.png"},
        }
    ]


@pytest.mark.parametrize(
    "rest", [{"id": "file-1", "mimeType": "image/png"}, {"data": "AA=="}, {"mimeType": 5, "data": "AA=="}]
)
def test_a_retired_binary_part_that_nobody_can_read_is_left_out(rest: Doc):
    run_input = parse(an_input(a_user([{"type": "binary", **rest}])))
    assert run_input.messages[0]["content"] == []
    assert len(run_input.warnings) == 1


def test_a_tool_call_without_a_type_is_a_function_call():
    call = {"id": "c1", "function": {"name": "f", "arguments": "{"}}
    run_input = parse(an_input({"id": "a1", "role": "assistant", "toolCalls": [call]}))
    assert run_input.messages[0]["toolCalls"] == [{"id": "c1", "type": "function", "function": call["function"]}]


def test_of_messages_with_one_id_the_last_is_kept():
    run_input = parse(an_input(a_user("old"), {"id": "a1", "role": "assistant"}, a_user("new")))
    assert run_input.messages == [{"id": "a1", "role": "assistant"}, a_user("new")]
    assert run_input.warnings == ["message 'u1' is given more than once, the last is kept"]


# --- what is malformed is refused ---------------------------------------------------------------

MALFORMED: list[tuple[object, str]] = [
    ("x", ""),
    ([], ""),
    (None, ""),
    (an_input(threadId=5), "/threadId"),
    (an_input(messages="x"), "/messages"),
    (an_input(messages={}), "/messages"),
    (an_input(tools={}), "/tools"),
    (an_input(tools=None), "/tools"),
    (an_input(tools=[{"name": "t"}]), "/tools/0/description"),
    (an_input(tools=[{"name": "t", "description": "d", "metadata": []}]), "/tools/0/metadata"),
    (an_input(context=[{"description": "d", "value": 5}]), "/context/0/value"),
    (an_input(protocolVersion=1.0), "/protocolVersion"),
    (an_input(parentRunId=None), "/parentRunId"),
    (an_input(resume=None), "/resume"),
    (an_input(resume=[{"interruptId": "i", "status": "maybe"}]), "/resume/0/status"),
    (an_input(resume=[{"interruptId": "", "status": "resolved"}]), "/resume/0/interruptId"),
    (an_input(messages=["x"]), "/messages/0"),
    (an_input({"role": "user", "content": "Hi"}), "/messages/0/id"),
    (an_input({"id": "u1", "content": "Hi"}), "/messages/0/role"),
    (an_input({"id": "u1", "role": None, "content": "Hi"}), "/messages/0/role"),
    (an_input(a_user(None)), "/messages/0/content"),
    (an_input(a_user({"type": "text", "text": "a"})), "/messages/0/content"),
    (an_input(a_user(["a"])), "/messages/0/content/0"),
    (an_input(a_user([{"text": "a"}])), "/messages/0/content/0/type"),
    (an_input(a_user([{"type": "text", "text": "a", "metadata": None}])), "/messages/0/content/0/metadata"),
    (an_input(a_user([{"type": "image"}])), "/messages/0/content/0/source"),
    (
        an_input(a_user([{"type": "image", "source": {"type": "data", "value": "x"}}])),
        "/messages/0/content/0/source/mimeType",
    ),
    (an_input(a_user(metadata=None)), "/messages/0/metadata"),
    (an_input(a_user(name=None)), "/messages/0/name"),
    (an_input({"id": "a", "role": "assistant", "content": None}), "/messages/0/content"),
    (an_input({"id": "a", "role": "assistant", "content": []}), "/messages/0/content"),
    (an_input({"id": "s", "role": "system", "content": []}), "/messages/0/content"),
    (an_input({"id": "o", "role": "tool", "content": "x"}), "/messages/0/toolCallId"),
    (an_input({"id": "x", "role": "activity", "activityType": "p", "content": "x"}), "/messages/0/content"),
    (
        an_input({"id": "a", "role": "assistant", "toolCalls": [{"id": "c", "function": {"name": "f"}}]}),
        "/messages/0/toolCalls/0/function/arguments",
    ),
    (
        an_input({"id": "a", "role": "assistant", "toolCalls": [{"id": "c", "type": "custom"}]}),
        "/messages/0/toolCalls/0/type",
    ),
]


@pytest.mark.parametrize(("document", "path"), MALFORMED, ids=[path or "/" for _, path in MALFORMED])
@pytest.mark.requirement("R-055", "R-056")
def test_a_malformed_member_is_refused_with_its_path(document: object, path: str):
    refusal = the_refusal(document)
    assert (refusal.status, refusal.code, refusal.details["path"]) == (422, "invalid_input", path)
    assert refusal.details["expected"] in refusal.message


@pytest.mark.requirement("R-057")
def test_snake_case_names_are_unknown():
    assert the_refusal({"thread_id": "t", "run_id": "r", "messages": []}).details["path"] == "/threadId"


@pytest.mark.requirement("R-056")
def test_a_retired_null_is_read_as_absent():
    document = an_input(
        a_user([{"type": "image", "source": PIXEL, "metadata": None}]),
        state=None,
        forwardedProps=None,
        tools=[{"name": "t", "description": "d", "parameters": None}],
        resume=[{"interruptId": "i", "status": "resolved", "payload": None}],
    )
    run_input = parse(document)
    assert VALID.is_valid(as_document(run_input))
    assert (run_input.state, run_input.forwarded_props) == (None, None)
    assert run_input.tools == [{"name": "t", "description": "d"}]
    assert run_input.resume == [{"interruptId": "i", "status": "resolved"}]
    assert run_input.messages[0]["content"] == [{"type": "image", "source": PIXEL}]
    assert all(warning.endswith("null is read as absent") for warning in run_input.warnings)


@pytest.mark.parametrize("bad", ["", "a" * 257, "a\nb", "\x00", "a\x7f", "a\x85b", "\ud800", 5])
def test_an_id_has_1_to_256_characters_without_control_characters(bad: object):
    call = {"id": bad, "type": "function", "function": {"name": "f", "arguments": ""}}
    for document, path in [
        (an_input(threadId=bad), "/threadId"),
        (an_input(runId=bad), "/runId"),
        (an_input(a_user(id=bad)), "/messages/0/id"),
        (an_input({"id": "a", "role": "assistant", "toolCalls": [call]}), "/messages/0/toolCalls/0/id"),
        (an_input({"id": "o", "role": "tool", "content": "", "toolCallId": bad}), "/messages/0/toolCallId"),
        (an_input(resume=[{"interruptId": bad, "status": "resolved"}]), "/resume/0/interruptId"),
    ]:
        assert the_refusal(document).details["path"] == path


@pytest.mark.parametrize("good", ["a", "a" * 256, "é😀", "a b", "\u00a0", "\u2028"])
def test_an_id_may_have_any_other_characters(good: str):
    assert parse(an_input(threadId=good)).thread_id == good


# --- text that cannot be encoded, and depth --------------------------------------------------------------------------


def test_a_lone_surrogate_becomes_the_replacement_character():  # C-132
    text, cleaned = "a\ud83dé", "a�é"
    document = an_input(
        a_user(text),
        a_user([{"type": "text", "text": text, "metadata": {text: [text]}}], id="u2"),
        state={text: text},
        forwardedProps=text,
        context=[{"description": text, "value": text}],
        **{text: 1},
    )
    run_input = parse(document)
    assert run_input.messages[0]["content"] == cleaned
    assert run_input.messages[1]["content"][0] == {"type": "text", "text": cleaned, "metadata": {cleaned: [cleaned]}}
    assert (run_input.state, run_input.forwarded_props) == ({cleaned: cleaned}, cleaned)
    canonical(as_document(run_input))
    canonical(run_input.warnings)


def test_numbers_that_no_reader_can_keep_are_made_safe():
    """A lenient decoder lets through what JSON cannot write, and integers that no store holds."""
    run_input = parse(an_input(state={"a": float("nan"), "b": 10**30, "c": 2**63 - 1}))
    assert run_input.state == {"a": None, "b": str(10**30), "c": 2**63 - 1}
    assert the_refusal(an_input(state=float("inf"))).details["path"] == "/state"


def nested(levels: int) -> Any:
    value: Any = 1
    for level in range(levels):
        value = {"a": value} if level % 2 else [value]
    return value


@pytest.mark.parametrize("name", ["state", "forwardedProps", "unheardOf"])
def test_a_document_may_be_a_hundred_levels_deep_and_no_deeper(name: str):
    parse(an_input(**{name: nested(MAX_DEPTH - 1)}))
    for levels in (MAX_DEPTH, 50_000):
        refusal = the_refusal(an_input(**{name: nested(levels)}))
        assert (refusal.status, refusal.code, refusal.details["path"]) == (422, "too_deep", f"/{name}")


@pytest.mark.parametrize(
    "document",
    [
        an_input(a_user(metadata={"a": nested(50_000)})),
        an_input({"role": "oracle", "a": nested(50_000)}),
        an_input(a_user([{"type": "hologram", "a": nested(50_000)}])),
        an_input(a_user([{"type": "binary", "a": nested(50_000)}])),
        an_input({"id": "x", "role": "activity", "activityType": "p", "content": {"a": nested(50_000)}}),
        an_input(tools=[{"name": "t", "description": "d", "parameters": nested(50_000)}]),
        an_input(resume=[{"interruptId": "i", "status": "resolved", "payload": nested(50_000)}]),
    ],
)
def test_depth_is_refused_wherever_it_hides(document: Doc):
    assert the_refusal(document).code == "too_deep"


# --- versions ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("version", ["1.0", None])
def test_our_version_and_no_version_are_served_silently(version: str | None):
    run_input = parse(an_input() if version is None else an_input(protocolVersion=version))
    assert (run_input.protocol_version, run_input.warnings) == (version, [])


@pytest.mark.parametrize(
    ("version", "said"),
    [
        ("1.1", "newer"),
        ("1.10", "newer"),
        ("2.0", "another line"),
        ("0.9", "another line"),
        ("banana", "no version"),
        ("1", "no version"),
        ("1.0.0", "no version"),
        ("", "no version"),
        ("1.٣", "no version"),
        ("1." + "9" * 5_000, "no version"),
    ],
)
def test_any_other_version_is_served_with_a_warning(version: str, said: str):
    run_input = parse(an_input(protocolVersion=version))
    assert run_input.protocol_version == version
    assert [said in warning for warning in run_input.warnings] == [True]


# --- the digest -------------------------------------------------------------------------------------------------------


def test_the_digest_is_blind_to_ids_of_the_run_to_order_and_to_unknown_members():
    one = parse(an_input(a_user(), state={"a": 1, "b": 2}, protocolVersion="1.0"))
    other = parse(
        {
            "runId": "r2",
            "x": 1,
            "state": {"b": 2, "a": 1},
            "messages": [dict(reversed(a_user(x=1).items()))],
            "threadId": "t2",
        }
    )
    assert input_digest(one) == input_digest(other)


@pytest.mark.parametrize(
    "other",
    [
        an_input(a_user("Ho")),
        an_input(a_user(), state=1),
        an_input(a_user(), tools=[{"name": "t", "description": "d"}]),
        an_input(a_user(), context=[{"description": "d", "value": "v"}]),
        an_input(a_user(), forwardedProps={}),
        an_input(a_user(), resume=[{"interruptId": "i", "status": "cancelled"}]),
    ],
)
def test_the_digest_sees_everything_that_makes_another_request(other: Doc):
    assert input_digest(parse(an_input(a_user()))) != input_digest(parse(other))


# --- content ----------------------------------------------------------------------------------------------------------


def test_content_is_spelled_in_the_runtimes_way_and_back():
    agui = [
        {"type": "text", "id": "p1", "text": "a", "metadata": {"mimeType": "kept"}},
        {"type": "image", "source": PIXEL},
        {"type": "video", "source": {"type": "url", "value": "https://x"}},
        {"type": "document", "source": {"type": "file", "value": "f", "provider": "p", "mimeType": "m"}, "metadata": 1},
    ]
    inside = content_in(agui)
    assert inside[1] == {
        "type": "image",
        "source": {"type": "data", "value": "iVBORw0KGgo=", "mime_type": "image/png"},
    }
    assert inside[0] == agui[0]
    assert [list(part) for part in content_out(inside)] == [list(part) for part in agui]
    assert content_out(inside) == agui
    assert content_out(content_in("text")) == "text"


# --- the schema as oracle --------------------------------------------------------------------------------------------

texts = st.text(st.characters(codec="utf-8"), max_size=8)
ids = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=8)
scalars = (
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False) | texts
)
values = st.recursive(
    scalars, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3), max_leaves=6
)
not_null = values.filter(lambda value: value is not None)
objects = st.dictionaries(texts, values, max_size=3)


def an_object(required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]) -> Any:
    return st.fixed_dictionaries(required, optional=optional)


def tagged(
    tag: str, value: str, required: dict[str, st.SearchStrategy[Any]], **optional: st.SearchStrategy[Any]
) -> Any:
    return an_object({tag: st.just(value), **required}, **optional)


sources = st.one_of(
    tagged("type", "data", {"value": texts, "mimeType": texts}),
    tagged("type", "url", {"value": texts}, mimeType=texts),
    tagged("type", "file", {"value": texts}, mimeType=texts, provider=texts),
)
parts = st.one_of(
    tagged("type", "text", {"text": texts}, id=texts, metadata=not_null),
    *(
        tagged("type", media, {"source": sources}, id=texts, metadata=not_null)
        for media in ("image", "audio", "video", "document")
    ),
)
contents = texts | st.lists(parts, max_size=3)
calls = an_object(
    {
        "id": ids,
        "type": st.just("function"),
        "function": st.fixed_dictionaries({"name": texts, "arguments": texts}),
    },
    encryptedValue=texts,
    metadata=objects,
)
_record: dict[str, Any] = {"metadata": objects, "subagentRunId": texts}
_sealed: dict[str, Any] = {**_record, "encryptedValue": texts}
_speaker: dict[str, Any] = {**_sealed, "name": texts}
messages = st.one_of(
    tagged("role", "developer", {"id": ids, "content": texts}, **_speaker),
    tagged("role", "system", {"id": ids, "content": texts}, **_speaker),
    tagged("role", "assistant", {"id": ids}, content=texts, toolCalls=st.lists(calls, max_size=2), **_speaker),
    tagged("role", "user", {"id": ids, "content": contents}, **_speaker),
    tagged("role", "tool", {"id": ids, "content": contents, "toolCallId": ids}, error=texts, **_sealed),
    tagged("role", "activity", {"id": ids, "activityType": texts, "content": objects}, **_record),
    tagged("role", "reasoning", {"id": ids, "content": texts}, **_sealed),
)
tools = an_object({"name": texts, "description": texts}, parameters=not_null, metadata=objects)
entries = an_object(
    {"interruptId": ids, "status": st.sampled_from(["resolved", "cancelled"])}, payload=not_null, metadata=objects
)
inputs = an_object(
    {
        "threadId": ids,
        "runId": ids,
        "messages": st.lists(messages, max_size=3, unique_by=lambda message: message["id"]),
    },
    protocolVersion=st.just("1.0") | texts,
    parentRunId=texts,
    state=not_null,
    tools=st.lists(tools, max_size=2),
    context=st.lists(st.fixed_dictionaries({"description": texts, "value": texts}), max_size=2),
    forwardedProps=not_null,
    resume=st.lists(entries, max_size=2),
)


@settings(deadline=None)
@given(inputs)
def test_what_the_schema_accepts_is_accepted_unchanged(document: Doc):
    assert VALID.is_valid(document)
    run_input = parse(copy.deepcopy(document))
    expected = {"tools": [], "context": [], **document}
    assert canonical(as_document(run_input)) == canonical(expected)
    assert all(warning.startswith("/protocolVersion:") for warning in run_input.warnings)


def places(value: Any) -> list[tuple[Any, Any]]:
    """Every container of a document with each of its keys or indexes."""
    keys: list[Any] = list(value) if isinstance(value, dict) else list(range(len(value)))
    found = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], dict | list):
            found += places(value[key])
    return found


@settings(deadline=None)
@given(inputs, st.data())
def test_near_the_schema_an_input_is_refused_or_comes_out_clean(document: Doc, data: st.DataObject):
    """One change to a valid document: never another exception, and nothing that the schema would refuse is let in."""
    container, key = data.draw(st.sampled_from(places(document)))
    match data.draw(st.sampled_from(["delete", "replace", "null", "retype", "extend"])):
        case "delete":
            del container[key]
        case "replace":
            container[key] = data.draw(values | parts | messages)
        case "null":
            container[key] = None
        case "retype":
            assume(isinstance(container, dict))
            container["type" if "type" in container else "role"] = data.draw(texts)
        case _:
            assume(isinstance(container, dict))
            container[data.draw(texts)] = data.draw(values)
    before = copy.deepcopy(document)
    try:
        run_input = parse(document)
    except MalformedInput as refusal:
        refused_for_an_id = refusal.details["expected"].startswith("a string of 1 to 256")
        assert refused_for_an_id or not VALID.is_valid(before)
    else:
        assert VALID.is_valid(as_document(run_input))
        assert canonical(document) == canonical(before)
