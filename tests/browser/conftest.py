"""The built page on a real socket, and one Chromium a worker."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from shutil import which

import pytest
from playwright.async_api import Browser, Page, async_playwright

from agui_bridge.bridge import Bridge
from agui_bridge.demo import demo_agent
from agui_bridge.settings import Settings
from agui_bridge.web.page import Page as WebPage
from tests.serving import listening


@dataclass
class Watched:
    """A page in the browser, and what it has complained of or asked of others."""

    page: Page
    url: str
    complaints: list[str] = field(default_factory=list[str])
    foreign: list[str] = field(default_factory=list[str])

    async def say(self, words: str) -> None:
        """Type a message and send it."""
        await self.page.get_by_label("Message").fill(words)
        await self.page.get_by_role("button", name="Send").click()

    async def settled(self) -> None:
        """Wait until nothing runs."""
        await self.page.locator('[role="log"][aria-busy="false"]').wait_for()


@asynccontextmanager
async def chromium() -> AsyncGenerator[Browser]:
    """Debian's Chromium, headless."""
    async with async_playwright() as playwright:
        options = ["--no-sandbox", "--disable-dev-shm-usage"]
        browser = await playwright.chromium.launch(executable_path=which("chromium"), args=options)
        yield browser
        await browser.close()


@asynccontextmanager
async def opened() -> AsyncGenerator[Watched]:
    """The demo with its page, opened."""
    settings = Settings.model_validate({"drain_s": 0})
    bridge = Bridge(demo_agent(), store="memory:", settings=settings, page=WebPage())
    async with listening(bridge.app) as url, chromium() as browser:
        page = await (await browser.new_context()).new_page()  # whose further pages are tabs of the same browser
        watched = Watched(page, url)
        page.on("console", lambda said: watched.complaints.append(said.text) if said.type in _BAD else None)
        page.on("pageerror", lambda error: watched.complaints.append(str(error)))
        page.on(
            "request",
            lambda asked: None if asked.url.startswith((url, "data:", "blob:")) else watched.foreign.append(asked.url),
        )
        await page.goto(url)
        yield watched


_BAD = ("error", "warning")


@pytest.fixture
async def demo() -> AsyncGenerator[Watched]:
    async with opened() as watched:
        yield watched
