"""What programs may import: the names, their places, and that importing costs little."""

from __future__ import annotations

import importlib.metadata
import json
import subprocess
import sys
from inspect import signature

import pytest

import agui_bridge
from tests.serving import ask, listening
from tests.wire.sockets import post, unchunked, wire

NAMES = [
    "AfterRound",
    "AfterTool",
    "Answer",
    "BeforeRound",
    "BeforeTool",
    "ChangeArguments",
    "ChangeRequest",
    "Deny",
    "ReplaceResult",
    "Respond",
    "StopRun",
    "Timeouts",
    "after_round",
    "after_tool",
    "before_round",
    "before_tool",
    "ANONYMOUS",
    "Agent",
    "AguiBridgeError",
    "Bridge",
    "Budget",
    "Model",
    "Price",
    "Principal",
    "Settings",
    "Tool",
    "ToolContext",
    "ToolError",
    "__version__",
    "create_app",
    "keep_last_turns",
    "read_file_tool",
    "token_budget",
    "tool",
    "InterruptOpen",
    "RunEnd",
    "Untitled",
    "on_interrupt",
    "on_run_end",
    "session_title",
    "Activity",
    "Artifact",
    "Custom",
    "Done",
    "Failed",
    "FunctionCall",
    "FunctionCallOutput",
    "Interrupt",
    "Message",
    "MessageDone",
    "Reasoning",
    "LangGraphExecutor",
    "Remember",
    "RunContext",
    "State",
    "Text",
    "ToolCall",
    "ToolCallDelta",
    "ToolResult",
]
"""Adding a name here is a decision; taking one away breaks programs."""

HEAVY = ("starlette", "uvicorn", "openai", "httpx2", "pydantic", "pydantic_settings", "sqlite3", "ag_ui", "fastapi")


def test_the_public_names_are_these():
    assert sorted(agui_bridge.__all__) == sorted(NAMES)
    assert set(NAMES) <= set(dir(agui_bridge))


@pytest.mark.parametrize("name", NAMES)
def test_every_public_name_can_be_imported_and_is_described(name: str):
    value = getattr(agui_bridge, name)
    assert name in ("__version__", "ANONYMOUS") or value.__doc__


def test_another_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="module 'agui_bridge' has no attribute 'nothing'"):
        _ = agui_bridge.nothing


def test_the_version_is_the_installed_one():
    assert agui_bridge.__version__ == importlib.metadata.version("agui-bridge")


def test_the_import_loads_nothing_heavy():
    code = "import agui_bridge, json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(json.loads(done.stdout))
    assert [name for name in HEAVY if name in loaded] == []
    assert not [name for name in loaded if name.startswith("runtime.")]


def test_a_tool_can_be_written_without_a_web_framework():
    code = "from agui_bridge import Agent, ToolContext, tool; import json, sys; print(json.dumps(sorted(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert not {"starlette", "openai", "pydantic_settings", "uvicorn"} & set(json.loads(done.stdout))


def test_the_arguments_of_the_two_doors_are_these():
    assert list(signature(agui_bridge.create_app).parameters) == [
        "agents",
        "store",
        "settings",
        "authenticate",
        "agent_path",
    ]
    assert list(signature(agui_bridge.Bridge).parameters) == [
        "agents",
        "store",
        "settings",
        "authenticate",
        "agent_path",
        "loopback",
        "page",
    ]
    assert list(signature(agui_bridge.Bridge.handle).parameters) == ["self", "request", "agent", "connect"]
    assert list(signature(agui_bridge.Bridge.stream).parameters) == [
        "self",
        "run_input",
        "agent",
        "principal",
        "connect",
    ]


EXAMPLE = '''
from agui_bridge import Agent, ToolContext, create_app, tool

@tool
async def send_email(ctx: ToolContext, to: str, subject: str, body: str) -> str:
    """Send a mail."""
    return f"sent to {to}"

agent = Agent("assistant", model="openai-chat:gpt-5-mini", instructions="Be brief.", tools=[send_email])
app = create_app(agent)
'''


async def test_the_ten_line_example_makes_an_app_that_serves(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("OPENAI_API_KEY", "none")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")  # nobody is there
    monkeypatch.setenv("AGUI_BRIDGE_STORE", "memory:")
    monkeypatch.setenv("AGUI_BRIDGE_MODEL_RETRIES", "0")
    names: dict[str, object] = {"__name__": "my_app"}
    exec(compile(EXAMPLE, "my_app.py", "exec", dont_inherit=True), names)
    async with listening(names["app"]) as url, wire(url) as client:
        await client.send(post(ask("hello")))
        body = unchunked(await client.rest())
    assert b'"type":"RUN_STARTED"' in body
    assert b'"type":"RUN_ERROR"' in body
    assert b'"code":"provider_unavailable"' in body


@pytest.mark.parametrize(
    ("agents", "why"),
    [
        ([], "at least one agent"),
        ({"a/connect": agui_bridge.Agent("a", model="scripted")}, "cannot be named"),
        ({"": agui_bridge.Agent("a", model="scripted")}, "cannot be named"),
        ([agui_bridge.Agent("a", model="scripted"), agui_bridge.Agent("a", model="scripted")], "same name"),
        (agui_bridge.Agent("a"), "has no model"),
        (agui_bridge.Agent("a", model="gpt"), "no model 'gpt'"),
        (agui_bridge.Agent("a", model="scripted", model_options={"x": object()}), "no JSON"),
    ],
)
def test_agents_that_cannot_be_served_are_refused_when_the_app_is_made(agents: object, why: str):
    with pytest.raises(agui_bridge.AguiBridgeError, match=why) as refused:
        agui_bridge.create_app(agents, store="memory:")  # pyright: ignore[reportArgumentType]
    assert refused.value.code == "configuration_error"
