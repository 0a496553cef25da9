"""Which calls of a round run together.

Pure. All calls parallel-capable: all at once. Otherwise one at a time, in the order in which the model wrote them.
Nothing in between is tried: two calls that look independent (other tools, other arguments) may still touch the same
thing outside, and the model that wrote one after the other may have meant it so. Only who wrote the tools knows that
the order does not matter, and says so by declaring each of them parallel-capable; a single call without that promise
could be the one that the others must not overtake.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import TypeVar

T = TypeVar("T")


def batches(
    calls: Sequence[T], is_parallel: Callable[[T], bool], is_held: Callable[[T], bool] = lambda _: False
) -> list[list[T]]:
    """The calls in batches: batch after batch in order, the calls of a batch together. No call: no batch.

    One that is held waits for somebody outside, and so do those behind it, unless all may run together.
    """
    if all(is_parallel(call) for call in calls):
        together = [call for call in calls if not is_held(call)]
        return [together] if together else []
    return [[call] for call in itertools.takewhile(lambda call: not is_held(call), calls)]
