"""Threads that could have been: runs made of chance, played by the real loop, fold and intake without any waiting.

What decides is a `Chance`: hypothesis, which shrinks what it finds, or a seeded generator.
"""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias, TypeVar

from hypothesis import strategies as st

from agui_bridge.intake import IntakePolicy, Plan, reconcile
from agui_bridge.interrupts import Answerer
from agui_bridge.page_tools import client_tools
from agui_bridge.prelude import Prelude, prelude
from agui_bridge.projection import Echo, Projector
from agui_bridge.run_input import parse
from agui_bridge.transcript import transcript
from runtime import events as e
from runtime import samples as s
from runtime.budget import Budget
from runtime.canonical import digest_of
from runtime.ending import ending
from runtime.errors import AguiBridgeError, ProviderError
from runtime.gate import judge
from runtime.output import MODES, Output
from runtime.output_type import read_output_type
from runtime.sampling import Sampling
from runtime.state_delta import change
from runtime.steps import CallModel, Fail, RunTools, Stop, Succeed, Suspend
from runtime.testing import CountingIds
from runtime.thread import Thread
from runtime.tools.toolbox import Toolbox, tool

JsonObject = dict[str, Any]
T = TypeVar("T")


Line: TypeAlias = "s.Sample | AguiBridgeError"


def _spoken(lines: Sequence[Line]) -> Iterator[s.Sample]:
    for line in lines:
        if isinstance(line, AguiBridgeError):
            raise line
        yield line


class Chance(Protocol):
    """Whatever decides."""

    def pick(self, options: Sequence[T]) -> T: ...


class Drawn:
    """Hypothesis decides."""

    def __init__(self, data: st.DataObject) -> None:
        self._data = data

    def pick(self, options: Sequence[T]) -> T:
        return self._data.draw(st.sampled_from(options))


class Seeded:
    """A seeded generator decides."""

    def __init__(self, seed: int) -> None:
        self._random = random.Random(seed)

    def pick(self, options: Sequence[T]) -> T:
        return self._random.choice(options)


@tool(parallel=True)
async def lookup(key: str = "") -> str:
    """Never called: chance says what comes of it."""
    return key


@tool
async def note(text: str = "") -> str:
    """Never called either."""
    return text


BOX = Toolbox([lookup, note])
PICK: JsonObject = {"name": "pick", "description": "The page's own", "parameters": {"type": "object"}}
NAMES = ("lookup", "note", "pick", "launch", "final_response", "")
ARGUMENTS = ("{}", '{"key":"tea"}', '{"text":"a\\u2028b"}', "", "null", " {}", "[1]", '{"key": tea}', '{"value":4}')
PIECES = ("So ", "it is", "\u2028", "é 🎈", "\n", '{"value":4}')
FINISHES = ("stop", "stop", "stop", "tool_calls", "length", "content_filter", "refusal", "pause")
OUTPUTS = (None, None, None, *(Output(read_output_type(int), mode) for mode in MODES))
SIGNATURES = (None, None, "sig")


@dataclass
class Performed:
    """One run: its records, and what opened the stream of the page that asked for it."""

    run_id: str
    echo: Echo
    opening: Prelude
    base: int
    records: list[e.Record] = field(default_factory=list[e.Record])

    def projector(self) -> Projector:
        """A new projection for the page that asked."""
        return Projector(self.echo, self.opening)

    def stream(self) -> list[JsonObject]:
        """What the page was told."""
        projector = self.projector()
        return [event for record in self.records for event in projector.feed(record.event)]


class Theatre:
    """One thread and its runs."""

    def __init__(self, chance: Chance) -> None:
        self.thread = Thread("thr_1")
        self.runs: list[Performed] = []
        self._chance = chance
        self._mint = CountingIds()

    def run(self, messages: list[JsonObject], state: Any) -> Performed:
        """A run for a page that shows these messages and believes in this state."""
        run_id = self._mint("run")
        run_input = parse(
            {"threadId": "t1", "runId": f"client-{run_id}", "messages": messages, "state": state, "tools": [PICK]}
        )
        plan = reconcile(run_input, self.thread, IntakePolicy(), Answerer("user", 0))
        assert not plan.follow
        assert not plan.nothing
        base = self.thread.position
        performed = Performed(run_id, Echo("t1", run_input.run_id), Prelude(), base)
        self.runs.append(performed)
        self._tell(performed, self._first(run_input.run_id, plan))
        if not plan.call_model:
            self._tell(performed, [e.RunCompleted()])
        performed.opening = prelude(self.thread, run_id, run_input.messages, run_input.state)
        if plan.call_model:
            self._perform(performed, {spec.name for spec in client_tools(run_input)})
        return performed

    def shown(self) -> list[JsonObject]:
        """The messages of the thread as we would snapshot them."""
        return [line.message for line in transcript(self.thread)]

    # --- one run --------------------------------------------------------------------------------------------------

    def _first(self, client_run_id: str, plan: Plan) -> list[e.Event]:
        return [e.RunStarted(0, client_run_id, "assistant", "", plan.snapshots), *plan.facts]

    def _tell(self, performed: Performed, facts: Sequence[e.Event]) -> None:
        for fact in facts:
            seq = len(performed.records) + 1
            payload = e.encode(fact)
            self.thread.apply(performed.run_id, performed.base, seq, fact)
            performed.records.append(
                e.Record(
                    run_id=performed.run_id,
                    seq=seq,
                    root_seq=seq,
                    event_type=fact.event_type,
                    event=e.decode(fact.event_type, payload),
                    stored=payload,
                    stored_checksum=digest_of(payload),
                    occurred_at=0,
                    recorded_at=0,
                )
            )

    def _perform(self, performed: Performed, pages_tools: set[str]) -> None:
        sampling = Sampling(
            message_id=self._mint("msg"),
            provider="chance",
            target=lambda name: "server" if name in BOX.names else "client" if name in pages_tools else "nobody",
            taken=set(self.thread.calls),
            mint=self._mint,
            budget=Budget(rounds=3),
            elapsed=lambda: 0.0,
            output=self._chance.pick(OUTPUTS),
        )
        self._tell(performed, sampling.start())
        terminal = None
        while terminal is None:
            terminal = self._stopped(performed) or self._step(performed, sampling, pages_tools)
        self._tell(performed, ending(self.thread, performed.run_id, terminal))

    def _stopped(self, performed: Performed) -> e.Event | None:
        """Now and then somebody presses Stop, or the process is lost."""
        match self._chance.pick((*[""] * 20, "cancel", "lost")):
            case "cancel":
                self._tell(performed, [e.RunCancelling("client")])
                return e.RunCancelled("client", True)
            case "lost":
                return e.RunInterrupted("executor_lost")
            case _:
                return None

    def _step(self, performed: Performed, sampling: Sampling, pages_tools: set[str]) -> e.Event | None:
        match sampling.next():
            case CallModel():
                return self._round(performed, sampling)
            case RunTools(calls):
                return self._tools(performed, sampling, calls, pages_tools)
            case Succeed(pending, result):
                return e.RunCompleted(sampling.message_id, pending or None, sampling.usage or None, result)
            case Fail(error):
                return e.RunFailed(error.as_payload(), sampling.usage or None)
            case Stop(reason):
                self._tell(performed, [e.RunCancelling(reason)])
                return e.RunCancelled(reason, True, None, sampling.usage or None)
            case Suspend():
                raise AssertionError("nobody asks anything here")

    def _round(self, performed: Performed, sampling: Sampling) -> e.Event | None:
        self._tell(performed, sampling.round_started("chance-1", {"digest": "", "items": 0}))
        try:
            for lines in self._said():
                self._tell(performed, sampling.feed(_spoken(lines)))
                if (terminal := self._stopped(performed)) is not None:
                    return terminal
        except AguiBridgeError as error:
            sampling.round_failed(error)
        return None

    def _tools(
        self, performed: Performed, sampling: Sampling, calls: list[e.ToolCallCommitted], pages_tools: set[str]
    ) -> e.Event | None:
        allowed: list[e.ToolCallCommitted] = []
        for call in calls:
            verdict = judge(call, BOX, pages_tools)
            if verdict.arguments is None:
                self._tell(performed, sampling.tool_output(call.tool_call_id, verdict.message or "", "denied"))
            else:
                allowed.append(call)
        streams = self._chance.pick((None, True))
        self._tell(performed, [e.ToolExecutionStarted(c.tool_call_id, c.tool_name, "", streams) for c in allowed])
        while allowed:
            if streams and (terminal := self._progress(performed, allowed)) is not None:
                return terminal
            call = allowed.pop(self._chance.pick(range(len(allowed))))
            facts: list[e.Event] = []
            if self._chance.pick((True, False)):
                before = self.thread.state
                after = {
                    **before,
                    self._chance.pick(("a", "b/c", "d~")): self._chance.pick((1, None, [1, 2], "x" * 40)),
                }
                facts = [fact] if (fact := change(before, after)) is not None else []
            facts += self._beside(call.tool_call_id)
            kind = self._chance.pick(("result", "result", "error"))
            result = self._chance.pick(("42", "", [{"type": "text", "text": "forty-two"}]))
            self._tell(performed, [*facts, *sampling.tool_output(call.tool_call_id, result, kind)])
            if (terminal := self._stopped(performed)) is not None:
                return terminal
        return None

    def _progress(self, performed: Performed, calls: list[e.ToolCallCommitted]) -> e.Event | None:
        """Some of the calls that are at work tell how far they are."""
        for number in range(1, self._chance.pick((1, 2, 4))):
            call, value = self._chance.pick(calls), self._chance.pick((None, "half", {"percent": 50}))
            self._tell(performed, [e.ToolCallProgress(call.tool_call_id, call.tool_name, number, value)])
        return self._stopped(performed)

    def _beside(self, call_id: str) -> list[e.Event]:
        """What a tool says beside its result."""
        match self._chance.pick((*[""] * 6, "artifact", "activity", "of the thread", "change")):
            case "artifact":
                return [e.ArtifactCreated(self._mint("art"), "tea.txt", "text/plain", 3, "0" * 64, call_id)]
            case "activity":
                return [e.ActivitySnapshot(f"{call_id}-1", "shop.basket", {"items": self._chance.pick((1, 2))})]
            case "of the thread":
                return [e.ActivitySnapshot("basket", "shop.basket", {"items": self._chance.pick((3, 4))})]
            case "change":
                return [e.ActivityDelta("basket", "shop.basket", [{"op": "replace", "path": "/items", "value": 5}])]
            case _:
                return []

    # --- what the model says --------------------------------------------------------------------------------------

    def _said(self) -> list[Sequence[Line]]:
        """A round, piece by piece; behind a failure nothing follows."""
        lines: list[Sequence[Line]] = []
        written: dict[str, tuple[str, str, list[str]]] = {}
        text = False
        for _ in range(self._chance.pick(range(7))):
            match self._chance.pick(("text", "text", "reasoning", "refusal", "call", "call", "go on", "thought")):
                case "text":
                    lines.append([s.TextDelta(self._chance.pick(PIECES))])
                    text = True
                case "refusal":
                    lines.append([s.RefusalDelta(self._chance.pick(PIECES))])
                    text = True
                case "reasoning":
                    lines.append([s.ReasoningDelta(self._chance.pick(PIECES))])
                case "thought":
                    lines.append([s.ReasoningDone(self._chance.pick(SIGNATURES))])
                case "call":
                    lines.append([self._begin_call(written)])
                case _:
                    lines += [
                        [s.ToolCallDelta(key, name, rest.pop())] for key, (name, _, rest) in written.items() if rest
                    ]
        return self._closed(lines, written, text=text)

    def _begin_call(self, written: dict[str, tuple[str, str, list[str]]]) -> s.Sample:
        name, arguments, key = self._chance.pick(NAMES), self._chance.pick(ARGUMENTS), str(len(written))
        at = self._chance.pick(range(len(arguments) + 1))
        written[key] = (name, arguments, [arguments[at:]])
        return s.ToolCallDelta(key, name, arguments[:at], self._chance.pick(("call_a", "call_b", "")))

    def _closed(
        self, lines: list[Sequence[Line]], written: dict[str, tuple[str, str, list[str]]], *, text: bool
    ) -> list[Sequence[Line]]:
        flaw = self._chance.pick((*[""] * 12, "text", "call", "cut"))
        last: list[Line] = [s.AssistantMessageDone()] if text and flaw != "text" else []
        if flaw != "call":
            last += [s.ToolCallCommitted(key, name, whole, "") for key, (name, whole, _) in written.items()]
        finish = self._chance.pick((*["tool_calls"] * 6, "length")) if written else self._chance.pick(FINISHES)
        usage = self._chance.pick((None, {"input_tokens": 3, "output_tokens": 1}))
        if flaw == "cut":
            return [*lines, [ProviderError("The provider's stream broke off.", code="stream_cut")]]
        return [*lines, [*last, s.Completed(finish, usage)]]
