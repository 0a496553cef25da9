"""What it costs to take a request in whose history is restated whole: microseconds a message, by its length.

    python bench/history.py

One more user message each time, on a thread that has the rest. The figures of a row should not grow with its length.
"""

from __future__ import annotations

import time
from collections.abc import Callable

from agui_bridge.intake import IntakePolicy, Plan, reconcile
from agui_bridge.interrupts import Answerer
from agui_bridge.prelude import prelude
from agui_bridge.run_input import RunInput, parse
from agui_bridge.transcript import transcript
from runtime import events as e
from runtime.canonical import JsonObject, digest
from runtime.thread import Thread

ANSWERER = Answerer("me", 0)
LENGTHS = (10, 100, 1_000, 10_000)
MEASURED_MESSAGES = 20_000
WORDS = "It rains in Bergen, as it does on most days; take the train that leaves at nine. " * 2


def thread_of(turns: int) -> Thread:
    """A thread with so many questions, each answered by one round."""
    thread = Thread("thr")
    for turn in range(1, turns + 1):
        text = f"{turn}: {WORDS}"
        parts = [{"part_id": "p0", "kind": "text", "round": 1, "committed": True, "text": text}]
        facts: list[e.Event] = [
            e.RunStarted(0, f"r{turn}", "bench", "", []),
            e.MessageCompleted(f"u{turn}", "user", text, digest(text)),
            e.MessageStarted(f"m{turn}", "assistant"),
            e.RoundStarted(1, "model", "bench", {}),
            e.RoundCompleted(1, "final_response", "stop", parts, []),
            e.MessageCompleted(f"m{turn}", "assistant", parts, digest(parts)),
            e.RunCompleted(f"m{turn}"),
        ]
        base = thread.position
        for seq, fact in enumerate(facts, 1):
            thread.apply(f"run{turn}", base, seq, fact)
    return thread


def asked(messages: list[JsonObject], thread: Thread) -> RunInput:
    new = {"id": "new", "role": "user", "content": "And tomorrow?"}
    return parse({"threadId": "t", "runId": "r", "messages": [*messages, new], "state": thread.state})


def whole(messages: list[JsonObject]) -> list[JsonObject]:
    return messages


def own_ids(messages: list[JsonObject]) -> list[JsonObject]:
    return [{**message, "id": f"own-{index}"} for index, message in enumerate(messages)]


def edited(messages: list[JsonObject]) -> list[JsonObject]:
    return [{"id": "u1", "role": "user", "content": "Another beginning"}, *messages[1:]]


def lost(messages: list[JsonObject]) -> list[JsonObject]:
    return [message for message in messages if message["role"] == "user"]


def foreign(messages: list[JsonObject]) -> list[JsonObject]:
    strange = [{"id": f"x{n}", "role": "assistant", "content": "not yours"} for n in range(len(messages) // 2)]
    return [message for pair in zip(messages[::2], strange, messages[1::2], strict=True) for message in pair]


SHOWN: list[Callable[[list[JsonObject]], list[JsonObject]]] = [whole, own_ids, edited, lost, foreign]


def cost(run_input: RunInput, thread: Thread) -> float:
    """Microseconds a message to reconcile and to open the stream."""
    times = max(MEASURED_MESSAGES // len(run_input.messages), 1)
    began = time.perf_counter()
    for _ in range(times):
        reconcile(run_input, thread, IntakePolicy(), ANSWERER)
        prelude(thread, "run", run_input.messages, run_input.state)
    return (time.perf_counter() - began) / times / len(run_input.messages) * 1e6


def folding(plan: Plan) -> float:
    """Microseconds a fact to fold what a request adds to an unknown thread."""
    (seed,) = (fact for fact in plan.facts if isinstance(fact, e.HistorySeeded))
    times = max(MEASURED_MESSAGES // len(seed.messages), 1)
    began = time.perf_counter()
    for _ in range(times):
        Thread("thr").apply("run", 0, 1, seed)
    return (time.perf_counter() - began) / times / len(seed.messages) * 1e6


def main() -> None:
    print(f"{'us a message':<24}" + "".join(f"{length:>10,}" for length in LENGTHS))
    threads = {length: thread_of(length // 2) for length in LENGTHS}
    shown = {length: [line.message for line in transcript(thread)] for length, thread in threads.items()}
    for show in SHOWN:
        costs = [cost(asked(show(shown[length]), threads[length]), threads[length]) for length in LENGTHS]
        print(f"{show.__name__.replace('_', ' '):<24}" + "".join(f"{each:>10.1f}" for each in costs))
    empty = Thread("thr")
    costs = [cost(asked(shown[length], empty), empty) for length in LENGTHS]
    print(f"{'unknown thread':<24}" + "".join(f"{each:>10.1f}" for each in costs))
    plans = [reconcile(asked(shown[length], empty), empty, IntakePolicy(), ANSWERER) for length in LENGTHS]
    print(f"{'fold of its seed':<24}" + "".join(f"{folding(plan):>10.1f}" for plan in plans))


if __name__ == "__main__":
    main()
