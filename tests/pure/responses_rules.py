"""What the Responses API asks of a request's input, said once more and independently: a judge for tests."""

from __future__ import annotations

import itertools
import json
import re
from typing import Any

from runtime.canonical import JsonObject

CALLS = {"function_call": "function_call_output", "custom_tool_call": "custom_tool_call_output"}
OUTPUTS = {output: call for call, output in CALLS.items()}
SAID = {"user", "system"}


def judge(sent: list[JsonObject]) -> None:
    """Raises AssertionError for an input that the API would refuse."""
    json.dumps(sent).encode("utf-8")
    ids = [(one["type"], one["id"]) for one in sent if "id" in one]  # a local shell's output has the id of its call
    assert len(ids) == len(set(ids)), "an item stands twice"
    for one, following in itertools.zip_longest(sent, sent[1:]):
        match one["type"]:
            case "message":
                _message(one)
            case "function_call" | "custom_tool_call":
                _call(one)
            case "function_call_output" | "custom_tool_call_output":
                _content(one["output"], empty_text_is_fine=True)
            case "reasoning":
                _reasoning(one, following)
            case kind:
                _other(kind, one, sent)
    _pairs(sent)


def _message(one: JsonObject) -> None:
    assert one["role"] in {*SAID, "assistant"}
    assert one.get("phase", "commentary") in ("commentary", "final_answer")
    if one["role"] != "assistant":
        _content(one["content"], empty_text_is_fine=True)
        assert "phase" not in one
    elif isinstance(one["content"], list):
        assert [part["type"] for part in one["content"]] == ["refusal"]
        assert one["content"][0]["refusal"]
    else:
        assert one["content"], "an assistant message says something"


def _content(content: Any, *, empty_text_is_fine: bool) -> None:
    if isinstance(content, str):
        assert content or empty_text_is_fine
        return
    assert content, "a list of parts has parts"
    for part in content:
        assert part["type"] in ("input_text", "input_image", "input_file")
        if part["type"] == "input_text":
            assert part["text"]
        else:
            assert {"image_url", "file_id", "file_url", "file_data"} & {name for name, value in part.items() if value}


def _call(one: JsonObject) -> None:
    assert 1 <= len(one["call_id"]) <= 64
    assert re.fullmatch(r"[A-Za-z0-9_-]{1,64}", one["name"])
    if one["type"] == "function_call":
        assert isinstance(json.loads(one["arguments"]), dict)
    else:
        assert isinstance(one["input"], str)


def _reasoning(one: JsonObject, following: JsonObject | None) -> None:
    assert isinstance(one["summary"], list)
    assert one["encrypted_content"], "the server keeps nothing that an id could name"
    assert "content" not in one
    assert one.get("id", "rs") != ""
    assert following is not None
    assert following["type"] not in ("reasoning", *OUTPUTS)
    assert following.get("role", "assistant") == "assistant"


def _other(kind: str, one: JsonObject, sent: list[JsonObject]) -> None:
    if kind.endswith("_call") and "call_id" in one:
        assert any(other["type"] == f"{kind}_output" for other in sent)
    if kind.endswith("_output"):
        assert any(other["type"] == kind.removesuffix("_output") for other in sent)


def _pairs(sent: list[JsonObject]) -> None:
    """Each call has its one output, behind it, in call order, before anybody else speaks."""
    waiting: list[tuple[str, str]] = []
    seen: set[str] = set()
    for one in sent:
        if one["type"] in CALLS:
            assert one["call_id"] not in seen
            seen.add(one["call_id"])
            waiting.append((one["call_id"], one["type"]))
        elif one["type"] in OUTPUTS:
            assert waiting, "an output without a call"
            assert waiting.pop(0) == (one["call_id"], OUTPUTS[one["type"]])
        elif one["type"] == "message" and one["role"] in SAID:
            assert not waiting, "a call without an output"
    assert not waiting
