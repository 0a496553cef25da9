"""A page that forgets, edits, cuts, asks again and goes back, and what the model should see of it all.

`Story` is the reference: it knows what a person did, never what a request looked like, and says which prompt follows.
"""

from __future__ import annotations

import copy
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from runtime import samples as s
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message
from tests.pure.histories import Line, Performed, Theatre

JsonObject = dict[str, Any]
T = TypeVar("T")
UNANSWERED = "Not answered by the client."


# --- what happened, as the reference keeps it -----------------------------------------------------------------------


@dataclass(eq=False)
class Asked:
    """A user message."""

    text: str

    def seen(self) -> Iterator[str]:
        yield f"user: {self.text}"


@dataclass(eq=False)
class Made:
    """A call, and its output if it has one."""

    name: str
    id: str = ""
    output: str | None = None
    late: Late | None = None


@dataclass(eq=False)
class Answered:
    """The answer of one run: per round its text and its calls."""

    rounds: list[tuple[str, list[Made]]]

    @property
    def calls(self) -> list[Made]:
        return [call for _, calls in self.rounds for call in calls]

    def seen(self) -> Iterator[str]:
        for text, calls in self.rounds:
            if text:
                yield f"assistant: {text}"
            yield from (f"call {call.name}" for call in calls)
            yield from (f"output {call.output}" for call in calls if call.output is not None)


@dataclass(eq=False)
class Foreign:
    """What the page showed and nobody here had said."""

    def seen(self) -> Iterator[str]:
        yield from ()


@dataclass(eq=False)
class Late:
    """An answer that came when its call was closed."""

    call: Made
    text: str

    def seen(self) -> Iterator[str]:
        yield f"late answer {self.text}"


Node = Asked | Answered | Foreign | Late


@dataclass
class Story:
    """The branch as the reference has it."""

    branch: list[Node] = field(default_factory=list[Node])

    def prompt(self) -> list[str]:
        """What the model should see."""
        return [line for node in self.branch for line in node.seen()]

    def users(self) -> list[Asked]:
        return [node for node in self.branch if isinstance(node, Asked)]

    def calls(self) -> list[Made]:
        return [call for node in self.branch if isinstance(node, Answered) for call in node.calls]

    def owed(self) -> list[Made]:
        """The calls that the page owes an answer."""
        return [call for call in self.calls() if call.output is None]

    def close(self) -> None:
        """Somebody goes on without answering."""
        for call in self.owed():
            call.output = UNANSWERED

    def cut(self, keep: int) -> None:
        """Keep so many nodes."""
        self.close()
        self.branch = self.branch[:keep]

    def go_to(self, shown: Sequence[Node]) -> None:
        """The page shows these nodes, all of them known: of this branch, of another, or the beginning of this one."""
        ours = set(map(id, self.branch))
        agreed, theirs = 0, [node for node in shown if isinstance(node, Asked)]
        while agreed < min(len(theirs), len(self.users())) and theirs[agreed] is self.users()[agreed]:
            agreed += 1
        part = shown.index(theirs[agreed]) if agreed < len(theirs) else len(shown)
        other = next(
            (
                i
                for i, node in enumerate(shown[:part])
                if i and not isinstance(node, (Asked, Late)) and id(node) not in ours
            ),
            None,
        )
        if other is not None:
            anchor = next(node for node in reversed(shown[:other]) if id(node) in ours and not isinstance(node, Late))
            self.cut(self.branch.index(anchor) + 1)
        elif agreed < len(self.users()):
            self.cut(self.branch.index(self.users()[agreed]))
        kept = set(map(id, self.branch))
        restored = [node for node in shown if id(node) not in kept and not isinstance(node, Late)]
        if restored:
            self.close()
            self.branch += restored

    def late_ones_shown(self, shown: Iterable[str]) -> None:
        """The answers that came too late and that the page still shows are told again where they were lost."""
        for id_ in shown:
            call = next((call for call in self.calls() if call.id == id_), None)
            if call is not None and call.late is not None and call.late not in self.branch:
                self.branch.append(call.late)


def in_short(items: Iterable[Item]) -> list[str]:
    """A prompt as `Story.prompt` writes it."""
    short: list[str] = []
    for item in items:
        match item:
            case Message(runtime_role="late_tool_answer", content=str(content)):
                short.append(f"late answer {content.rpartition(': ')[2]}")
            case Message(role, content):
                short.append(f"{role}: {content}")
            case FunctionCall(name=name):
                short.append(f"call {name}")
            case FunctionCallOutput(output=output):
                short.append(f"output {output}")
            case _:
                pass
    return short


# --- a server whose model says what it is told ----------------------------------------------------------------------


class NoChance:
    """Takes whatever comes first: nothing goes wrong."""

    def pick(self, options: Sequence[T]) -> T:
        return options[0]


class Stage(Theatre):
    """A thread whose runs are written beforehand; remembers each prompt."""

    def __init__(self) -> None:
        super().__init__(NoChance())
        self.prompts: list[list[str]] = []
        self._rounds: list[list[Sequence[Line]]] = []
        self._ids = count()

    def perform(self, answer: Answered, messages: list[JsonObject], state: Any, *, thinks: bool) -> Performed:
        """A run in which the model answers so, if it is asked."""
        for call in answer.calls:
            call.id = f"c{next(self._ids)}"
        self._rounds = [_round(text, calls, thinks=thinks) for text, calls in answer.rounds]
        return self.run(copy.deepcopy(messages), copy.deepcopy(state))

    def _perform(self, performed: Performed, pages_tools: set[str]) -> None:
        self.prompts.append(in_short(self.thread.items()))
        super()._perform(performed, pages_tools)

    def _said(self) -> list[Sequence[Line]]:
        return self._rounds.pop(0)


def _round(text: str, calls: list[Made], *, thinks: bool) -> list[Sequence[Line]]:
    said: list[Line] = [s.ReasoningDelta("hm"), s.ReasoningDone("sig")] if thinks else []
    said += [s.TextDelta(text), s.AssistantMessageDone()] if text else []
    for key, call in enumerate(calls):
        said.append(s.ToolCallDelta(str(key), call.name, "{}", call.id))
    said += [s.ToolCallCommitted(str(key), call.name, "{}", "") for key, call in enumerate(calls)]
    return [[*said, s.Completed("tool_calls" if calls else "stop")]]
