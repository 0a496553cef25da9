"""The commands over a store, as processes of their own: beside a server that works on it, and without one."""

from __future__ import annotations

import asyncio
import os
import sys
import zipfile
from pathlib import Path
from typing import Any

import orjson
import pytest

from runtime.journal.sqlite import SqliteJournal
from tests.crash.process import ROOT, server
from tests.serving import ask

SCRIPT = '/script {"rounds": [{"text": "one two three four five"}]}'


async def command(*args: str, store: str | Path, expect: int = 0) -> str:
    """What a command prints."""
    url = str(store) if "://" in str(store) else f"sqlite:///{store}"
    environment = {key: value for key, value in os.environ.items() if not key.startswith("AGUI_BRIDGE_")}
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-m", "agui_bridge.cli", *args, "--store", url),
        cwd=ROOT,
        env=environment,
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.PIPE,
    )
    async with asyncio.timeout(50):
        out, err = await process.communicate()
    assert process.returncode == expect, err.decode() + out.decode()
    return out.decode() if expect == 0 or out else err.decode()


def lines(text: str) -> list[Any]:
    return [orjson.loads(line) for line in text.splitlines()]


async def test_runs_are_looked_at_beside_the_server_that_performs_them(tmp_path: Path):
    store = tmp_path / "s.db"
    async with server(store) as running:
        await running.post(ask(SCRIPT))
        [listed] = lines(await command("runs", "list", "--json", store=store))
        assert (listed["status"], listed["session_id"]) == ("succeeded", "t1")
        run_id = listed["run_id"]
        assert lines(await command("runs", "show", run_id, "--json", store=store)) == [listed]
        facts = await running.facts(run_id)
        assert lines(await command("runs", "events", run_id, "--json", store=store)) == facts
        shown = await command("runs", "list", store=store)
        assert shown.splitlines()[0].split()[:3] == ["run", "status", "agent"]
        assert run_id in shown
        assert "message.delta" in await command("runs", "events", run_id, "--after", "3", store=store)
        assert "There is no run" in await command("runs", "show", "run_none", store=store, expect=1)


async def test_a_run_at_work_is_followed_and_stopped_from_another_process(tmp_path: Path):
    store = tmp_path / "s.db"
    async with server(store, on_disconnect="continue", lease_s=1.5) as running:
        async with running.streaming(ask("/tokens 100000 5")) as stream:
            await stream.until("TEXT_MESSAGE_CONTENT")
            following = asyncio.create_task(command("runs", "tail", stream.run_id, "--json", store=store))
            stopped = await command("runs", "cancel", stream.run_id, "--json", store=store)
            assert lines(stopped)[0]["status"] == "cancelled"
            await stream.to_the_end()
            assert stream.events[-1]["type"] in ("RUN_FINISHED", "RUN_ERROR")
            told = lines(await following)
        facts = await running.facts(stream.run_id)
        assert told == facts
        assert facts[-2]["event_type"] == "message.completed" or facts[-1]["event_type"] == "run.cancelled"
        assert facts[-1]["payload"]["reason"] == "operator"
        again = await command("runs", "cancel", stream.run_id, store=store)
        assert "is cancelled" in again


async def test_a_run_that_a_crash_left_behind_is_ended_by_the_command_itself(tmp_path: Path):
    store = tmp_path / "s.db"
    async with server(store) as running, running.streaming(ask("/tokens 100000 5")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT")
        await running.kill()
    assert "is cancelled" in await command("runs", "cancel", stream.run_id, store=store)
    assert "is cancelled" in await command("runs", "cancel", stream.run_id, store=store)


async def test_purging_beside_a_server_compacts_what_is_over_and_leaves_the_rest_readable(tmp_path: Path):
    store = tmp_path / "s.db"
    async with server(store) as running:
        await running.post(ask("/tokens 300"))
        [listed] = lines(await command("runs", "list", "--json", store=store))
        before = await running.facts(listed["run_id"])
        [receipt] = lines(await command("runs", "purge", "--compact-after", "0s", "--json", store=store))
        assert receipt["compacted_runs"] == 1
        assert receipt["saved_rows"] == 299
        after = await running.facts(listed["run_id"])
        assert len(after) == len(before) - 299
        [whole] = [fact for fact in after if "from_seq" in fact]
        assert whole["payload"]["delta"] == "".join(f["payload"].get("delta", "") for f in before)
        path = f"/api/agent-runs/{listed['run_id']}/events?after_seq={whole['from_seq'] + 5}"
        gone = await running.http.get(path)
        assert (gone.status_code, gone.json()["code"]) == (410, "events_expired")
        assert gone.json()["details"]["before"] == whole["from_seq"] - 1
        assert gone.json()["details"]["behind"] == whole["seq"]
        replayed = await running.post(ask("/tokens 300"))
        assert "".join(e.get("delta", "") for e in replayed if e["type"] == "TEXT_MESSAGE_CONTENT") == "tok " * 300
        told = await running.post(ask("", run="r2", messages=[{"id": "u2", "role": "user", "content": "Hello"}]))
        assert told[-1]["type"] == "RUN_FINISHED"


async def test_an_old_thread_is_removed_and_its_run_is_still_on_record(tmp_path: Path):
    store = tmp_path / "s.db"
    async with server(store) as running:
        await running.post(ask(SCRIPT))
        [listed] = lines(await command("runs", "list", "--json", store=store))
        kept = lines(await command("runs", "purge", "--older-than", "1h", "--json", store=store))[0]
        assert kept["database"] == {}
        [gone] = lines(await command("runs", "purge", "--older-than", "0s", "--json", store=store))
        assert gone["database"]["threads"] == gone["database"]["sessions"] == 1
        assert gone["database"]["events"] > 0
        path = f"/api/agent-runs/{listed['run_id']}"
        assert (await running.get(path))["status"] == "succeeded"
        events = await running.http.get(f"{path}/events")
        assert (events.status_code, events.json()["code"]) == (410, "events_expired")
        assert (await running.http.get("/api/sessions/t1")).status_code == 404
        again = await running.post(ask(SCRIPT))  # the page goes on as if the server had never seen it
        assert again[-1]["type"] == "RUN_FINISHED"


async def test_an_owner_is_exported_and_erased_with_a_receipt(tmp_path: Path):
    store, target = tmp_path / "s.db", tmp_path / "ann.zip"
    async with server(store) as running:
        await running.post(ask(SCRIPT))
        await running.post(ask(SCRIPT, thread="t2"))
        await running.http.delete("/api/sessions/t2")
        printed = await command("owners", "export", "anonymous", "--output", str(target), "--json", store=store)
        [counts] = lines(printed)
        with zipfile.ZipFile(target) as archive:
            found = {name: lines(archive.read(name).decode()) for name in archive.namelist() if name.endswith("jsonl")}
            assert {name: len(found[f"{name}.jsonl"]) for name in ("sessions", "runs", "events", "artifacts")} == {
                name: counts[name] for name in ("sessions", "runs", "events", "artifacts")
            }
            assert sum(name.startswith("snapshots/") for name in archive.namelist()) == counts["snapshots"] > 0
        assert counts["runs"] == counts["sessions"] == 2
        async with running.streaming(ask("/tokens 100000 5", thread="t3")) as stream:
            await stream.until("TEXT_MESSAGE_CONTENT")
            [receipt] = lines(await command("owners", "erase", "anonymous", "--yes", "--json", store=store))
        assert receipt["database"]["runs"] == 3
        assert receipt["database"]["threads"] == 3
        assert (await running.get("/api/sessions"))["sessions"] == []
        assert await command("runs", "list", "--json", store=store) == ""
        assert (await running.post(ask("Hello")))[-1]["type"] == "RUN_FINISHED"


async def test_nothing_is_made_where_no_store_is(tmp_path: Path):
    assert "There is no store" in await command("runs", "list", store=tmp_path / "none.db", expect=1)
    assert os.listdir(tmp_path) == []


@pytest.mark.parametrize("age", ["30", "d", "-1d", "1w"])
async def test_an_age_that_is_none_is_refused(age: str, tmp_path: Path):
    store = tmp_path / "s.db"
    journal = SqliteJournal(store)
    await journal.open()
    await journal.close()
    assert "length of time" in await command("runs", "purge", "--older-than", age, store=store, expect=2)
