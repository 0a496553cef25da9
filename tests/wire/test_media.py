"""Images and documents over real sockets: kept once, shown to the model, told to the page as links."""

from __future__ import annotations

import itertools
import sqlite3
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, closing
from pathlib import Path
from typing import Any

import orjson
import pytest
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agui_bridge import Bridge, Settings
from runtime.agent import Agent
from runtime.items import FunctionCallOutput, Message
from runtime.media import data_source
from runtime.testing import ScriptedProvider, calls, says
from runtime.tools.context import ToolContext
from runtime.tools.toolbox import tool
from tests.pictures import base64_of, inline, png, text
from tests.serving import Answer, JsonObject, Served, ask, listening, serving
from tests.wire.test_owners import by_name

CAT = png(1)
SMALL = png(2, 16)
NOTES = "# Notes\n\nTea is green. 🍵\n"


def model(rounds: int = 40) -> ScriptedProvider:
    return ScriptedProvider(*[says("I see") for _ in range(rounds)])


def said_by_user(provider: ScriptedProvider) -> list[JsonObject]:
    """The parts of the only user message of the last prompt."""
    [content] = [item.content for item in provider.prompts[-1] if isinstance(item, Message)]
    assert not isinstance(content, str)
    return content


def user(content: Any, id_: str = "u1") -> JsonObject:
    return {"id": id_, "role": "user", "content": content}


def asking(content: Any, **more: Any) -> JsonObject:
    return ask("", messages=[user(content)], protocolVersion="1.0", **more)


def sources(provider: ScriptedProvider, prompt: int = -1) -> list[JsonObject]:
    """The sources of all media of a prompt."""
    said = [item.content for item in provider.prompts[prompt] if isinstance(item, Message)]
    said += [item.output for item in provider.prompts[prompt] if isinstance(item, FunctionCallOutput)]
    return [part["source"] for content in said if not isinstance(content, str) for part in content if "source" in part]


def snapshot(answer: Answer) -> list[JsonObject]:
    return next(event for event in answer.events if event["type"] == "MESSAGES_SNAPSHOT")["messages"]


def journal_bytes(path: Path) -> int:
    """How many bytes the events and requests of a store have."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as connection:
        events = connection.execute("SELECT coalesce(sum(length(payload)), 0) FROM events").fetchone()[0]
        return events + connection.execute("SELECT coalesce(sum(length(data)), 0) FROM contents").fetchone()[0]


def files(folder: Path) -> int:
    return len(list(folder.glob("??/*")))


@pytest.mark.requirement("R-043")
async def test_an_image_reaches_the_model_and_is_kept_once_beside_the_journal(tmp_path: Path):
    provider = model()
    async with serving(Agent("a", model=provider), store=f"sqlite:///{tmp_path}/s.db") as served:
        answer = await served.run(asking([text("What is it?"), inline(CAT), inline(SMALL)]))
        assert answer.types[-1] == "RUN_FINISHED"
        assert [source["value"] for source in sources(provider)] == [base64_of(CAT), base64_of(SMALL)]
        _, cat, small = snapshot(answer)[0]["content"]
        assert small == inline(SMALL)
        assert cat["source"]["type"] == "url"
        assert cat["source"]["mimeType"] == "image/png"
        assert cat["source"]["value"].startswith(f"{served.url}/api/artifacts/med_")
        fetched = await served.get(cat["source"]["value"].removeprefix(served.url))
        assert (fetched.status, fetched.body, fetched.headers["content-type"]) == (200, CAT, "image/png")
    assert journal_bytes(tmp_path / "s.db") < len(base64_of(SMALL)) * 3 + 8000
    assert files(tmp_path / "s.db.artifacts") == 1


def in_copilotkits_older_words(data: bytes, name: str) -> JsonObject:
    return {"type": "binary", "mimeType": "image/png", "data": base64_of(data), "filename": name}


def in_copilotkits_words(data: bytes, name: str) -> JsonObject:
    return inline(data, metadata={"filename": name})


@pytest.mark.parametrize("words", [in_copilotkits_older_words, in_copilotkits_words])
@pytest.mark.parametrize("takes_snapshots", [True, False])
async def test_twenty_turns_with_five_images_grow_by_what_is_said_alone(
    words: Any, takes_snapshots: bool, tmp_path: Path
):
    """A page restates everything in each turn; one that takes snapshots in restates links."""
    provider = model()
    store = tmp_path / "s.db"
    shown: list[JsonObject] = []
    grown: list[int] = []
    async with serving(Agent("a", model=provider), store=f"sqlite:///{store}") as served:
        for turn in range(20):
            said: list[JsonObject] = [text(f"Turn {turn}")]
            if turn < 5:
                said.append(words(png(turn), f"cat{turn}.png"))
            shown.append(user(said, f"u{turn}"))
            answer = await served.run(ask("", run=f"r{turn}", messages=shown))
            assert answer.types[-1] == "RUN_FINISHED"
            assert len(sources(provider)) == min(turn + 1, 5)
            told = [event["messages"] for event in answer.events if event["type"] == "MESSAGES_SNAPSHOT"]
            if told and takes_snapshots:
                shown = told[-1]
                assert len(orjson.dumps(shown)) < 20_000
            starts = (event["messageId"] for event in answer.events if event["type"] == "TEXT_MESSAGE_START")
            shown += [{"id": id_, "role": "assistant", "content": "I see"} for id_ in starts]
            grown.append(journal_bytes(store))
        assert [source["value"] for source in sources(provider)] == [base64_of(png(turn)) for turn in range(5)]
        thread = await served.run(ask("", run="r", messages=[]), path="/connect")
        assert [m["id"] for m in snapshot(thread) if m["role"] == "user"] == [f"u{turn}" for turn in range(20)]
    assert files(tmp_path / "s.db.artifacts") == 5
    steps = [after - before for before, after in itertools.pairwise(grown)]
    assert max(steps) < 5000


async def test_an_image_that_is_told_by_its_link_is_the_one_that_is_stored():
    provider = model()
    async with serving(Agent("a", model=provider)) as served:
        first = await served.run(asking([inline(CAT)]))
        by_link = snapshot(first)[0]
        again = await served.run(ask("", run="r2", messages=[by_link, *snapshot(first)[1:], user("And now?", "u2")]))
        assert again.types[-1] == "RUN_FINISHED"
        assert [item.content for item in provider.prompts[-1] if isinstance(item, Message)][-1] == "And now?"
        assert len(sources(provider)) == 1
        stale = orjson.loads(orjson.dumps(by_link).replace(b"?expires=", b"?expires=1&was="))
        third = await served.run(ask("", run="r3", messages=[stale, user("Hm", "u3")]))
        assert len(sources(provider)) == 1, "the host alone says that it is ours"
        assert third.types[-1] == "RUN_FINISHED"


async def test_the_same_request_again_is_the_same_run_though_its_image_was_kept():
    provider = model()
    async with serving(Agent("a", model=provider)) as served:
        one = await served.run(asking([inline(CAT)]))
        two = await served.run(asking([inline(CAT)]))
        assert one.headers["x-run-id"] == two.headers["x-run-id"]
        assert one.types == two.types
        assert len(provider.requests) == 1


@pytest.mark.requirement("R-043")
async def test_a_text_only_model_is_told_what_is_text_and_spared_the_rest():
    provider = model()
    agent = Agent("a", model=provider, input_media=())
    async with serving(agent) as served:
        note = inline(NOTES.encode(), "text/markdown; charset=utf-8", "document", metadata={"filename": "notes.md"})
        film = {"type": "video", "source": {"type": "url", "value": "https://film.example/x.mp4"}}
        answer = await served.run(asking([text("Read"), note, inline(CAT), film]))
        assert answer.types[-1] == "RUN_FINISHED"
        said = said_by_user(provider)
        assert [part["type"] for part in said] == ["text", "text"]
        assert said[1]["text"] == f"[Text of the document notes.md (text/markdown)]\n{NOTES}\n[End of the document]"
        [told] = [event["value"] for event in answer.events if event["type"] == "CUSTOM" and "left" in event["name"]]
        assert [part["type"] for part in told["parts"]] == ["image", "video"]
        await served.run(ask("More", run="r2", message="u2"))


async def test_an_agent_extracts_the_text_of_what_it_knows():
    provider = model()
    seen: list[str] = []

    def read(media_type: str, data: bytes) -> str | None:
        seen.append(media_type)
        if media_type == "audio/wav":
            raise ValueError("no ears")
        return f"{len(data)} bytes of a letter" if media_type == "application/pdf" else None

    agent = Agent("a", model=provider, input_media=(), extract_text=read)
    async with serving(agent) as served:
        letter = inline(b"%PDF-1.7 letter", "application/octet-stream", "document")
        sound = inline(b"RIFF....", "audio/wav", "audio")
        unknown = inline(b"\0\1\2", "application/x-thing", "document")
        answer = await served.run(asking([letter, sound, unknown]))
        assert answer.types[-1] == "RUN_FINISHED"
        said = said_by_user(provider)
        assert len(said) == 1
        assert "15 bytes of a letter" in said[0]["text"]
        assert seen == ["application/pdf", "audio/wav", "application/x-thing"]
        [told] = [event["value"] for event in answer.events if event["type"] == "CUSTOM" and "left" in event["name"]]
        assert [part["reason"] for part in told["parts"]] == [
            "its text could not be extracted",
            "the model takes no application/x-thing, and no text is known of it",
        ]


async def test_data_that_is_no_base64_is_left_out_when_small_and_refused_when_large():
    provider = model()
    async with serving(Agent("a", model=provider)) as served:
        broken = inline(b"")
        broken["source"]["value"] = "§§§"
        answer = await served.run(asking([text("Hi"), broken]))
        assert answer.types[-1] == "RUN_FINISHED"
        assert sources(provider) == []
        broken["source"]["value"] = "§" * 500_000
        answer = await served.run(asking([broken], thread="t2"))
        assert (answer.status, answer.document["code"]) == (422, "invalid_input")
        assert (await served.get("/api/agent-runs")).document["runs"][0]["client_run_id"] == "r1"


@tool
async def photograph() -> list[JsonObject]:
    """Take a picture."""
    return [{"type": "text", "text": "Here"}, {"type": "image", "source": data_source(CAT, "image/png")}]


async def test_an_image_in_a_result_is_kept_once_and_told_as_a_link(tmp_path: Path):
    provider = ScriptedProvider(calls(("photograph", "{}")), says("Nice"))
    store = tmp_path / "s.db"
    async with serving(Agent("a", model=provider, tools=[photograph]), store=f"sqlite:///{store}") as served:
        answer = await served.run(asking("Go"))
        [result] = [event for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]
        assert result["content"][1]["source"]["type"] == "url"
        [source] = sources(provider)
        assert source["value"] == base64_of(CAT)
    assert journal_bytes(store) < 10_000


async def test_an_image_is_handed_on_to_a_child_and_kept_once(tmp_path: Path):
    below = ScriptedProvider(says("A cat"))
    looker = Agent("looker", model=below)

    @tool
    async def look(ctx: ToolContext) -> Any:
        """Have somebody look at a picture."""
        parts = [{"type": "text", "text": "What is it?"}, {"type": "image", "source": data_source(CAT, "image/png")}]
        return await ctx.delegate(looker, parts)

    above = ScriptedProvider(calls(("look", "{}")), says("It is a cat"))
    store = tmp_path / "s.db"
    async with serving(Agent("a", model=above, tools=[look]), store=f"sqlite:///{store}") as served:
        answer = await served.run(asking("Go"))
        [source] = sources(below)
        assert source["value"] == base64_of(CAT)
        [result] = [event for event in answer.events if event["type"] == "TOOL_CALL_RESULT"]
        assert result["content"] == "A cat"
    assert journal_bytes(store) < 12_000


# --- URLs ---------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def a_site() -> AsyncGenerator[tuple[str, list[str]], None]:
    asked: list[str] = []

    async def picture(request: Request) -> Response:
        asked.append(request.url.path)
        if request.url.path == "/moved.png":
            return Response(status_code=302, headers={"location": "/cat.png"})
        return Response(CAT, media_type="image/png")

    async with listening(Starlette(routes=[Route("/{name}", picture)])) as url:
        yield url, asked


@pytest.mark.requirement("R-044")
async def test_no_url_is_fetched_unless_its_origin_is_allowed():
    async with a_site() as (site, asked):
        seen: list[list[JsonObject]] = []
        for allowed in ([], [site], ["https://elsewhere.example"]):
            provider = model()
            async with serving(Agent("a", model=provider), fetch_media_from=allowed) as served:
                parts = [
                    {"type": "image", "source": {"type": "url", "value": f"{site}/cat.png"}},
                    {"type": "image", "source": {"type": "url", "value": f"{site}/moved.png"}},
                    {"type": "document", "source": {"type": "file", "value": f"{site}/file.pdf"}},
                ]
                assert (await served.run(asking(parts))).types[-1] == "RUN_FINISHED"
                seen.append(sources(provider))
        assert asked == ["/cat.png", "/moved.png"]
        assert [source["type"] for source in seen[0]] == ["url", "url", "file"]
        assert [source["type"] for source in seen[1]] == ["data", "url", "file"]
        assert seen[1][0]["value"] == base64_of(CAT)
        assert seen[2] == seen[0]


# --- uploads ------------------------------------------------------------------------------------------------------


@asynccontextmanager
async def owned(tmp_path: Path, provider: ScriptedProvider, **more: Any) -> AsyncGenerator[Served, None]:
    settings = Settings.model_validate({"drain_s": 0, **more})
    store = f"sqlite:///{tmp_path}/s.db"
    bridge = Bridge(Agent("a", model=provider), store=store, settings=settings, authenticate=by_name)
    async with listening(bridge.app) as url:
        served = Served(bridge, url)
        async with served.http:
            yield served


async def upload(served: Served, data: bytes, path: str = "/api/uploads?name=cat.png", **headers: str) -> Answer:
    sent = {"content-type": "image/png", "x-user": "ann", **{k.replace("_", "-"): v for k, v in headers.items()}}
    answer = await served.http.post(path, content=data, headers=sent)
    return Answer(answer.status_code, answer.headers, answer.content)


async def test_an_upload_is_used_in_the_place_of_its_bytes_by_its_owner_alone(tmp_path: Path):
    provider = model()
    async with owned(tmp_path, provider) as served:
        answer = await upload(served, CAT)
        assert answer.status == 201
        made = answer.document
        assert {name: made[name] for name in ("name", "media_type", "size")} == {
            "name": "cat.png", "media_type": "image/png", "size": len(CAT),
        }  # fmt: skip
        assert answer.headers["location"] == f"/api/artifacts/{made['upload_id']}"
        for forger in ("ben", "other-tenant/ann"):
            refused = await served.run(asking([made["part"]]), x_user=forger)
            assert (refused.status, refused.document["code"]) == (404, "media_not_found")
            assert (await served.get("/api/sessions", x_user=forger)).document["sessions"] == []
            assert (await served.get(answer.headers["location"], x_user=forger)).status == 404
        assert (await served.get(answer.headers["location"], x_user="ann")).body == CAT
        for turn in range(2):  # the page goes on restating what it sent
            messages = [user([made["part"]]), *([user("And?", "u2")] if turn else [])]
            ran = await served.run(ask("", run=f"r{turn}", messages=messages, protocolVersion="1.0"), x_user="ann")
            assert ran.types[-1] == "RUN_FINISHED"
            assert [source["value"] for source in sources(provider)] == [base64_of(CAT)]
        preview = await served.get(made["url"].removeprefix(served.url))
        assert preview.body == CAT, "the page goes on showing what it uploaded"
        elsewhere = await served.run(asking([made["part"]], thread="t2"), x_user="ann")
        assert elsewhere.types[-1] == "RUN_FINISHED"
    assert files(tmp_path / "s.db.artifacts") == 1


async def test_a_forged_reference_is_refused_before_anything_is_recorded(tmp_path: Path):
    provider = model()
    async with owned(tmp_path, provider) as served:
        for source in (
            {"type": "file", "value": "upl_none", "provider": "agui-bridge"},
            {"type": "url", "value": f"{served.url}/api/artifacts/med_none"},
        ):
            answer = await served.run(asking([{"type": "image", "source": source}]), x_user="ann")
            assert (answer.status, answer.document["code"]) == (404, "media_not_found")
        blob = {"type": "image", "source": {"type": "blob", "digest": "0" * 64}}
        told = await served.run(asking([blob]), x_user="ann")
        assert told.types[-1] == "RUN_FINISHED", "a source of no known type is left out"
        assert sources(provider) == []
        assert len((await served.get("/api/agent-runs", x_user="ann")).document["runs"]) == 1


async def test_an_upload_that_is_too_large_empty_or_a_form_is_refused_and_leaves_nothing(tmp_path: Path):
    async with owned(tmp_path, model(), max_upload_mib=0.05) as served:

        async def chunks() -> AsyncGenerator[bytes, None]:
            yield CAT[:30_000]
            yield CAT[:30_000]

        for data in (CAT, chunks()):
            answer = await upload(served, data)  # pyright: ignore[reportArgumentType]  httpx takes an iterator
            assert (answer.status, answer.document["code"]) == (413, "upload_too_large")
        assert (await upload(served, b"")).document["code"] == "invalid_input"
        assert (await upload(served, SMALL, content_type="multipart/form-data; boundary=x")).status == 415
        assert (await upload(served, SMALL, content_type="nonsense type")).status == 201, "its bytes say what it is"
        unknown = (await upload(served, b"?", content_type="nonsense type")).document
        assert (unknown["media_type"], unknown["part"]["type"]) == ("application/octet-stream", "document")
        assert (await upload(served, SMALL, "/api/uploads?name=a%0Ab")).document["name"] == "ab"
        assert (await upload(served, SMALL, "/api/uploads")).document["name"] == "image.png"
    assert files(tmp_path / "s.db.artifacts") == 2


async def test_the_native_api_takes_images_and_uploads_and_lists_links(tmp_path: Path):
    provider = model()
    async with owned(tmp_path, provider) as served:
        part = (await upload(served, SMALL)).document["part"]
        session = (await served.run({}, path="/api/sessions", x_user="ann")).document["session_id"]
        path = f"/api/sessions/{session}/messages"
        body = {"content": [text("See"), inline(CAT), part]}
        said = await served.run(body, path=path, x_user="ann", idempotency_key="k1")
        assert said.status == 202
        await served.get(said.document["events_url"], x_user="ann")
        assert [source["value"] for source in sources(provider)] == [base64_of(CAT), base64_of(SMALL)]
        again = await served.run(body, path=path, x_user="ann", idempotency_key="k1")
        assert again.document["run_id"] == said.document["run_id"]
        listed = (await served.get(path, x_user="ann")).document["messages"][0]["content"]
        assert [each.get("source", {}).get("type") for each in listed] == [None, "url", "url"]
        forged = {"content": [part]}
        session = (await served.run({}, path="/api/sessions", x_user="ben")).document["session_id"]
        path = f"/api/sessions/{session}/messages"
        assert (await served.run(forged, path=path, x_user="ben", idempotency_key="k2")).status == 404


async def test_a_purged_session_takes_its_media_along_and_the_receipt_counts_them(tmp_path: Path):
    async with owned(tmp_path, model()) as served:
        part = (await upload(served, SMALL)).document["part"]
        kept = (await upload(served, png(9))).document
        await served.run(asking([inline(CAT), part]), x_user="ann")
        assert files(tmp_path / "s.db.artifacts") == 3
        receipt = (await served.http.delete("/api/sessions/t1?purge=1", headers={"x-user": "ann"})).json()
        assert receipt["database"]["media"] == 2
        assert receipt["artifact_files"] == 2
        assert files(tmp_path / "s.db.artifacts") == 1
        assert (await served.get(f"/api/artifacts/{kept['upload_id']}", x_user="ann")).body == png(9)
