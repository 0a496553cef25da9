"""What the README shows is what happens: its request, its agent, its page."""

from __future__ import annotations

import asyncio
import re
import sys
from pathlib import Path
from typing import Any

import orjson
import pytest

from agui_bridge.cli import _load
from agui_bridge.demo import demo_agent
from runtime.agent import Agent
from scripts.generate_example import normalised, request_of, shown
from tests.docs.pages import blocks, text_of
from tests.serving import ask, events_in, serving
from tests.toolchain import NODE_DIR, node


def readme(language: str) -> str:
    """The one block of this language in the README."""
    (text,) = [block.text for block in blocks(language) if block.page == "README.md"]
    return text


async def test_the_curl_command_gets_the_answer_that_stands_below_it() -> None:
    page = text_of("README.md")
    async with serving(demo_agent()) as served:
        answer = await served.run(request_of(page))
    assert answer.status == 200
    assert [event["type"] for event in events_in(shown(page).encode())] == answer.types
    assert normalised(shown(page)) == normalised(answer.body.decode())


async def test_the_second_curl_command_gets_the_rest_of_the_run() -> None:
    page = text_of("README.md")
    (query,) = re.findall(r"/api/agent-runs/RUN_ID/events(\?[\w=&]+)'", page)
    async with serving(demo_agent()) as served:
        first = await served.run(request_of(page))
        rest = await served.get(f"{first.headers['location']}/events{query}")
    assert rest.status == 200
    assert rest.body
    assert first.body.endswith(rest.body)
    assert len(rest.events) < len(first.events)


async def test_the_agent_in_the_readme_can_be_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "path", list(sys.path))
    code = readme("python")
    (name,) = re.findall(r"^# (\w+)\.py$", code, re.MULTILINE)
    (tmp_path / f"{name}.py").write_text(code, "utf-8")
    (target,) = re.findall(r"`agui-bridge serve (\S+)`", text_of("README.md"))
    sys.modules.pop(name, None)  # another test may have had a module of this name
    try:
        agent = _load(target)
        assert callable(sys.modules[name].app)
    finally:
        sys.modules.pop(name, None)
    assert isinstance(agent, Agent)
    rounds: dict[str, Any] = {"rounds": [{"tool_calls": [{"name": "note", "arguments": {"text": "milk"}}]}]}
    async with serving(agent) as served:
        answer = await served.run(ask(f"/script {orjson.dumps(rounds).decode()}"))
    states = [event["snapshot"] for event in answer.events if event["type"] == "STATE_SNAPSHOT"]
    results = [event["content"] for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]
    assert states == [{"notes": ["milk"]}]
    assert results == ["Noted."]


async def test_the_phrases_in_the_readme_show_what_it_says() -> None:
    (line,) = re.findall(
        r"^(`.+) show tools, state and reasoning;\n(?=`Research black tea`)", text_of("README.md"), re.M
    )
    async with serving(demo_agent()) as served:
        answers = [await served.run(ask(words, thread=words)) for words in re.findall(r"`([^`]+)`", line)]
        researched = await served.run(ask("Research black tea", thread="researched", protocolVersion="1.0"))
    seen = {type_ for answer in answers for type_ in answer.types}
    assert {"TOOL_CALL_RESULT", "STATE_SNAPSHOT", "REASONING_MESSAGE_CONTENT"} <= seen
    assert "SUBAGENT_FINISHED" in researched.types


@pytest.mark.needs_node
async def test_the_page_in_the_readme_connects_with_the_official_client() -> None:
    runtime = node()
    assert runtime is not None
    async with serving(demo_agent()) as served:
        code = readme("js").replace("http://127.0.0.1:8000", served.url)
        process = await asyncio.create_subprocess_exec(
            runtime,
            "--input-type=module",
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            cwd=NODE_DIR,
        )
        said, complained = await process.communicate(code.encode())
    assert process.returncode == 0, complained.decode()
    assert "".join(said.decode().splitlines()) == "Done, it is on your list."


def test_the_ids_in_an_answer_are_counted_so_that_two_answers_compare() -> None:
    first = f"run_{'a' * 32} msg_{'b' * 32} run_{'a' * 32}"
    second = f"run_{'c' * 32} msg_{'d' * 32} run_{'c' * 32}"
    assert normalised(first) == normalised(second) == "run_1 msg_2 run_1"
    assert normalised(f"run_{'a' * 32} run_{'b' * 32}") != normalised(f"run_{'a' * 32} run_{'a' * 32}")
