"""Pages on CopilotKit's own core, unmodified, with this server as their runtime."""

from __future__ import annotations

import asyncio

import pytest

from agui_bridge.copilotkit_info import VERSION
from agui_bridge.suggestion_request import SUGGEST
from runtime import samples as s
from runtime.agent import Agent
from runtime.errors import ProviderError
from runtime.hooks import BeforeRound, Respond, before_round
from runtime.testing import ScriptedProvider, calls, says
from runtime.tool_choice import OPTION
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.contract.workshop import until
from tests.copilotkit_page import CopilotKit
from tests.serving import serving
from tests.wire.scenes import lookup, send
from tests.wire.test_owners import owned

TRANSPORTS = ["rest", "single", "auto"]


@tool
async def note(ctx: ToolContext, text: str) -> str:
    """Write something down."""
    ctx.state["notes"] = [*ctx.state.get("notes", []), text]
    return "Noted."


# --- connecting and talking ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS)
async def test_a_page_finds_the_agents_and_talks_to_one(transport: str, copilotkit: CopilotKit) -> None:
    rounds = [
        calls(("lookup", '{"key":"tea"}'), ("note", '{"text":"tea"}'), text="Look."),
        says("It is 42"),
        says("Yes"),
    ]
    agent = Agent("a", model=ScriptedProvider(*rounds), tools=[lookup, note], description="Knows.")
    async with serving(agent) as served:
        page, known = await copilotkit.open(f"{served.url}/copilotkit", transport=transport)
        assert known["status"] == "connected"
        assert known["transport"] == ("single" if transport == "single" else "rest")
        assert (known["version"], known["agents"], known["suggestions"]) == (VERSION, {"a": "Knows."}, True)
        assert known["threadEndpoints"]["list"] is True
        shown = await page.say("t1", "Tea?")
        shown.assert_content()
        assert shown.words == ["Tea?", "Look.", "tea is 42", "Noted.", "It is 42"]
        assert shown.state == {"notes": ["tea"]}
        assert (await page.say("t1", "Really?")).words[-2:] == ["Really?", "Yes"]


async def test_a_page_hears_of_a_failure_and_goes_on(copilotkit: CopilotKit) -> None:
    away = [s.TextDelta("Half "), ProviderError("The provider is away.", code="provider_unavailable")]
    async with serving(Agent("a", model=ScriptedProvider(away, says("Here")))) as served:
        page, _ = await copilotkit.open(f"{served.url}/copilotkit")
        failed = await page.say("t1", "Hi")
        assert [error["message"] for error in failed.errors] == ["The provider is away."]
        shown = await page.say("t1", "Again")
        shown.assert_content()
        assert shown.words[-1] == "Here"


async def test_a_refusal_reaches_the_page_with_its_words(copilotkit: CopilotKit) -> None:
    async with owned() as served:
        _, known = await copilotkit.open(f"{served.url}/copilotkit", agent="demo")
        assert known["status"] == "error"
        assert "Say who you are" in str(known["errors"])


# --- tools of the page --------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS[:2])
async def test_a_tool_of_the_page_runs_there_and_its_answer_goes_on(transport: str, copilotkit: CopilotKit) -> None:
    model = ScriptedProvider(calls(("pick", '{"of":"colours"}'), ("lookup", '{"key":"tea"}')), says("Blue it is"))
    async with serving(Agent("a", model=model, tools=[lookup])) as served:
        page, _ = await copilotkit.open(f"{served.url}/copilotkit", transport=transport, tools={"pick": "blue"})
        shown = await page.say("t1", "Pick")
        shown.assert_content()
        assert shown.asked == [{"tool": "pick", "args": {"of": "colours"}}]
        assert shown.words[-1] == "Blue it is"
        assert len(model.requests) == 2


# --- interrupts ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS[:2])
@pytest.mark.parametrize("loaded_again", [False, True], ids=["at once", "loaded again"])
async def test_what_is_asked_is_answered(transport: str, loaded_again: bool, copilotkit: CopilotKit) -> None:
    model = ScriptedProvider(calls(("send", '{"to":"ann"}')), says("Done"))
    async with serving(Agent("a", model=model, tools=[send])) as served:
        page, _ = await copilotkit.open(f"{served.url}/copilotkit", transport=transport)
        shown = await page.say("t1", "Write")
        if loaded_again:
            page, _ = await copilotkit.open(f"{served.url}/copilotkit", transport=transport)
            asked = shown.interrupts
            shown = await page.connect("t1")
            assert shown.interrupts == asked
        shown.assert_content()
        [interrupt] = shown.interrupts
        assert interrupt["reason"] == "tool_call"
        answered = await page.answer({"approved": True})
        answered.assert_content()
        assert answered.interrupts == []
        assert answered.words[-1] == "Done"
        assert "Sent to ann." in answered.words


async def test_a_declined_call_is_not_made(copilotkit: CopilotKit) -> None:
    model = ScriptedProvider(calls(("send", '{"to":"ann"}')), says("As you wish"))
    async with serving(Agent("a", model=model, tools=[send])) as served:
        page, _ = await copilotkit.open(f"{served.url}/copilotkit")
        await page.say("t1", "Write")
        declined = await page.answer(cancel=True)
        declined.assert_content()
        assert declined.words[-1] == "As you wish"
        assert "Sent to ann." not in str(declined.messages)


# --- coming back and stopping -------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS[:2])
async def test_a_page_that_is_loaded_again_in_the_middle_follows_to_the_end(
    transport: str, copilotkit: CopilotKit
) -> None:
    go_on = asyncio.Event()
    model = ScriptedProvider([s.TextDelta("Half "), go_on, *says("and half")])
    async with serving(Agent("a", model=model)) as served:
        url = f"{served.url}/copilotkit"
        first, _ = await copilotkit.open(url, transport=transport)
        await first.begin("t1", "Hi", "Half")
        second, _ = await copilotkit.open(url, transport=transport)
        assert (await second.begin("t1", None, "Half")).words == ["Hi", "Half "]
        [run_id] = served.bridge.supervisor.live.runs
        await until(lambda: served.bridge.supervisor.readers(run_id) == 2)
        go_on.set()
        for page in (first, second):
            shown = await page.settle()
            shown.assert_content()
            assert shown.words == ["Hi", "Half and half"]


async def test_a_page_that_comes_back_to_nothing_shows_nothing(copilotkit: CopilotKit) -> None:
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        page, _ = await copilotkit.open(f"{served.url}/copilotkit")
        shown = await page.connect("t9")
        shown.assert_content()
        assert (shown.messages, shown.state) == ([], {})


@pytest.mark.parametrize("transport", TRANSPORTS[:2])
@pytest.mark.parametrize("loaded_again", [False, True], ids=["at once", "loaded again"])
async def test_stop_ends_the_run_without_a_word_and_the_thread_goes_on(
    transport: str, loaded_again: bool, copilotkit: CopilotKit
) -> None:
    model = ScriptedProvider([s.TextDelta("Half "), asyncio.Event()], says("Anew"))
    async with serving(Agent("a", model=model)) as served:
        url = f"{served.url}/copilotkit"
        page, _ = await copilotkit.open(url, transport=transport)
        await page.begin("t1", "Hi", "Half")
        if loaded_again:
            page, _ = await copilotkit.open(url, transport=transport)
            await page.begin("t1", None, "Half")
        await page.stop()
        stopped = await page.settle()
        stopped.assert_content()
        assert stopped.words == ["Hi", "Half "]
        [run] = (await served.get("/api/agent-runs")).document["runs"]
        assert run["status"] == "cancelled"
        again = await page.say("t1", "Again")
        again.assert_content()
        assert again.words == ["Hi", "Half ", "Again", "Anew"]


# --- suggestions --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS[:2])
async def test_suggestions_come_and_leave_no_thread(transport: str, copilotkit: CopilotKit) -> None:
    @before_round
    def guess(asked: BeforeRound) -> Respond | None:
        given = {"suggestions": [{"title": "More", "message": "Tell me more"}]}
        return Respond(calls=[(SUGGEST, given)]) if asked.options.get(OPTION) == {"name": SUGGEST} else None

    async with serving(Agent("default", model=ScriptedProvider(says("Yes")), hooks=[guess])) as served:
        page, _ = await copilotkit.open(f"{served.url}/copilotkit", "default", transport=transport, suggest="Be short.")
        await page.say("t1", "Tea?")
        given = await page.suggestions()  # those of the turn itself may still come, too
        assert {(each["title"], each["message"]) for each in given} == {("More", "Tell me more")}
        assert [each["id"] for each in (await page.threads())["threads"]] == ["t1"]


# --- threads ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("transport", TRANSPORTS[:2])
async def test_threads_are_listed_renamed_put_away_and_deleted(transport: str, copilotkit: CopilotKit) -> None:
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        page, _ = await copilotkit.open(f"{served.url}/copilotkit", transport=transport)
        for number in range(3):
            await page.connect(f"t{number}")
            await page.say(f"t{number}", f"Hello {number}")
        listed = await page.threads()
        assert listed["error"] is None
        assert [(each["id"], each["name"]) for each in listed["threads"]] == [
            ("t2", "Hello 2"),
            ("t1", "Hello 1"),
            ("t0", "Hello 0"),
        ]
        renamed = await page.threads("renameThread", "t1", name="Tea")
        assert renamed["refused"] is None
        assert {each["id"]: each["name"] for each in renamed["threads"]}["t1"] == "Tea"
        await page.threads("archiveThread", "t1")
        await page.threads("deleteThread", "t2")
        assert [each["id"] for each in (await page.threads())["threads"]] == ["t0"]
        every = await page.threads(includeArchived=True)
        assert [(each["id"], each["archived"]) for each in every["threads"]] == [("t1", True), ("t0", False)]
        await page.threads("unarchiveThread", "t1")
        assert [each["id"] for each in (await page.threads())["threads"]] == ["t1", "t0"]
        gone = await page.threads("renameThread", "t2", name="Gone")
        assert gone["refused"] == "Request failed: 404"
        assert {each["name"] for each in (await page.threads())["threads"]} == {"Tea", "Hello 0"}


async def test_pages_of_threads_lead_through_all_of_them(copilotkit: CopilotKit) -> None:
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        page, _ = await copilotkit.open(f"{served.url}/copilotkit")
        for number in range(5):
            await page.connect(f"t{number}")
            await page.say(f"t{number}", "Hello")
        listed = await page.threads(limit=2)
        assert ([each["id"] for each in listed["threads"]], listed["hasMore"]) == (["t4", "t3"], True)
        for more, has_more in ((4, True), (5, False)):
            listed = await page.threads("fetchNextPage", limit=2)
            assert (len(listed["threads"]), listed["hasMore"]) == (more, has_more)


async def test_a_thread_of_the_list_is_opened_as_it_was_left(copilotkit: CopilotKit) -> None:
    async with serving(Agent("a", model=ScriptedProvider(says("One"), says("Two")))) as served:
        page, _ = await copilotkit.open(f"{served.url}/copilotkit")
        await page.say("t1", "First")
        await page.connect("t2")
        assert (await page.say("t2", "Second")).words == ["Second", "Two"]
        assert (await page.connect("t1")).words == ["First", "One"]
