"""docs/dojo.md names the agents that there are."""

from __future__ import annotations

import inspect
import re
from pathlib import Path

from agui_bridge.demo import dojo
from tests.docs.pages import text_of


def test_the_page_names_every_agent_of_the_dojo_and_no_other():
    rows = re.findall(r"^\| `(\w+)` \| (\w+) \| (\w+) \| (\w+) \| (\w+) \| (.+?) \|$", text_of("docs/dojo.md"), re.M)
    paths = ("", "conversational_flows/", "agent/", "pydantic-ai/")
    told = {f"{path}{row[0]}" for row in rows for path, has in zip(paths, row[1:5], strict=True) if has == "yes"}
    assert told == set(dojo.agents)
    modules = {name for row in rows for name in re.findall(r"`(\w+\.py)`", row[5])}
    there = {path.name for path in Path(inspect.getfile(dojo)).parent.glob("*.py")}
    assert modules == there - {"__init__.py", "shown_state.py"}


def test_the_page_says_who_asks_in_which_way():
    asks = {path for path, agent in dojo.agents.items() if agent.interrupt_style == "legacy"}
    assert asks == set(re.findall(r"`(agent/\w+)`", text_of("docs/dojo.md")))
