"""A disk that is full: the run ends, nothing is half-written, and with room again the thread goes on."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from tests.crash.process import server
from tests.crash.test_kill import is_all_there, types
from tests.serving import ask

SIZE = "3m"
FILLER = 1_000_000


@pytest.fixture
async def small_disk(tmp_path: Path) -> AsyncIterator[Path]:
    """A file system of a few megabytes."""
    folder = tmp_path / "disk"
    folder.mkdir()
    if await _run("mount", "-t", "tmpfs", "-o", f"size={SIZE}", "tmpfs", str(folder)):
        pytest.skip("needs the right to mount a small file system")
    yield folder
    await _run("umount", "--lazy", str(folder))


async def _run(*command: str) -> int:
    process = await asyncio.create_subprocess_exec(*command, stderr=asyncio.subprocess.DEVNULL)
    return await process.wait()


@pytest.mark.timeout(180)
async def test_a_full_disk_ends_the_run_and_with_room_again_the_thread_goes_on(small_disk: Path):
    filler = small_disk / "filler"
    filler.write_bytes(bytes(FILLER))
    async with server(small_disk / "store.db", lease_s=1.5) as running:
        async with running.streaming(ask("/tokens 100000")) as stream:
            await stream.to_the_end()
        assert "RUN_FINISHED" not in [event["type"] for event in stream.events]
        refused = await running.http.post("/", json=ask("Hi", thread="other", run="r2"))
        assert refused.status_code == 503
        assert refused.json()["code"] == "store_full"
        assert (await running.http.get("/health")).status_code == 200

        filler.unlink()
        async with asyncio.timeout(20):  # it is found when its lease has ended
            while (await running.get(f"/api/agent-runs/{stream.run_id}"))["status"] == "running":
                pass
        facts = await is_all_there(running, stream)
        assert types(facts)[-1] in ("run.failed", "run.interrupted")
        answer = await running.post(ask("Hi", run="r3", message="u3"))
        assert answer[-1]["type"] == "RUN_FINISHED"
        assert (await running.post(ask("Hi", thread="other", run="r2")))[-1]["type"] == "RUN_FINISHED"
