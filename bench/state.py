"""What a change of a large shared state costs: from the tool's change to the fact, and into the thread's state.

    python -m bench.state [--kib 1024] [--turns 200]

The measure is one pass of the fast JSON parser over the same state: what it would cost at least to copy it.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from time import perf_counter_ns
from typing import Any

import orjson

from runtime.state_delta import apply, change, merge
from runtime.state_view import settled, view

Json = Any


def state_of(kib: int) -> Json:
    """A state of about this size: a list of entries, an object of entries, a few texts."""
    entry = {"text": "something to do, in a few words", "done": False, "tags": ["home", "soon"], "at": [1, 2, 3]}
    each = len(orjson.dumps(entry))
    count = kib * 1024 // each // 2
    return {
        "todos": [{**entry, "id": number} for number in range(count)],
        "notes": {f"note-{number}": {**entry, "id": number} for number in range(count)},
        "title": "a list",
    }


def entry_of_a_list(seen: Json) -> None:
    seen["todos"][len(seen["todos"]) // 2]["done"] ^= True


def member_of_an_object(seen: Json) -> None:
    seen["notes"]["note-7"]["text"] += "!"


def appended(seen: Json) -> None:
    seen["todos"].append({"text": "more", "done": False})


def two_taken_out(seen: Json) -> None:
    del seen["todos"][-2]
    del seen["todos"][1]


def text(seen: Json) -> None:
    seen["title"] += "."


def only_read(seen: Json) -> None:
    assert seen["todos"][3]["text"]


def cost(state: Json, act: Callable[[Json], None], turns: int) -> float:
    """Milliseconds of one change, the median."""
    took: list[int] = []
    for _ in range(turns):
        began = perf_counter_ns()
        seen = view(state)
        act(seen)
        after = settled(seen)
        if after is not state:
            fact = change(state, merge(state, state, after))
            assert fact is not None
            state = apply(state, getattr(fact, "delta"))  # noqa: B009 - a change so small is never a snapshot
        took.append(perf_counter_ns() - began)
    return statistics.median(took) / 1e6


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kib", type=int, default=1024)
    parser.add_argument("--turns", type=int, default=200)
    options = parser.parse_args()
    state = state_of(options.kib)
    data = orjson.dumps(state)
    parsed: list[int] = []
    for _ in range(20):
        began = perf_counter_ns()
        orjson.loads(data)
        parsed.append(perf_counter_ns() - began)
    parser_ms = statistics.median(parsed) / 1e6
    print(f"a state of {len(data) / 1024:.0f} KiB; the parser takes {parser_ms:.2f} ms")
    for act in (entry_of_a_list, member_of_an_object, appended, two_taken_out, text, only_read):
        ms = cost(state, act, options.turns)
        print(f"{act.__name__.replace('_', ' '):<24} {ms:>7.3f} ms   {ms / parser_ms:>5.2f} x parser")


if __name__ == "__main__":
    main()
