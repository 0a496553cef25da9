"""From an executor's words to the events of its rounds. Pure.

The sampling loop commits them by the rules that hold for every model: this is where an executor's words become its
samples. A text without calls is committed when something else is said or nothing more, because only then it is known
whether it was the answer.
"""

from __future__ import annotations

from collections.abc import Mapping

import orjson

from runtime import events as e
from runtime import samples as s
from runtime.canonical import JsonObject, clean
from runtime.errors import ExecutorError
from runtime.executors.words import MessageDone, Reasoning, Text, ToolCall, ToolCallDelta, ToolResult
from runtime.sampling import CONTINUES, Sampling
from runtime.tools.execute import as_content


class Narration:
    """The rounds of one performance. `name` stands for the model that answers; `request` says what was asked of it.
    `calls` are our ids of its own calls that are still open, by those that it gave them."""

    def __init__(self, sampling: Sampling, *, name: str, request: JsonObject, calls: Mapping[str, str]) -> None:
        self._sampling = sampling
        self._name = name
        self._request = request
        self._ids: dict[str, str] = dict(calls)
        """Our ids of the calls that were committed, by the executor's."""
        self._open: dict[str, None] = {}
        """The calls of the open round, in order."""
        self._speaks = False
        self._done: MessageDone | None = None

    def tell(self, word: Text | Reasoning | ToolCallDelta | ToolCall | ToolResult | MessageDone) -> list[e.Event]:
        """What comes of this word. Raises ExecutorError for one that makes no sense where it stands."""
        match word:
            case Text(delta):
                return self._say(s.TextDelta(delta)) if delta else []
            case Reasoning(delta):
                return self._say(s.ReasoningDelta(delta)) if delta else []
            case ToolCallDelta(call_id, tool_name, delta):
                return self._calling(call_id, s.ToolCallDelta(call_id, tool_name, delta, call_id))
            case ToolCall():
                return self._call(word)
            case ToolResult():
                return self._result(word)
            case MessageDone():
                return self._message_done(word)

    def close(self, *, goes_on: bool = False) -> list[e.Event]:
        """The executor has nothing more to say in this performance: what is open is committed. `goes_on` if that is
        not the run's answer."""
        return self._commit(self._done or MessageDone(), goes_on=goes_on) if self._speaks else []

    def fail(self, error: ExecutorError) -> None:
        """Nothing of the open round is committed, and the run fails."""
        self._speaks, self._done = False, None
        self._sampling.round_failed(error)

    # --- one word each --------------------------------------------------------------------------------------------

    def _say(self, *samples: s.Sample) -> list[e.Event]:
        out: list[e.Event] = []
        if self._done is not None:
            out += self._commit(self._done, goes_on=True)
        if not self._speaks:
            self._speaks = True
            out += self._sampling.round_started(self._name, self._request)
        return out + self._sampling.feed(samples)

    def _call(self, word: ToolCall) -> list[e.Event]:
        key = word.call_id or f"call-{len(self._ids) + len(self._open) + 1}"
        written = word.arguments if isinstance(word.arguments, str) else orjson.dumps(clean(word.arguments)).decode()
        return self._calling(key, s.ToolCallCommitted(key, word.tool_name, written, word.call_id))

    def _calling(self, key: str, sample: s.Sample) -> list[e.Event]:
        if key in self._ids:
            raise ExecutorError(f"The agent made two calls with the id {key!r}.")
        out = self._say(sample)
        self._open[key] = None
        return out

    def _result(self, word: ToolResult) -> list[e.Event]:
        out = self._commit(MessageDone()) if word.call_id in self._open else []
        call_id = self._ids.get(word.call_id, word.call_id)
        if call_id not in self._sampling.unanswered:
            raise ExecutorError(f"The agent gave a result for {word.call_id!r}, which is no open call of its own.")
        kind = "error" if word.is_error else "result"
        return out + self._sampling.tool_output(call_id, as_content(word.output), kind)

    def _message_done(self, word: MessageDone) -> list[e.Event]:
        if not self._speaks:
            return []
        if self._open or word.final is not None:
            return self._commit(self._done or word, goes_on=not word.final)
        self._done = word
        return []

    def _commit(self, done: MessageDone, *, goes_on: bool = False) -> list[e.Event]:
        finish = "tool_calls" if self._open else CONTINUES if goes_on else "stop"
        events = self._sampling.feed(
            [s.AssistantMessageDone(), s.Completed(finish, done.usage, model=done.model)], model=self._name
        )
        committed = [event.tool_call_id for event in events if isinstance(event, e.ToolCallCommitted)]
        self._ids |= dict(zip(self._open, committed, strict=False))  # nothing is committed of a round that broke a rule
        self._speaks, self._done, self._open = False, None, {}
        return events
