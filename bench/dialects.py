"""What a provider's delta costs on its way from a parsed chunk to the events of the journal: decoder and loop.

    python -m bench.dialects [--deltas 2000] [--turns 15]

The measure is the fast JSON parser on the same chunk in the same run, so that a slow machine changes both alike. The
second table holds the cost at the end of a long text or argument against that at its start: it must not grow.
"""

from __future__ import annotations

import argparse
import gc
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from time import perf_counter_ns

import orjson

from runtime.budget import Budget
from runtime.canonical import JsonObject
from runtime.dialects import Decoder, Dialect
from runtime.dialects.anthropic import Anthropic
from runtime.dialects.openai_chat import OpenAIChat
from runtime.dialects.openai_responses import OpenAIResponses
from runtime.sampling import Sampling

LONG = 200_000
"""Bytes of a long text or argument."""

WORDS = (" the", " quick", "ly", " brown", ",", " jumps", " over", "\n", " a", " lazy", " dog", ".")


@dataclass(frozen=True, slots=True)
class Wire:
    """A dialect, and the chunks in which its provider streams a text or the arguments of a call."""

    dialect: Dialect
    text_begins: Sequence[JsonObject]
    text: Callable[[str], JsonObject]
    call_begins: Sequence[JsonObject]
    arguments: Callable[[str], JsonObject]


def chat() -> Wire:
    def chunk(delta: JsonObject) -> JsonObject:
        choice = {"index": 0, "delta": delta, "logprobs": None, "finish_reason": None}
        head = {"id": "chatcmpl-CXyZ0123456789abcdef", "object": "chat.completion.chunk", "created": 1_760_000_000}
        more = {"model": "gpt-5-mini-2026-01-01", "service_tier": "default", "system_fingerprint": "fp_0123456789"}
        return {**head, **more, "choices": [choice], "usage": None, "obfuscation": "aB3dE5fG"}

    def piece(arguments: str) -> JsonObject:
        return chunk({"tool_calls": [{"index": 0, "function": {"arguments": arguments}}]})

    function = {"name": "write_file", "arguments": ""}
    call = {"index": 0, "id": "call_0123456789abcdef", "type": "function", "function": function}
    return Wire(
        OpenAIChat(),
        [chunk({"role": "assistant", "content": "", "refusal": None})],
        lambda text: chunk({"content": text}),
        [chunk({"role": "assistant", "content": None}), chunk({"tool_calls": [call]})],
        piece,
    )


def responses() -> Wire:
    def added(item: JsonObject) -> JsonObject:
        return {"type": "response.output_item.added", "output_index": 0, "sequence_number": 2, "item": item}

    def delta(kind: str, item_id: str, text: str, more: JsonObject) -> JsonObject:
        at: JsonObject = {"item_id": item_id, "output_index": 0, "sequence_number": 4, "obfuscation": "aB3dE5fG"}
        return {"type": kind, **at, **more, "delta": text}

    message: JsonObject = {"id": "msg_0123456789abcdef", "type": "message", "status": "in_progress", "content": []}
    call = {"id": "fc_0123456789abcdef", "type": "function_call", "status": "in_progress", "arguments": ""}
    said: JsonObject = {"content_index": 0, "logprobs": []}
    return Wire(
        OpenAIResponses(),
        [added({**message, "role": "assistant"})],
        lambda text: delta("response.output_text.delta", "msg_0123456789abcdef", text, said),
        [added({**call, "call_id": "call_0123456789abcdef", "name": "write_file"})],
        lambda text: delta("response.function_call_arguments.delta", "fc_0123456789abcdef", text, {}),
    )


def messages() -> Wire:
    def started(block: JsonObject) -> list[JsonObject]:
        message: JsonObject = {"id": "msg_0123456789abcdef", "type": "message", "role": "assistant", "content": []}
        usage = {"input_tokens": 9, "output_tokens": 1}
        return [
            {"type": "message_start", "message": {**message, "usage": usage}},
            {"type": "content_block_start", "index": 0, "content_block": block},
        ]

    def delta(piece: JsonObject) -> JsonObject:
        return {"type": "content_block_delta", "index": 0, "delta": piece}

    return Wire(
        Anthropic(),
        started({"type": "text", "text": ""}),
        lambda text: delta({"type": "text_delta", "text": text}),
        started({"type": "tool_use", "id": "toolu_0123456789abcdef", "name": "write_file", "input": {}}),
        lambda text: delta({"type": "input_json_delta", "partial_json": text}),
    )


WIRES: dict[str, Callable[[], Wire]] = {"openai-chat": chat, "openai-responses": responses, "anthropic": messages}


# --- measuring ----------------------------------------------------------------------------------------------------


def loop() -> Sampling:
    """A loop in its first round."""
    sampling = Sampling(
        message_id="msg_0123456789abcdef0123",
        provider="bench",
        target=lambda _: "server",
        taken=set(),
        mint=lambda prefix: f"{prefix}_1",
        budget=Budget(),
        elapsed=lambda: 0.0,
    )
    sampling.start()
    sampling.round_started("m-1", {})
    return sampling


def begun(dialect: Dialect, chunks: Sequence[JsonObject]) -> tuple[Decoder, Sampling]:
    """A decoder and a loop that have heard these chunks."""
    decoder, sampling = dialect.decoder(["write_file"]), loop()
    for chunk in chunks:
        sampling.feed(decoder.feed(chunk))
    return decoder, sampling


def time_of(decoder: Decoder, sampling: Sampling, chunks: Sequence[JsonObject]) -> float:
    """Microseconds per chunk."""
    began = perf_counter_ns()
    for chunk in chunks:
        if samples := decoder.feed(chunk):
            sampling.feed(samples)
    return (perf_counter_ns() - began) / len(chunks) / 1000


def time_to_parse(bodies: Sequence[bytes]) -> float:
    """Microseconds per body."""
    loads = orjson.loads
    began = perf_counter_ns()
    for body in bodies:
        loads(body)
    return (perf_counter_ns() - began) / len(bodies) / 1000


@dataclass(frozen=True, slots=True)
class Cost:
    """Microseconds per text delta, and for the parser on the same chunk."""

    delta_us: float
    parse_us: float
    ratio: float


def cost(wire: Wire, deltas: int, turns: int) -> Cost:
    """What a text delta of a word costs: the medians of so many turns."""
    chunks = [wire.text(WORDS[number % len(WORDS)]) for number in range(deltas)]
    bodies = [orjson.dumps(chunk) for chunk in chunks]
    measured: list[tuple[float, float]] = []
    for _ in range(turns):
        parsing = time_to_parse(bodies)
        measured.append((time_of(*begun(wire.dialect, [*wire.text_begins, chunks[0]]), chunks), parsing))
    return Cost(
        statistics.median(ours for ours, _ in measured),
        statistics.median(parsing for _, parsing in measured),
        statistics.median(ours / parsing for ours, parsing in measured),
    )


@dataclass(frozen=True, slots=True)
class Growth:
    """Microseconds per delta in the first and in the last tenth of a long text or argument."""

    first_us: float
    last_us: float

    @property
    def factor(self) -> float:
        """How much dearer the end is."""
        return self.last_us / self.first_us


def growth(
    dialect: Dialect, begins: Sequence[JsonObject], made: Callable[[str], JsonObject], step: int, turns: int
) -> Growth:
    """The cost at both ends of a `LONG` stream in steps of so many bytes."""
    words = "".join(WORDS).replace("\n", "\\n")
    text = ('{"path": "notes.md", "text": "' + words * (LONG // len(words)))[:LONG]
    chunks = [made(text[at : at + step]) for at in range(0, LONG, step)]
    tenth = max(1, len(chunks) // 10)
    first, middle, last = chunks[1 : 1 + tenth], chunks[1 + tenth : -tenth], chunks[-tenth:]
    measured: list[Growth] = []
    for _ in range(turns):
        decoder, sampling = begun(dialect, [*begins, chunks[0]])
        at_first = time_of(decoder, sampling, first)
        time_of(decoder, sampling, middle)
        measured.append(Growth(at_first, time_of(decoder, sampling, last)))
    return Growth(
        statistics.median(one.first_us for one in measured), statistics.median(one.last_us for one in measured)
    )


# --- the tables ---------------------------------------------------------------------------------------------------


def report(deltas: int, turns: int) -> str:
    """Both tables."""
    lines = [f"{'a text delta':<28}{'us':>8}{'parser, us':>12}{'x parser':>10}"]
    for name, wire in WIRES.items():
        paid = cost(wire(), deltas, turns)
        lines.append(f"{name:<28}{paid.delta_us:>8.2f}{paid.parse_us:>12.2f}{paid.ratio:>10.2f}")
    lines += ["", f"{'200 kB, in steps of':<28}{'first, us':>14}{'last, us':>14}{'last / first':>14}"]
    for name, make in WIRES.items():
        wire = make()
        streams = (("text", wire.text_begins, wire.text), ("argument", wire.call_begins, wire.arguments))
        for kind, begins, made in streams:
            for step, size in ((10, "10 B"), (10_000, "10 kB")):
                seen = growth(wire.dialect, begins, made, step, turns * (1 if step == 10 else 10))
                label = f"{name} {kind} {size}"
                lines.append(f"{label:<28}{seen.first_us:>14.2f}{seen.last_us:>14.2f}{seen.factor:>14.2f}")
    return "\n".join(lines)


def main(args: Sequence[str] | None = None) -> int:
    """Print the tables."""
    parser = argparse.ArgumentParser(prog="bench.dialects", description=__doc__)
    parser.add_argument("--deltas", type=int, default=2000, help="text deltas a turn")
    parser.add_argument("--turns", type=int, default=15)
    got = parser.parse_args(args)
    gc.disable()  # what the collector does depends on what else is alive, not on the delta
    print(report(got.deltas, got.turns))
    return 0


if __name__ == "__main__":
    sys.exit(main())
