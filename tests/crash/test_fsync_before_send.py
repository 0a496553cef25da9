"""On disk, then sent: the system calls of the real server show, word by word, that a fact was synced before it left."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import pytest

from tests.crash.process import server
from tests.crash.trace import COMMAND, SYNCS, WRITES, Call, read_trace
from tests.serving import ask
from tests.words import script

WORDS = ("quagga", "okapi", "axolotl", "pangolin", "tapir")


def order(calls: list[Call], stored: str, shown: str) -> tuple[int, int, int]:
    """When a fact was in the log file, when the log was next on the disk, and when the fact began to be sent."""
    written = next(call for call in calls if is_log(call, WRITES) and stored in call.text)
    assert written.returned is not None
    synced = next(call for call in calls if is_log(call, SYNCS) and call.began > written.returned)
    assert synced.returned is not None
    sent = next(call for call in calls if call.name in WRITES and call.file.startswith("TCP") and shown in call.text)
    return written.returned, synced.returned, sent.began


def is_log(call: Call, names: frozenset[str]) -> bool:
    """Whether this is such a call on the write-ahead log, and it succeeded."""
    return call.name in names and call.file.endswith("store.db-wal") and call.done


def test_a_call_that_another_thread_interrupts_is_read_as_one(tmp_path: Path):
    trace = tmp_path / "trace"
    trace.write_text(
        '7 1.0 pwrite64(5</x/s.db-wal>, "a\\"b, c", 6, 0) = 6\n'
        "7 1.1 fdatasync(5</x/s.db-wal> <unfinished ...>\n"
        '8 1.2 sendto(9<TCP:[127.0.0.1:1->127.0.0.1:2]>, "word", 4, 0, NULL, 0) = 4\n'
        "7 1.3 <... fdatasync resumed>) = 0\n"
        "8 1.4 fsync(5</x/s.db-wal>) = -1 EIO (Input/output error)\n"
        "8 1.5 +++ exited with 0 +++\n"
        "7 1.6 fsync(5</x/s.db-wal> <unfinished ...>\n"
    )
    calls = read_trace(trace)
    assert [(call.name, call.file, call.began, call.returned, call.done) for call in calls] == [
        ("pwrite64", "/x/s.db-wal", 0, 0, True),
        ("fdatasync", "/x/s.db-wal", 1, 3, True),
        ("sendto", "TCP:[127.0.0.1:1->127.0.0.1:2]", 2, 2, True),
        ("fsync", "/x/s.db-wal", 4, 4, False),
        ("fsync", "/x/s.db-wal", 6, None, False),
    ]


@pytest.mark.needs_strace
async def test_every_word_is_written_and_synced_before_it_is_sent(tmp_path: Path):
    store, trace = tmp_path / "store.db", tmp_path / "trace"
    question = script(
        {
            "reasoning": WORDS[0] + " ",
            "text": f"{WORDS[1]} {WORDS[2]} ",
            "tool_calls": [{"name": "get_time", "arguments": {"tz": "oslo"}}],
            "delay_ms": 5,
        },
        {"text": f"{WORDS[3]} {WORDS[4]}", "delay_ms": 5},
    )
    async with server(store, *COMMAND, str(trace)) as running:
        events = await running.post(ask(question))
        assert events[-1]["type"] == "RUN_FINISHED"
        os.kill(int(store.with_name("store.db.lock").read_text()), signal.SIGTERM)
        await running.ended()
    calls = read_trace(trace)
    facts = {word: word for word in WORDS}
    facts |= {"tool.call.completed": "TOOL_CALL_RESULT", "round.completed": "STEP_FINISHED"}
    facts |= {"run.started": "RUN_STARTED", "run.completed": "RUN_FINISHED"}
    for stored, shown in facts.items():
        written, synced, sent = order(calls, stored, shown)
        assert written < synced < sent, stored
