"""README.md's example: the request in its curl command, and what the demo answers.

Ids are minted anew in each run, so the answer in the page stays as long as a fresh one is the same apart from ids.
"""

from __future__ import annotations

import asyncio
import re
from contextlib import aclosing
from typing import Final

import orjson

from agui_bridge.bridge import Bridge
from agui_bridge.demo import demo_agent
from agui_bridge.settings import Settings
from runtime.canonical import JsonObject
from scripts.generate_markdown import block_of, replace_block

BLOCK: Final = "example"

_MINTED = re.compile(r"\b(run|msg|thr|exec)_[0-9a-f]{32}\b")


def page(now: str) -> str:
    """The page, with a fresh answer where the old one is no longer what the demo says."""
    fresh = asyncio.run(answer(request_of(now)))
    if normalised(shown(now)) == normalised(fresh):
        return now
    return replace_block(now, BLOCK, f"```text\n{fresh.strip()}\n```")


def request_of(page: str) -> JsonObject:
    """The body that the page's first curl command sends. Raises ValueError if there is none."""
    found = re.search(r"curl [^`]*?-d '(\{.*?\})'\n", page, re.DOTALL)
    if found is None:
        raise ValueError("The page has no curl command with a body.")
    return orjson.loads(found[1])


def shown(page: str) -> str:
    """The answer in the page."""
    return block_of(page, BLOCK).removeprefix("```text\n").removesuffix("\n```")


def normalised(frames: str) -> str:
    """Frames with minted ids counted in the order in which they appear."""
    numbers: dict[str, str] = {}
    return _MINTED.sub(lambda id_: numbers.setdefault(id_[0], f"{id_[1]}_{len(numbers) + 1}"), frames.strip())


async def answer(request: JsonObject) -> str:
    """The frames with which the demo answers, as text."""
    bridge = Bridge(demo_agent(), settings=Settings.model_validate({"store": "memory:", "drain_s": 0}))
    async with bridge.lifespan(), aclosing(bridge.stream(request)) as frames:
        return b"".join([piece async for piece in frames]).decode()
