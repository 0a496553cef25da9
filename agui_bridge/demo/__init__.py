"""The demo: an agent that shows everything, offline and deterministic.

`/tokens`, `/fail` and `/script` (see `runtime.script`) provoke every behaviour from outside; plain phrases are
answered as a helpful assistant would.
"""

from __future__ import annotations

from agui_bridge.demo.agent import agent, demo_agent

__all__ = ["agent", "demo_agent"]
