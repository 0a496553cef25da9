"""The demo's page, used by clicks and keys in Chromium."""

from __future__ import annotations

import pytest
from playwright.async_api import expect

from tests.browser.conftest import Watched

pytestmark = [pytest.mark.anyio, pytest.mark.needs_chromium, pytest.mark.needs_page]


async def test_text_before_a_call_becomes_a_working_message_and_the_answer_is_final(demo: Watched) -> None:
    await demo.say("What is the weather in Oslo?")
    await expect(demo.page.locator("[data-role=final_response]")).to_contain_text("In Oslo it is")
    await expect(demo.page.locator("[data-role=working_message]")).to_contain_text("Let me look at Oslo.")
    await expect(demo.page.locator("[data-tool=get_weather]")).to_have_attribute("data-state", "answered")
    assert demo.complaints == []
    assert demo.foreign == []


async def test_a_reload_restores_what_was_said_and_the_open_approval_which_can_still_be_edited(demo: Watched) -> None:
    await demo.say("Write to ada@example.org about tea")
    await demo.page.get_by_role("region", name="Approval").wait_for()
    await demo.page.reload()
    approval = demo.page.get_by_role("region", name="Approval")
    arguments = approval.get_by_label("Arguments")
    await arguments.fill((await arguments.input_value()).replace("ada@", "grace@"))
    await approval.get_by_role("button", name="Approve").click()
    await expect(demo.page.locator("[data-role=final_response]")).to_be_visible()
    result = demo.page.locator("[data-tool=send_email]").get_by_label("Result")
    await expect(result).to_contain_text("grace@example.org")
    await expect(demo.page.locator("article.user")).to_have_count(1)


async def test_a_question_is_a_form_of_its_schema(demo: Watched) -> None:
    await demo.say("ask me")
    form = demo.page.get_by_role("form", name="Question")
    await form.get_by_label("answer").fill("green")
    await form.get_by_role("button", name="Answer").click()
    await expect(demo.page.locator("[data-tool=ask_user]").get_by_label("Result")).to_contain_text("green")


async def test_stop_ends_the_run_and_the_thread_stays_usable(demo: Watched) -> None:
    await demo.say("/tokens 5000 20")
    await expect(demo.page.locator("article.assistant")).to_contain_text("tok tok")
    await demo.page.get_by_role("button", name="Stop").click()
    await demo.settled()
    await demo.say("hello")
    await expect(demo.page.locator("[data-role=final_response]").last).to_contain_text("Hello!")


async def test_a_run_that_fails_is_told_on_the_page(demo: Watched) -> None:
    await demo.say("/fail 3")
    await expect(demo.page.get_by_role("alert")).to_be_visible()
