"""agui-bridge: a stateful session runtime for agents, behind AG-UI.

Everything public is here. `runtime` is the package below: it knows nothing of AG-UI or HTTP.
"""

from __future__ import annotations

import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agui_bridge._version import __version__

if TYPE_CHECKING:
    from agui_bridge.bridge import Bridge, create_app
    from agui_bridge.settings import Settings
    from runtime.agent import Agent
    from runtime.authority import ANONYMOUS, Principal
    from runtime.budget import Budget, Price
    from runtime.errors import AguiBridgeError
    from runtime.executors.context import RunContext
    from runtime.executors.langgraph import LangGraphExecutor
    from runtime.executors.words import (
        Activity,
        Artifact,
        Custom,
        Done,
        Failed,
        Interrupt,
        MessageDone,
        Reasoning,
        Remember,
        State,
        Text,
        ToolCall,
        ToolCallDelta,
        ToolResult,
    )
    from runtime.history_policy import keep_last_turns, token_budget
    from runtime.hooks import (
        AfterRound,
        AfterTool,
        Answer,
        BeforeRound,
        BeforeTool,
        ChangeArguments,
        ChangeRequest,
        Deny,
        InterruptOpen,
        ReplaceResult,
        Respond,
        RunEnd,
        StopRun,
        Untitled,
        after_round,
        after_tool,
        before_round,
        before_tool,
        on_interrupt,
        on_run_end,
        session_title,
    )
    from runtime.items import FunctionCall, FunctionCallOutput, Message
    from runtime.models import Model
    from runtime.timeouts import Timeouts
    from runtime.tools.context import ToolContext
    from runtime.tools.files import read_file_tool
    from runtime.tools.toolbox import Tool, ToolError, tool

_PLACES = {
    "ANONYMOUS": "runtime.authority",
    "Activity": "runtime.executors.words",
    "AfterRound": "runtime.hooks",
    "AfterTool": "runtime.hooks",
    "Agent": "runtime.agent",
    "AguiBridgeError": "runtime.errors",
    "Answer": "runtime.hooks",
    "Artifact": "runtime.executors.words",
    "BeforeRound": "runtime.hooks",
    "BeforeTool": "runtime.hooks",
    "Bridge": "agui_bridge.bridge",
    "Budget": "runtime.budget",
    "ChangeArguments": "runtime.hooks",
    "ChangeRequest": "runtime.hooks",
    "Custom": "runtime.executors.words",
    "Deny": "runtime.hooks",
    "Done": "runtime.executors.words",
    "Failed": "runtime.executors.words",
    "FunctionCall": "runtime.items",
    "FunctionCallOutput": "runtime.items",
    "Interrupt": "runtime.executors.words",
    "InterruptOpen": "runtime.hooks",
    "Message": "runtime.items",
    "MessageDone": "runtime.executors.words",
    "Model": "runtime.models",
    "Price": "runtime.budget",
    "Principal": "runtime.authority",
    "Reasoning": "runtime.executors.words",
    "Remember": "runtime.executors.words",
    "ReplaceResult": "runtime.hooks",
    "Respond": "runtime.hooks",
    "LangGraphExecutor": "runtime.executors.langgraph",
    "RunContext": "runtime.executors.context",
    "RunEnd": "runtime.hooks",
    "Untitled": "runtime.hooks",
    "Settings": "agui_bridge.settings",
    "State": "runtime.executors.words",
    "StopRun": "runtime.hooks",
    "Text": "runtime.executors.words",
    "Timeouts": "runtime.timeouts",
    "Tool": "runtime.tools.toolbox",
    "ToolCall": "runtime.executors.words",
    "ToolCallDelta": "runtime.executors.words",
    "ToolContext": "runtime.tools.context",
    "ToolError": "runtime.tools.toolbox",
    "ToolResult": "runtime.executors.words",
    "after_round": "runtime.hooks",
    "after_tool": "runtime.hooks",
    "before_round": "runtime.hooks",
    "before_tool": "runtime.hooks",
    "create_app": "agui_bridge.bridge",
    "keep_last_turns": "runtime.history_policy",
    "on_interrupt": "runtime.hooks",
    "on_run_end": "runtime.hooks",
    "session_title": "runtime.hooks",
    "read_file_tool": "runtime.tools.files",
    "token_budget": "runtime.history_policy",
    "tool": "runtime.tools.toolbox",
}

__all__ = [
    "ANONYMOUS",
    "Activity",
    "AfterRound",
    "AfterTool",
    "Agent",
    "AguiBridgeError",
    "Answer",
    "Artifact",
    "BeforeRound",
    "BeforeTool",
    "Bridge",
    "Budget",
    "ChangeArguments",
    "ChangeRequest",
    "Custom",
    "Deny",
    "Done",
    "Failed",
    "FunctionCall",
    "FunctionCallOutput",
    "Interrupt",
    "InterruptOpen",
    "LangGraphExecutor",
    "Message",
    "MessageDone",
    "Model",
    "Price",
    "Principal",
    "Reasoning",
    "Remember",
    "ReplaceResult",
    "Respond",
    "RunContext",
    "RunEnd",
    "Settings",
    "State",
    "StopRun",
    "Text",
    "Timeouts",
    "Tool",
    "ToolCall",
    "ToolCallDelta",
    "ToolContext",
    "ToolError",
    "ToolResult",
    "Untitled",
    "__version__",
    "after_round",
    "after_tool",
    "before_round",
    "before_tool",
    "create_app",
    "keep_last_turns",
    "on_interrupt",
    "on_run_end",
    "read_file_tool",
    "session_title",
    "token_budget",
    "tool",
]


def __getattr__(name: str) -> Any:
    """Names are imported when they are used, so that a script pays only for what it takes."""
    if name not in _PLACES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(importlib.import_module(_PLACES[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__


def _refuse_another_runtime() -> None:
    """Another module named `runtime` in front of ours would fail in puzzling ways: say what is the matter."""
    spec = importlib.util.find_spec("runtime")
    here = Path(__file__).resolve().parent.parent / "runtime"
    origin = Path(spec.origin).resolve().parent if spec is not None and spec.origin else None
    if origin is None or not (origin / "sampling.py").is_file():
        raise ImportError(
            f"agui_bridge needs its own package 'runtime' (expected at {here}), but Python finds "
            f"{spec.origin if spec else 'none'}. Rename that module or take its folder off sys.path."
        )


_refuse_another_runtime()
