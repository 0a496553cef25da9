"""How much of what a model reads could come from its provider's prompt cache: 20 turns of a conversation with tools.

    python -m bench.caching

Nothing is asked of anybody: the requests are encoded as the engine would send them, and the cache's rules are applied
to them. A size is that of the JSON in bytes; what counts is the ratio, for which bytes stand in for tokens.

Chat Completions and Responses: the longest common beginning with the request before. Anthropic's Messages: the longest
beginning that ends at a breakpoint of an earlier request and is found again from one of this request's breakpoints,
which look back 20 blocks.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from itertools import pairwise
from typing import Any, cast

import orjson

from runtime.canonical import JsonObject, digest_of
from runtime.dialects import Dialect
from runtime.dialects.anthropic import Anthropic
from runtime.dialects.openai_chat import OpenAIChat
from runtime.dialects.openai_responses import OpenAIResponses
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning, ToolSpec

TURNS = 20
ROUNDS = 2
"""Rounds with tool calls in each turn, before the answer."""
LOOKS_BACK = 20
"""So many blocks before a breakpoint Anthropic looks for what it has."""
INSTRUCTION_WORDS, RESULT_WORDS, ANSWER_WORDS, THOUGHT_WORDS, QUESTION_WORDS = 300, 150, 80, 40, 15

TOOLS = [
    ToolSpec(
        f"tool_{number}",
        "Looks something up in one of the systems of the house, and says what it found there.",
        {
            "type": "object",
            "properties": {
                "query": {"type": "string", "description": "What is looked for."},
                "limit": {"type": "integer", "description": "How many results at most."},
            },
            "required": ["query"],
        },
    )
    for number in range(8)
]


class Conversation:
    """Twenty turns, the same every time: question, two rounds of thought and two calls each, answer."""

    def __init__(self, provider: str) -> None:
        self._provider = provider
        self._random = random.Random(1)
        self.instructions = self._words(INSTRUCTION_WORDS)

    def steps(self) -> Iterator[list[Item]]:
        """The history at each point where the model is asked."""
        items: list[Item] = []
        for turn in range(TURNS):
            items.append(Message("user", self._words(QUESTION_WORDS)))
            for round_ in range(ROUNDS):
                yield items
                items.append(self._thought(f"{turn}_{round_}"))
                ids = [f"call_{turn}_{round_}_{number}" for number in range(2)]
                arguments = orjson.dumps({"query": self._words(6), "limit": 5}).decode()
                items += [FunctionCall(id_, "tool_1", arguments, provider=self._provider) for id_ in ids]
                items += [FunctionCallOutput(id_, "tool_1", self._words(RESULT_WORDS), False) for id_ in ids]
            yield items
            items.append(self._thought(f"{turn}_end"))
            items.append(Message("assistant", self._words(ANSWER_WORDS), "final_response"))

    def _thought(self, id_: str) -> Reasoning:
        said = self._words(THOUGHT_WORDS)
        if self._provider == "anthropic":
            return Reasoning(said, self._provider, signature=self._random.randbytes(100).hex())
        kept: JsonObject = {"type": "reasoning", "id": f"rs_{id_}", "summary": []}
        return Reasoning(said, self._provider, encrypted_value=self._random.randbytes(100).hex(), opaque=kept)

    def _words(self, count: int) -> str:
        return " ".join("".join(self._random.choices("aeinorstlk", k=5)) for _ in range(count))


class Read:
    """One request as the model reads it: blocks in order, which of them end at a breakpoint."""

    def __init__(self, request: JsonObject) -> None:
        self.blocks: list[bytes] = []
        self.marked: list[int] = []
        said = request.get("messages") or request["input"]
        system = request.get("system") or [{"text": request.get("instructions")}]
        for block in [*request.get("tools", []), *system, *_blocks(said)]:
            if "cache_control" in block:
                self.marked.append(len(self.blocks))
            self.blocks.append(orjson.dumps({name: value for name, value in block.items() if name != "cache_control"}))

    def size(self, upto: int | None = None) -> int:
        """The bytes of so many blocks."""
        return sum(len(block) for block in self.blocks[:upto])

    def beginning(self, upto: int) -> str:
        """Names what so many blocks say."""
        return digest_of(b"\0".join(self.blocks[:upto]))


def _blocks(messages: list[JsonObject]) -> Iterator[JsonObject]:
    """Messages, part by part where they are parts: where one begins belongs to its first part."""
    for message in messages:
        content: Any = message.get("content")
        if isinstance(content, list):
            parts = cast("list[JsonObject]", content)
            yield from ({"role": message.get("role"), **part} for part in parts)
        else:
            yield message


def common(reads: list[Read]) -> list[int]:
    """The bytes that each request has in common with the beginning of the one before."""
    shared = [0]
    for earlier, read in pairwise(reads):
        same = 0
        while same < min(len(earlier.blocks), len(read.blocks)) and earlier.blocks[same] == read.blocks[same]:
            same += 1
        shared.append(read.size(same))
    return shared


def by_breakpoints(reads: list[Read]) -> list[int]:
    """The bytes of each request that an earlier one's breakpoints left in the cache and its own find again."""
    kept: set[str] = set()
    found: list[int] = []
    for read in reads:
        places = {end for at in read.marked for end in range(at + 1, max(at + 1 - LOOKS_BACK, 0), -1)}
        hits = [end for end in places if read.beginning(end) in kept]
        found.append(read.size(max(hits, default=0)))
        kept |= {read.beginning(at + 1) for at in read.marked}
    return found


def measure(dialect: Dialect, provider: str, **options: Any) -> tuple[int, float, float]:
    """How many requests, the share of all bytes that could be cached, and that of the last request."""
    talk = Conversation(provider)
    given = {"model": "m", "instructions": talk.instructions, **options}
    reads = [Read(dialect.encode(items, TOOLS, given)) for items in talk.steps()]
    cached = by_breakpoints(reads) if provider == "anthropic" else common(reads)
    return len(reads), sum(cached) / sum(read.size() for read in reads), cached[-1] / reads[-1].size()


def main() -> None:
    rows = [
        ("Chat Completions", measure(OpenAIChat(), "openai")),
        ("Chat Completions, replay_reasoning always", measure(OpenAIChat(), "openai", replay_reasoning="always")),
        ("Responses", measure(OpenAIResponses(), "openai")),
        ("Anthropic's Messages", measure(Anthropic(), "anthropic")),
        ("Anthropic's Messages, cache_ttl null", measure(Anthropic(), "anthropic", cache_ttl=None)),
    ]
    print(f"{'format':<44}{'requests':>10}{'of all':>10}{'of the last':>14}")
    for name, (requests, share, last) in rows:
        print(f"{name:<44}{requests:>10}{share:>10.1%}{last:>14.1%}")


if __name__ == "__main__":
    main()
