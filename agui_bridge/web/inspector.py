"""The AG-UI Inspector: a ready-made page for developers, mounted beside the agents that it talks to."""

from __future__ import annotations

import logging
from collections.abc import Iterable
from importlib import import_module
from typing import Any, Final
from urllib.parse import quote

from agui_inspector import Agent, Brand
from starlette.applications import Starlette

PATH: Final = "/inspector"


def mount(app: Starlette, names: Iterable[str], agent_path: str) -> None:
    """Serve the page at `/inspector`, for the agents of these names behind `agent_path`, which has `{agent:path}`.

    Their URLs are relative to the page, so that they hold below any prefix.
    """
    urls = {name: f"..{agent_path.replace('{agent:path}', quote(name))}" for name in names}
    agents = [Agent(name, url, name, f"{url}/capabilities") for name, url in urls.items()]
    logging.getLogger("agui_inspector").setLevel(logging.ERROR)  # it warns of having been switched on
    inspector: Any = import_module("agui_inspector")  # whose function has no types
    inspector.mount_inspector(app, enabled=True, path=PATH, agents=agents, brand=Brand("agui-bridge"))
