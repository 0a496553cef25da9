"""kill -9 at any moment: what a client has received is in the store, and the thread goes on after a restart."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from runtime import events as e
from runtime.journal import Started
from runtime.journal.sqlite import SqliteJournal
from tests.contract.test_supervisor import ROUND, crashed
from tests.contract.workshop import Workshop
from tests.crash.process import ServerProcess, Stream, server
from tests.serving import JsonObject, ask
from tests.words import script

SEED = 20_261
CALL = script({"text": "Let me see. ", "tool_calls": [{"name": "slow_tool", "arguments": {"seconds": 60}}]})


def types(facts: list[JsonObject]) -> list[str]:
    return [fact["event_type"] for fact in facts]


@asynccontextmanager
async def opened(store: Path) -> AsyncGenerator[Workshop, None]:
    """The store of a server that has ended, open in this process."""
    shop = Workshop(journal=SqliteJournal(store))
    await shop.journal.open()
    try:
        yield shop
    finally:
        await shop.journal.close()


async def is_all_there(restarted: ServerProcess, stream: Stream) -> list[JsonObject]:
    """The facts of the run, after looking whether everything that was received is among them."""
    facts = await restarted.facts(stream.run_id)
    assert [fact["seq"] for fact in facts] == list(range(1, len(facts) + 1))
    by_seq = {fact["seq"]: fact for fact in facts}
    for seq, event in stream.received:
        assert seq is None or seq in by_seq
        if event["type"] == "TEXT_MESSAGE_CONTENT":
            assert seq is not None
            assert by_seq[seq]["event_type"] == "message.delta"
            assert by_seq[seq]["payload"]["delta"] == event["delta"]
    received = "".join(event["delta"] for _, event in stream.received if event["type"] == "TEXT_MESSAGE_CONTENT")
    stored = "".join(fact["payload"]["delta"] for fact in facts if fact["event_type"] == "message.delta")
    assert stored.startswith(received)
    return facts


async def test_a_kill_in_the_midst_of_a_stream_loses_nothing_that_was_received(tmp_path: Path):
    store = tmp_path / "store.db"
    async with server(store) as first, first.streaming(ask("/tokens 2000 5")) as stream:
        await stream.until("TEXT_MESSAGE_CONTENT", 40)
        await first.kill()
        await stream.to_the_end()
        assert "RUN_FINISHED" not in [event["type"] for event in stream.events]
    async with server(store) as second:
        facts = await is_all_there(second, stream)
        assert types(facts)[-1] == "run.interrupted"
        assert [kind for kind in types(facts) if kind.startswith("run.")] == ["run.started", "run.interrupted"]
        (message,) = [fact["payload"] for fact in facts if fact["event_type"] == "message.completed"][1:]
        assert [part["committed"] for part in message["content"]] == [False]
        record = await second.get(f"/api/agent-runs/{stream.run_id}")
        assert record["status"] == "interrupted"

        users = [
            {"id": "u1", "role": "user", "content": "/tokens 2000 5"},
            {"id": "u2", "role": "user", "content": "Hi"},
        ]
        events = await second.post(ask("", run="r2", messages=users))
        assert events[-1]["type"] == "RUN_FINISHED"
        *_, snapshot = [event for event in events if event["type"] == "MESSAGES_SNAPSHOT"]
        shown = [(message["role"], message.get("content")) for message in snapshot["messages"]]
        partial = "".join(part["text"] for part in message["content"])
        assert shown == [("user", "/tokens 2000 5"), ("assistant", partial), ("user", "Hi")]
    async with opened(store) as shop:
        said = [getattr(item, "content", None) for item in await shop.items("t1")]
        assert said[:2] == ["/tokens 2000 5", "Hi"], "what was half said is not for the model"
        assert len(said) == 3


async def test_a_kill_within_a_tool_leaves_its_outcome_unknown(tmp_path: Path):
    store = tmp_path / "store.db"
    async with server(store) as first, first.streaming(ask(CALL)) as stream:
        facts_url = f"/api/agent-runs/{stream.run_id}/events"
        async with first.http.stream("GET", facts_url) as facts:
            seen = b""
            async for piece in facts.aiter_bytes():
                seen += piece
                if b"tool.execution.started" in seen:
                    break
        await first.kill()
    async with server(store) as second:
        facts = await is_all_there(second, stream)
        (output,) = [fact["payload"] for fact in facts if fact["event_type"] == "tool.call.completed"]
        assert (output["kind"], output["is_error"]) == ("indeterminate", True)
        assert types(facts)[-1] == "run.interrupted"
        events = await second.post(
            ask("", run="r2", messages=[*ask(CALL)["messages"], {"id": "u2", "role": "user", "content": "Hi"}])
        )
        assert events[-1]["type"] == "RUN_FINISHED"
        assert "slow_tool" in str([event for event in events if event["type"] == "MESSAGES_SNAPSHOT"])


async def test_a_kill_between_the_commit_of_calls_and_their_execution_means_they_did_not_run(tmp_path: Path):
    store = tmp_path / "store.db"
    async with opened(store) as shop:
        started: Started = await crashed(shop, *ROUND, e.ToolExecutionStarted("c1", "work", "k1"))
    async with server(store) as restarted:
        facts = await restarted.facts(started.run.run_id)
        kinds = [fact["payload"]["kind"] for fact in facts if fact["event_type"] == "tool.call.completed"]
        assert kinds == ["indeterminate", "not_run"]
        assert types(facts)[-1] == "run.interrupted"


@pytest.mark.timeout(240)
async def test_twenty_kills_at_random_moments_lose_nothing_that_was_received(tmp_path: Path):
    chance = random.Random(SEED)
    store = tmp_path / "store.db"
    before: list[Stream] = []
    for number in range(20):
        async with server(store) as running:
            for earlier in before[-1:]:
                facts = await is_all_there(running, earlier)
                assert [kind in ("run.interrupted", "run.completed") for kind in types(facts)].count(True) == 1
            body = ask("/tokens 200 1", thread=f"t{number % 3}", run=f"r{number}", message=f"u{number}")
            async with running.streaming(body) as stream:
                await stream.until("TEXT_MESSAGE_CONTENT", chance.randrange(1, 150))
                await asyncio.sleep(chance.random() / 100)
                await running.kill()
                await stream.to_the_end()
                before.append(stream)
    async with server(store) as last:
        for stream in before:
            await is_all_there(last, stream)
