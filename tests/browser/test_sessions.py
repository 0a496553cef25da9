"""The page's sessions, its shared list and its open threads, over reloads and in several tabs."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Watched

pytestmark = [pytest.mark.anyio, pytest.mark.needs_chromium, pytest.mark.needs_page]


async def test_a_session_is_renamed_and_deleted_from_the_list(demo: Watched) -> None:
    await demo.say("hello")
    await expect(demo.page.locator("[data-role=final_response]")).to_be_visible()
    await demo.page.get_by_role("button", name="Rename").click()
    await demo.page.get_by_label("Title").fill("About tea")
    await demo.page.get_by_role("button", name="Save").click()
    await expect(demo.page.get_by_role("button", name="About tea", exact=True)).to_be_visible()
    await demo.page.get_by_role("button", name="Delete About tea").click()
    await expect(demo.page.get_by_role("button", name="Delete About tea")).to_have_count(0)
    await expect(demo.page.locator("article")).to_have_count(0)


async def test_a_reload_in_the_middle_of_a_stream_goes_on_without_loss_or_doubles(demo: Watched) -> None:
    await demo.say("/tokens 120 20")
    await expect(demo.page.locator("article.assistant")).to_contain_text("tok tok")
    await demo.page.reload()
    await expect(demo.page.locator("article.assistant .text")).to_have_text(("tok " * 120).strip())
    await demo.settled()
    await expect(demo.page.locator("article.assistant")).to_have_count(1)
    await expect(demo.page.locator("article.user")).to_have_count(1)


async def test_what_is_ticked_on_the_shared_list_reaches_the_agent(demo: Watched) -> None:
    await demo.say("add buy milk")
    entry = demo.page.get_by_role("checkbox", name="buy milk")
    await entry.wait_for()
    await demo.settled()
    await entry.check()
    await demo.say("add buy tea")
    await demo.page.get_by_role("checkbox", name="buy tea").wait_for()
    await demo.settled()
    await demo.page.reload()
    await expect(demo.page.get_by_role("checkbox", name="buy milk")).to_be_checked()


async def test_a_frontend_tool_runs_on_the_page_and_its_result_returns(demo: Watched) -> None:
    call = '{"name": "change_colour", "arguments": {"colour": "rgb(1, 2, 3)"}}'
    await demo.say('/script {"rounds": [{"tool_calls": [' + call + "]}]}")
    await expect(demo.page.locator("[data-tool=change_colour]")).to_have_attribute("data-state", "answered")
    await expect(demo.page.locator("[data-role=final_response]")).to_be_visible()
    accent = await demo.page.evaluate("document.documentElement.style.getPropertyValue('--accent')")
    assert accent == "rgb(1, 2, 3)"


async def test_eight_tabs_with_idle_threads_leave_room_for_a_ninth_that_talks(demo: Watched) -> None:
    context = demo.page.context
    for _ in range(8):
        tab = await context.new_page()
        await tab.goto(demo.url)
        await tab.locator('[role="log"][aria-busy="false"]').wait_for()
    await demo.say("hello")
    await expect(demo.page.locator("[data-role=final_response]")).to_contain_text("Hello!")
