"""What tests of agents need: models that say what they are told, a clock that is set by hand, ids that count.

Shipped, for the tests of whoever uses this package. `ScriptedProvider` takes the place of a model; `MockProvider` that
of the provider behind a real SDK, over loopback. Both play the same scripts. Nothing here touches another network.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection, Iterable, Sequence
from itertools import count

from runtime.canonical import JsonObject
from runtime.errors import AguiBridgeError
from runtime.items import Item, ToolSpec
from runtime.mock_http import HttpAnswer
from runtime.mock_provider import Line, MockProvider, cut
from runtime.samples import AssistantMessageDone, Completed, Sample, TextDelta, ToolCallCommitted, ToolCallDelta

__all__ = [
    "CountingIds",
    "HttpAnswer",
    "Line",
    "ManualClock",
    "MockProvider",
    "SamplesDecoder",
    "SamplesDialect",
    "ScriptedProvider",
    "calls",
    "cut",
    "says",
]


class ScriptedProvider:
    """A model that plays rounds of sampling events, one list a call, and records what it was asked.

    Past the last round it answers "done". `requests` holds each request, `prompts` the history items in each.
    """

    def __init__(self, *rounds: Iterable[Line]) -> None:
        self.name = "scripted-provider"
        self.provider = "testing"
        self.dialect = SamplesDialect()
        self.requests: list[JsonObject] = []
        self.closed = 0
        self._rounds = [list(lines) for lines in rounds]

    @property
    def prompts(self) -> list[list[Item]]:
        """The history of each request."""
        return [request["items"] for request in self.requests_with_items]

    @property
    def requests_with_items(self) -> list[JsonObject]:
        """The requests as they were encoded, items as objects."""
        return self.dialect.encoded

    async def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Play the next round."""
        index = len(self.requests)
        self.requests.append(request)
        lines: list[Line] = self._rounds[index] if index < len(self._rounds) else list(says("done"))
        try:
            for line in lines:
                if isinstance(line, AguiBridgeError):
                    raise line
                if isinstance(line, asyncio.Event):
                    await line.wait()
                    continue
                await asyncio.sleep(0)
                yield {"sample": line}
        finally:
            self.closed += 1


class SamplesDialect:
    """A dialect whose chunks are sampling events already."""

    name = "samples"

    def __init__(self) -> None:
        self.encoded: list[JsonObject] = []

    def takes(self, part: JsonObject, *, in_output: bool) -> bool:
        """Everything."""
        return True

    def encode(self, items: Sequence[Item], tools: Sequence[ToolSpec], options: JsonObject) -> JsonObject:
        """The request: a summary that is JSON. What it was made of is kept in `encoded`."""
        self.encoded.append({"items": list(items), "tools": list(tools), "options": options})
        return {"items": len(items), "tools": [tool.name for tool in tools], **options}

    def decoder(self, declared: Collection[str]) -> SamplesDecoder:
        """A decoder that hands over what it is given."""
        return SamplesDecoder()


class SamplesDecoder:
    """Hands over what it is given."""

    usage: JsonObject | None = None
    model: str | None = None

    def feed(self, chunk: JsonObject) -> list[Sample]:
        """The sample in the chunk."""
        return [chunk["sample"]]

    def finish(self) -> list[Sample]:
        """Nothing was held back."""
        return []


def says(text: str, finish: str = "stop", usage: JsonObject | None = None) -> list[Sample]:
    """A round of plain text, word by word."""
    words = [word + " " for word in text.split(" ")]
    words[-1] = words[-1][:-1]
    return [*(TextDelta(word) for word in words), AssistantMessageDone(), Completed(finish, usage)]


def calls(*made: tuple[str, str], text: str = "") -> list[Sample]:
    """A round of tool calls, each a name and its arguments as JSON text, after some text."""
    said: list[Sample] = [TextDelta(text), AssistantMessageDone()] if text else []
    deltas = [ToolCallDelta(str(i), name, arguments, f"call_{i}") for i, (name, arguments) in enumerate(made)]
    commits = [ToolCallCommitted(str(i), name, arguments, f"call_{i}") for i, (name, arguments) in enumerate(made)]
    return [*said, *deltas, *commits, Completed("tool_calls")]


class ManualClock:
    """A clock that stands still until it is told to move."""

    def __init__(self, now: int = 1_700_000_000_000) -> None:
        self._now = now
        self._sleepers: list[tuple[int, asyncio.Future[None]]] = []

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return self._now

    async def sleep(self, seconds: float) -> None:
        """Return once the clock was moved so far."""
        wake: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._sleepers.append((self._now + round(seconds * 1000), wake))
        await wake

    def advance(self, seconds: float) -> None:
        """Move the clock on, and wake who has slept long enough."""
        self._now += round(seconds * 1000)
        for at, wake in self._sleepers:
            if at <= self._now and not wake.done():
                wake.set_result(None)
        self._sleepers = [(at, wake) for at, wake in self._sleepers if not wake.done()]

    @property
    def sleepers(self) -> int:
        """How many wait for the clock."""
        return len(self._sleepers)


class CountingIds:
    """Ids that count: `run_1`, `run_2`, …, each prefix by itself."""

    def __init__(self) -> None:
        self._counts: dict[str, count[int]] = {}

    def __call__(self, prefix: str) -> str:
        """The next id with this prefix."""
        return f"{prefix}_{next(self._counts.setdefault(prefix, count(1)))}"
