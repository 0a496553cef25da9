"""What an executor finds when it is performed: what it has remembered, what was said since, what was answered.

Pure: read from the fold of the thread. What was remembered on another branch is not known on this one, so an edit or a
fork takes an executor back to where it stood then.
"""

from __future__ import annotations

from dataclasses import dataclass

from runtime import events as e
from runtime.canonical import Json
from runtime.entries import Said, Turn
from runtime.executors.context import Answered
from runtime.items import FunctionCallOutput, Message
from runtime.thread import Thread


@dataclass(frozen=True, slots=True)
class Recollection:
    """What an agent's executor is told. `news` are what users said since it last remembered something, by their ids,
    and the outputs of calls that it made and did not perform itself, by the ids that it gave them."""

    remembered: Json
    news: list[tuple[str, Message | FunctionCallOutput]]
    answers: dict[str, Answered]
    calls: dict[str, str]
    """Our ids of its open calls, by those that it gave them."""


def recollection(thread: Thread, agent_id: str) -> Recollection:
    """What the executor of this agent is told of the thread as it stands."""
    own = [turn for turn in thread.entries if isinstance(turn, Turn) and thread.agents.get(turn.run_id) == agent_id]
    is_own = {id(turn) for turn in own}
    last = next((turn for turn in reversed(own) if turn.remembered is not None), None)
    remembered, place = (last.remembered or (None, 0)) if last is not None else (None, 0)
    heard = last is not None
    news: list[tuple[str, Message | FunctionCallOutput]] = []
    for entry in thread.entries:
        for call in entry.calls if id(entry) in is_own else ():
            if call.output is not None and call.target != e.EXECUTOR and call.place > place:
                news.append((call.call_id, _under_its_id(call.output, call.provider_call_id)))
        if not heard and isinstance(entry, Said) and entry.role == "user" and entry.model_visible:
            news.append((entry.id, Message("user", entry.content, entry.runtime_role)))
        heard = heard and entry is not last
    open_ = [call for turn in own for call in turn.calls if call.output is None and call.target == e.EXECUTOR]
    return Recollection(
        remembered,
        news,
        _answers(thread, is_own),
        {call.provider_call_id or call.call_id: call.call_id for call in open_},
    )


def _under_its_id(output: FunctionCallOutput, id_: str | None) -> FunctionCallOutput:
    return output if id_ is None else FunctionCallOutput(id_, output.tool_name, output.output, output.is_error)


def _answers(thread: Thread, is_own: set[int]) -> dict[str, Answered]:
    """What it has asked since a user last said something, and how it was answered, by its own keys."""
    answers: dict[str, Answered] = {}
    for entry in thread.entries:
        if isinstance(entry, Said) and entry.is_users:
            answers = {}
        elif isinstance(entry, Turn) and id(entry) in is_own:
            for ask in entry.asks:
                given = thread.answers.get(ask.id)
                if ask.raised.key is not None and given is not None:
                    answers[ask.raised.key] = Answered(given.event.status, given.event.payload)
    return answers
