"""Artifacts over real sockets: made by a tool, told to the page, fetched by its owner or by a link."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import jsonpatch
import pytest
from starlette.requests import Request

from agui_bridge.bridge import Bridge
from agui_bridge.demo import demo_agent
from agui_bridge.links import Signer
from agui_bridge.settings import Settings
from agui_bridge.web.artifacts_api import Span, disposition, span_of
from runtime.agent import Agent
from runtime.authority import Principal
from runtime.blobs.folder import FolderBlobs
from runtime.errors import CallerError
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.official_client import OfficialClient
from tests.serving import JsonObject, Served, ask, listening, serving

TEXT = "# Tea\n\nIt is green. 🍵\n"
BIG = os.urandom(700_000)


@tool
async def report(ctx: ToolContext) -> str:
    """Write a report."""
    made = await ctx.artifact("tea report.md", "text/markdown", TEXT)
    return f"{made.artifact_id} has {made.size} bytes"


@tool
def picture(ctx: ToolContext, path: str) -> str:
    """Copy a picture from a thread."""
    assert threading.current_thread() is not threading.main_thread()
    made = ctx.wait(ctx.artifact("tea.png", "image/png", path=path))
    return f"{made.artifact_id} has {made.size} bytes"


@tool
async def forgetful(ctx: ToolContext) -> str:
    """Not wait for what it makes."""
    ctx.artifact("x", "text/plain", "x").close()
    return "made"


@tool
async def show(ctx: ToolContext) -> str:
    """Show progress and tell something."""
    basket = ctx.activity("shop.basket", {"items": [], "note": "n" * 50})
    ctx.activity("shop.basket", {"items": ["tea"], "note": "n" * 50}, activity_id=basket)
    ctx.custom("shop.paid", {"cents": 5})
    return "shown"


@tool
def show_from_a_thread(ctx: ToolContext) -> str:
    """The same in a thread."""
    basket = ctx.activity("shop.basket", {"items": []})
    ctx.activity("shop.basket", {"items": ["tea"]}, activity_id=basket)
    ctx.custom("shop.paid", {"cents": 5})
    return "shown"


@tool
async def greedy(ctx: ToolContext) -> str:
    """Take a name of ours."""
    ctx.custom("agui-bridge:round", {})
    return "taken"


TOOLS = [report, picture, forgetful, show, show_from_a_thread, greedy]


def agent(name: str = "report", arguments: str = "{}", times: int = 4) -> Agent:
    return Agent("assistant", model=ScriptedProvider(*[calls((name, arguments)), says("Done")] * times), tools=TOOLS)


def shown(events: list[JsonObject]) -> JsonObject:
    [event] = [event for event in events if event["type"] == "ACTIVITY_SNAPSHOT"]
    assert event["activityType"] == "agui-bridge.artifact"
    return event["content"]


def result_of(events: list[JsonObject]) -> str:
    [event] = [event for event in events if event["type"] == "TOOL_CALL_RESULT"]
    return event["content"]


async def test_a_page_is_told_of_an_artifact_and_fetches_it_by_its_link(tmp_path: Path):
    async with serving(agent(), store=f"sqlite:///{tmp_path}/s.db") as served:
        events = (await served.run(ask("Hi"))).events
        content = shown(events)
        url = content.pop("url")
        assert content == {
            "id": content["id"], "name": "tea report.md", "mediaType": "text/markdown",
            "size": len(TEXT.encode()), "digest": content["digest"],
        }  # fmt: skip
        assert url.startswith(f"{served.url}/api/artifacts/{content['id']}?expires=")
        answer = await served.get(url.removeprefix(served.url))
        assert answer.status == 200
        assert answer.body.decode() == TEXT
        assert answer.headers["content-type"] == "text/markdown"
        assert answer.headers["etag"] == f'"{content["digest"]}"'
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["content-security-policy"].startswith("sandbox")
        assert answer.headers["content-disposition"].startswith("attachment")
        assert [path.name for path in (tmp_path / "s.db.artifacts").glob("??/*")] == [content["digest"]]
    types = [event["type"] for event in events]
    assert types.index("ACTIVITY_SNAPSHOT") < types.index("TOOL_CALL_RESULT")


async def test_the_same_content_is_stored_once_and_each_artifact_is_its_own(tmp_path: Path):
    async with serving(agent(), store=f"sqlite:///{tmp_path}/s.db") as served:
        one = shown((await served.run(ask("Hi"))).events)
        two = shown((await served.run(ask("Hi", thread="t2"))).events)
    assert one["id"] != two["id"]
    assert one["digest"] == two["digest"]
    assert len(list((tmp_path / "s.db.artifacts").glob("??/*"))) == 1


@pytest.mark.parametrize("place", ["memory:", "folder", "database"])
async def test_a_file_is_streamed_in_and_out_from_a_thread_and_in_ranges(place: str, tmp_path: Path):
    source = tmp_path / "big.bin"
    source.write_bytes(BIG)
    store = "memory:" if place == "memory:" else f"sqlite:///{tmp_path}/s.db"
    artifacts = {"folder": str(tmp_path / "elsewhere"), "database": "database"}.get(place)
    arguments = '{"path":"' + str(source) + '"}'
    async with serving(agent("picture", arguments), store=store, artifacts=artifacts) as served:
        content = shown((await served.run(ask("Hi"))).events)
        path = f"/api/artifacts/{content['id']}"
        assert (await served.get(path)).body == BIG
        for header, start, end in (("0-9", 0, 10), ("300000-", 300_000, None), ("-5", -5, None), ("5-5", 5, 6)):
            answer = await served.get(path, range=f"bytes={header}")
            assert answer.status == 206
            assert answer.body == BIG[start:end]
        assert answer.headers["content-range"] == f"bytes 5-5/{len(BIG)}"
        assert (await served.get(path, range="bytes=700000-")).status == 416
        assert (await served.get(path, range="bytes=0-9", if_range='"other"')).body == BIG
        assert (await served.get(path, if_none_match=f'W/"x", "{content["digest"]}"')).status == 304
        head = await served.http.head(path)
        assert (head.status_code, head.headers["content-length"], head.content) == (200, str(len(BIG)), b"")
    assert (tmp_path / "elsewhere").exists() == (place == "folder")
    assert not (tmp_path / "s.db.artifacts").exists()


@asynccontextmanager
async def owned(**settings: Any) -> AsyncGenerator[Served, None]:
    async def authenticate(request: Request) -> Principal:
        return Principal(request.headers.get("x-user", "ann"))

    given = Settings.model_validate({"drain_s": 0, **settings})
    bridge = Bridge(agent(), store="memory:", settings=given, authenticate=authenticate)
    async with listening(bridge.app) as url:
        served = Served(bridge, url)
        async with served.http:
            yield served


async def test_an_artifact_is_its_owners_and_a_good_link_is_anybodys():
    async with owned() as served:
        content = shown((await served.run(ask("Hi"))).events)
        path, link = f"/api/artifacts/{content['id']}", content["url"].removeprefix(served.url)
        assert (await served.get(path)).status == 200
        refused = await served.get(path, x_user="ben")
        missing = await served.get("/api/artifacts/art_none", x_user="ben")
        assert (refused.status, refused.body) == (missing.status, missing.body) == (404, refused.body)
        assert (await served.get(link, x_user="ben")).status == 200
        for wrong in (link[:-1] + ("0" if link[-1] != "0" else "1"), link.replace("expires=", "expires=1"), f"{link}é"):
            assert (await served.get(wrong)).status == 404
        other = link.replace(content["id"], "art_none")
        assert (await served.get(other)).status == 404


async def test_what_belongs_to_a_deleted_session_cannot_be_fetched_by_link_either():
    async with owned() as served:
        link = shown((await served.run(ask("Hi"))).events)["url"].removeprefix(served.url)
        assert (await served.http.delete("/api/sessions/t1")).status_code == 204
        assert (await served.get(link)).status == 404


async def test_links_begin_with_the_public_url_and_end_with_a_signature_of_the_given_key():
    async with owned(public_url="https://agents.example/x", signing_key="secret") as served:
        content = shown((await served.run(ask("Hi"))).events)
        head, _, tail = content["url"].partition("?expires=")
        assert head == f"https://agents.example/x/api/artifacts/{content['id']}"
        expires, _, signature = tail.partition("&signature=")
        assert Signer(b"secret", 0).accepts(content["id"], expires, signature, 0)


async def test_a_reloaded_page_is_told_of_artifacts_with_the_messages_at_their_place():
    async with serving(agent()) as served:
        first = shown((await served.run(ask("Hi"))).events)
        told = (await served.run(ask("", run="r2", messages=[]), "/connect")).events
        [snapshot] = [event for event in told if event["type"] == "MESSAGES_SNAPSHOT"]
        assert [message["role"] for message in snapshot["messages"]] == [
            "user", "assistant", "tool", "activity", "assistant",
        ]  # fmt: skip
        again = snapshot["messages"][3]["content"]
        assert again["id"] == first["id"]
        assert (await served.get(again["url"].removeprefix(served.url))).body.decode() == TEXT


async def test_an_event_stream_in_the_format_of_agui_has_links_and_the_journal_has_none():
    async with serving(agent()) as served:
        run_id = (await served.run(ask("Hi"))).headers["x-run-id"]
        agui = (await served.get(f"/api/agent-runs/{run_id}/events?format=agui")).events
        assert shown(agui)["url"]
        facts = (await served.get(f"/api/agent-runs/{run_id}/events")).events
        [fact] = [fact["payload"] for fact in facts if fact["event_type"] == "artifact.created"]
        assert fact.keys() == {"id", "name", "media_type", "size", "digest", "tool_call_id"}


@pytest.mark.parametrize("name", ["show", "show_from_a_thread"])
@pytest.mark.requirement("R-130")
async def test_activities_and_facts_of_a_tool_are_shown_in_their_order(name: str, official_client: OfficialClient):
    async with serving(agent(name)) as served:
        answer = await served.run(ask("Hi", protocolVersion="1.0"))
    kinds = [event["type"] for event in answer.events]
    events = answer.events[kinds.index("ACTIVITY_SNAPSHOT") : kinds.index("TOOL_CALL_RESULT")]
    assert [event["type"] for event in events][-1] == "CUSTOM"
    assert events[-1]["name"] == "shop.paid"
    assert events[1]["type"] in ("ACTIVITY_DELTA", "ACTIVITY_SNAPSHOT")
    page = await official_client.replay(answer.body)
    page.assert_clean()


@tool
async def shop(ctx: ToolContext) -> str:
    """Show a basket that changes a little, and a note."""
    content = {"items": ["tea"], "note": "n" * 200}
    basket = ctx.activity("shop.basket", content)
    ctx.activity("shop.basket", {**content, "items": ["tea", "jam"]}, activity_id=basket)
    ctx.activity("shop.note", {"text": "mind the step"})
    ctx.activity("shop.basket", {**content, "items": []}, activity_id=basket)
    return "shown"


def applied(events: list[JsonObject]) -> dict[str, Any]:
    """The activities as a page has them after these events, by id: who owns each, and what it says."""
    held: dict[str, Any] = {}
    for event in events:
        if event["type"] == "ACTIVITY_SNAPSHOT":
            held[event["messageId"]] = (event.get("subagentRunId"), event["content"])
        elif event["type"] == "ACTIVITY_DELTA":
            owner, content = held[event["messageId"]]
            assert event.get("subagentRunId") == owner
            held[event["messageId"]] = (owner, jsonpatch.apply_patch(content, event["patch"]))
            assert isinstance(held[event["messageId"]][1], dict)
    return held


@pytest.mark.parametrize("below", [False, True], ids=["of the run", "of a child"])
@pytest.mark.requirement("R-127", "R-131", "R-132")
async def test_activities_keep_their_owner_and_stay_objects_and_snapshots_have_all_of_them(below: bool):
    keeper = Agent("keeper", model=ScriptedProvider(calls(("shop", "{}")), says("Done")), tools=[shop])
    asks = ScriptedProvider(calls(("keeper", '{"prompt": "Shop"}')), says("Done"))
    async with serving(Agent("a", model=asks, tools=[keeper]) if below else keeper) as served:
        live = await served.run(ask("Hi", protocolVersion="1.0"))
        back = await served.run(ask("", run="r2", messages=[], protocolVersion="1.0"), "/connect")
    held = applied(live.events)
    assert "ACTIVITY_DELTA" in live.types
    assert [content for _, content in held.values()] == [
        {"items": [], "note": "n" * 200},
        {"text": "mind the step"},
    ]
    owners = {owner for owner, _ in held.values()}
    assert len(owners) == 1
    assert (None in owners) != below
    [snapshot] = [event for event in back.events if event["type"] == "MESSAGES_SNAPSHOT"]
    told = [message for message in snapshot["messages"] if message["role"] == "activity"]
    assert {m["id"]: (m.get("subagentRunId"), m["content"]) for m in told} == held


async def test_the_official_client_takes_artifacts_live_and_in_snapshots(official_client: OfficialClient):
    async with serving(agent()) as served:
        live = await served.run(ask("Hi", protocolVersion="1.0"))
        back = await served.run(ask("", run="r2", messages=[], protocolVersion="1.0"), "/connect")
    (await official_client.replay(live.body)).assert_clean()
    (await official_client.replay(back.body)).assert_clean()


@pytest.mark.parametrize(
    ("name", "arguments", "says_"),
    [
        ("forgetful", "{}", "did not wait"),
        ("greedy", "{}", "agui-bridge"),
        ("picture", '{"path":"/nowhere/at/all"}', "'tea.png' could not be stored. The file /nowhere/at/all"),
    ],
)
async def test_what_a_tool_does_wrong_the_model_can_read(name: str, arguments: str, says_: str):
    async with serving(agent(name, arguments)) as served:
        events = (await served.run(ask("Hi"))).events
    assert says_ in result_of(events)
    assert events[-1]["type"] == "RUN_FINISHED"
    assert not [event for event in events if event["type"] == "ACTIVITY_SNAPSHOT"]


async def test_a_write_that_fails_fails_the_call_and_leaves_nothing_half_written(tmp_path: Path):
    blocked = tmp_path / "blocked"
    blocked.write_text("a file where the folder should be")
    async with serving(agent(), store=f"sqlite:///{tmp_path}/s.db", artifacts=str(blocked)) as served:
        events = (await served.run(ask("Hi"))).events
        assert "'tea report.md' could not be stored" in result_of(events)
        assert events[-1]["type"] == "RUN_FINISHED"
        facts = await served.get(f"/api/agent-runs/{(await served.run(ask('Hi'))).headers['x-run-id']}/events")
        assert "artifact.created" not in [fact["event_type"] for fact in facts.events]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is full")
async def test_a_full_disk_is_said_to_be_full_and_no_piece_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    folder = tmp_path / "artifacts"
    monkeypatch.setattr(os, "fdopen", lambda handle, mode: _full(handle))
    with pytest.raises(Exception, match="full") as refusal:
        await FolderBlobs(folder).put(BIG)
    assert refusal.value.code == "store_full"  # type: ignore[attr-defined]  # it is a StoreError
    assert list(folder.rglob("*")) == []


def _full(handle: int) -> Any:
    os.close(handle)
    return open("/dev/full", "wb")


async def test_the_demo_makes_a_report_and_shows_how_far_it_is():
    script = '/script {"rounds": [{"tool_calls": [{"name": "make_report", "arguments": {"title": "Green tea"}}]}]}'
    async with serving(demo_agent()) as served:
        events = (await served.run(ask(script))).events
        told = [event for event in events if event["type"].startswith("ACTIVITY")]
        assert [event["activityType"] for event in told] == ["demo.progress", "demo.progress", "agui-bridge.artifact"]
        link = told[-1]["content"]["url"].removeprefix(served.url)
        assert (await served.get(link)).body.startswith(b"# Green tea\n")


# --- purge --------------------------------------------------------------------------------------------------------


async def test_a_purged_session_leaves_nothing_and_its_name_is_free(tmp_path: Path):
    async with serving(agent(), store=f"sqlite:///{tmp_path}/s.db") as served:
        answer = await served.run(ask("Hi"))
        link = shown(answer.events)["url"].removeprefix(served.url)
        response = await served.http.delete("/api/sessions/t1?purge=1")
        assert response.status_code == 200
        receipt = response.json()
        assert receipt["artifact_files"] == 1
        assert receipt["database"]["runs"] == receipt["database"]["sessions"] == receipt["database"]["artifacts"] == 1
        assert receipt["database"]["contents"] == 3  # what the agent was, what it was given, what was asked
        for path in (f"/api/agent-runs/{answer.headers['x-run-id']}", "/api/sessions/t1", link):
            assert (await served.get(path)).status == 404
        assert (await served.http.delete("/api/sessions/t1?purge=1")).status_code == 404
        assert list((tmp_path / "s.db.artifacts").glob("??/*")) == []
        again = await served.run(ask("Hi"))
        assert again.events[-1]["type"] == "RUN_FINISHED"
        assert again.headers["x-run-id"] != answer.headers["x-run-id"]


async def test_a_deleted_session_can_be_purged_and_one_at_work_is_stopped_first():
    never = asyncio.Event()
    slow = Agent("assistant", model=ScriptedProvider(says("One"), [never, *says("Two")]))
    async with serving(slow) as served:
        await served.run(ask("Hi"))
        assert (await served.http.delete("/api/sessions/t1")).status_code == 204
        assert (await served.http.delete("/api/sessions/t1?purge=1")).json()["database"]["runs"] == 1
        async with served.streaming(ask("Hi", thread="t2")) as events:
            await anext(events)
            purged = await served.http.delete("/api/sessions/t2?purge=1")
            assert purged.json()["database"]["runs"] == 1
        assert (await served.http.delete("/api/sessions/t2?purge=2")).status_code == 422


# --- pure ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("header", "span"),
    [
        (None, None),
        ("bytes=0-", Span(0, 10)),
        ("bytes=3-5", Span(3, 3)),
        ("bytes=3-99", Span(3, 7)),
        ("bytes=-4", Span(6, 4)),
        ("bytes=-99", Span(0, 10)),
        ("bytes=5-3", None),
        ("bytes=0-1,3-4", None),
        ("lines=0-1", None),
        ("bytes=", None),
        ("bytes=-", None),
    ],
)
def test_a_range_is_one_or_the_whole_is_meant(header: str | None, span: Span | None):
    assert span_of(header, 10) == span


@pytest.mark.parametrize(("header", "size"), [("bytes=10-", 10), ("bytes=-0", 10), ("bytes=0-", 0), ("bytes=-1", 0)])
def test_a_range_of_nothing_cannot_be_satisfied(header: str, size: int):
    with pytest.raises(CallerError) as refusal:
        span_of(header, size)
    assert refusal.value.status == 416


def test_a_name_cannot_break_out_of_its_header():
    said = disposition('a"; x=é/\\.md')
    assert said == "attachment; filename=\"a__ x____.md\"; filename*=UTF-8''a%22%3B%20x%3D%C3%A9%2F%5C.md"


def test_a_link_is_good_for_its_time_and_its_artifact_alone():
    signer = Signer(b"k", 60)
    link = signer.link("https://x.example", "art_1", 10_000)
    head, _, tail = link.partition("?expires=")
    expires, _, signature = tail.partition("&signature=")
    assert head == "https://x.example/api/artifacts/art_1"
    assert int(expires) >= 10_060
    assert link == signer.link("https://x.example", "art_1", 10_001)
    assert signer.accepts("art_1", expires, signature, 10_059)
    assert not signer.accepts("art_1", expires, signature, int(expires))
    assert not signer.accepts("art_2", expires, signature, 10_059)
    assert not signer.accepts("art_1", str(int(expires) + 3600), signature, 10_059)
    assert not signer.accepts("art_1", expires, "é", 10_059)
    assert not signer.accepts("art_1", "٣", signature, 10_059)
    assert not Signer(b"other", 60).accepts("art_1", expires, signature, 10_059)
