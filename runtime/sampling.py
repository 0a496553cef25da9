"""The sampling loop, as an object that waits for nothing.

It is told what the model or a tool did; it answers with the events to commit and, asked for `next()`, with what is to
be done: call the model, run tools, or finish. The engine above does the waiting; dialects below turn a provider's
chunks into the samples that are fed here. It knows no provider, no clock, no journal.

The rules that live here and nowhere else:

1. Deltas are provisional. By the time of `completed` each must be covered by its commit point; if not, the round
   fails, nothing of it enters history and nothing is executed.
2. Only `completed` commits: calls that a decoder committed earlier wait here until the round is complete.
3. Arguments cut by a length limit are never repaired: no call of that round is committed.
4. A completed round with committed calls is a working message and the loop goes on; without, it is the final response.
   What a provider says of its own finality is kept, and decides nothing. One thing is not finality: a provider that
   paused its turn (`pause_turn`) has not answered, and is asked to go on. Nor is a round behind which an executor says
   more.
5. A run that owes a value (see `output`) ends when there is one; an answer that does not fit is a working message.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

from runtime import events as e
from runtime import samples as s
from runtime.budget import Budget
from runtime.canonical import Json, JsonObject, digest
from runtime.errors import AguiBridgeError, ProtocolError, ProviderError
from runtime.items import FINAL, REJECTION, WORKING, Content
from runtime.open_round import OpenCall, OpenRound, arguments_of, is_object, may_be_nothing, why_not
from runtime.output import Answering, Judgement, Output
from runtime.parts import (
    REASONING,
    REFUSAL,
    TEXT,
    TOOL_CALL,
    Boundary,
    PartDelta,
    PartFinished,
    PartStarted,
    PartStream,
)
from runtime.progress import Progress
from runtime.steps import CallModel, Fail, RunTools, Step, Stop, Succeed, Suspend
from runtime.usage import Spending, add_usage

PAUSED = "pause_turn"
"""A provider paused its turn: the round is complete, but it is no answer; the model is asked to go on."""
CONTINUES = "continues"
"""An executor goes on behind this round, which has no calls: it is complete, but no answer."""
MOST_PAUSES = 10
"""How often in a row a provider may pause."""
UNTOLD = "The agent gave no result for this call."


class Sampling:
    """The loop of one run.

    `target` says who performs a tool (`server`, `client` or `nobody`), `taken` are the call ids of the thread,
    `mint` makes a new id with the given prefix, `elapsed` tells the seconds since the run began. `output` is the value
    that the run owes, if it owes one. `above` counts what it spends further up its tree. Without `keep_call_ids` every
    call gets an id of ours: the calls of a tree are shown together, and a provider's are unique only in its answers.
    """

    def __init__(
        self,
        *,
        message_id: str,
        provider: str,
        target: Callable[[str], str],
        taken: set[str],
        mint: Callable[[str], str],
        budget: Budget,
        elapsed: Callable[[], float],
        output: Output | None = None,
        above: Spending | None = None,
        keep_call_ids: bool = True,
    ) -> None:
        self.message_id = message_id
        self.usage: list[JsonObject] = []
        self._provider = provider
        self._target = target
        self._taken = taken
        self._mint = mint
        self._budget = budget
        self._elapsed = elapsed
        self._answering = Answering(output) if output is not None else None
        self._above = above
        self._keep_call_ids = keep_call_ids
        self._tool_calls = 0
        self._parts = PartStream()
        self._rounds = 0
        self._pauses = 0
        self._round: OpenRound | None = None
        self._waiting: dict[str, e.ToolCallCommitted] = {}
        self._theirs: dict[str, e.ToolCallCommitted] = {}
        """The open calls that an executor performs itself."""
        self._pending: list[str] = []
        self._end: Succeed | Fail | Stop | Suspend | None = None
        self._shown = False

    # --- what is to be done ---------------------------------------------------------------------------------------

    def next(self) -> Step:
        """The next step. Does not change until something was fed."""
        if self._end is not None:
            return self._end
        if self._waiting:
            asked_before = self._tool_calls - len(self._waiting)
            return RunTools(list(self._waiting.values()), self._budget.tool_calls_left(asked_before))
        if self._pending:
            return Succeed(self._pending)
        reason = self._exhausted()
        return CallModel(self._rounds + 1) if reason is None else Stop(reason)

    def _exhausted(self) -> str | None:
        """Why there is no further round, if there is none."""
        reason = self._budget.used_up(
            rounds=self._rounds, tool_calls=self._tool_calls, usage=self.usage, seconds=self._elapsed()
        )
        return self._above.tree_used_up() if reason is None and self._above is not None else reason

    # --- the tree -------------------------------------------------------------------------------------------------

    def spent_below(self, usage: JsonObject) -> None:
        """A run below has used this: it counts as this run's, too."""
        self._spend(usage)

    def _spend(self, usage: JsonObject) -> None:
        add_usage(self.usage, usage)
        if self._above is not None:
            self._above.spent_below(usage)

    def tree_used_up(self) -> str | None:
        """Why nothing below may go on: this run's tokens, seconds or money, or those of one above. Rounds and calls of
        tools are each run's own."""
        reason = self._budget.used_up(rounds=0, tool_calls=0, usage=self.usage, seconds=self._elapsed())
        return self._above.tree_used_up() if reason is None and self._above is not None else reason

    @property
    def may_be_steered(self) -> bool:
        """Whether what a user says now would be answered by this run: between two rounds, or where it is about to end
        with its answer and its budget leaves another round."""
        match self.next():
            case CallModel(round=number):
                return number > 1
            case Succeed(pending) if not pending:
                return self._exhausted() is None
            case _:
                return False

    def steered(self) -> None:
        """A user has said something, which is in the history: the loop goes on."""
        if isinstance(self._end, Succeed):
            self._end = None

    @property
    def rounds(self) -> int:
        """How many rounds have begun."""
        return self._rounds

    # --- what happened --------------------------------------------------------------------------------------------

    def start(self) -> list[e.Event]:
        """The assistant message begins."""
        return [e.MessageStarted(self.message_id, "assistant")]

    def resume(self, progress: Progress) -> None:
        """Go on where another executor has left the run."""
        self.message_id, self._rounds, self._pauses = progress.message_id, progress.rounds, progress.pauses
        self._parts = PartStream(progress.parts)
        for usage in progress.usage:
            self._spend(usage)
        final = [call for call in progress.calls if self._is_final(call.tool_name)]
        if self._answering is not None:
            rejected = [call for call in final if call.tool_call_id in progress.answered]
            self._answering.resume(progress.mends + len(rejected))
        for call in progress.calls:
            if self._is_final(call.tool_name):
                continue
            is_open = call.tool_call_id not in progress.answered
            if is_open:
                self._await_output(call)
            elif not _is_pages(call):
                self._tool_calls += 1

    def carry(self, calls: Iterable[e.ToolCallCommitted]) -> None:
        """Begin with calls that earlier runs of the thread left open."""
        for call in calls:
            self._await_output(call)

    def _await_output(self, call: e.ToolCallCommitted) -> None:
        if _is_pages(call):
            self._pending.append(call.tool_call_id)
            return
        self._tool_calls += 1
        waits = self._theirs if call.target == e.EXECUTOR else self._waiting
        waits[call.tool_call_id] = call

    def round_started(self, model: str, request: JsonObject) -> list[e.Event]:
        """The model is being asked."""
        self._rounds += 1
        self._round = OpenRound(self._rounds)
        self._shown = False
        return [e.RoundStarted(self._rounds, model, self._provider, request)]

    def attempt_started(self) -> None:
        """The model is being asked in this round, maybe again: an attempt that showed nothing leaves nothing behind."""
        self._round = OpenRound(self._rounds)
        self._end = None

    @property
    def has_shown_something(self) -> bool:
        """Whether the present round has shown or committed anything: from then on it cannot be tried again."""
        return self._shown or (self._round is not None and (self._round.spoke or bool(self._round.calls)))

    def spent(self, usage: JsonObject | None, model: str) -> None:
        """An attempt is over, well or not, and its provider had counted so much by then (see `Decoder.usage`).

        Comes to nothing when `completed` has told it already.
        """
        if self._round is not None and usage:
            self._spend({"provider": self._provider, "model": model, **usage})

    def feed(self, samples: Iterable[s.Sample], attempts: int = 1, model: str = "") -> list[e.Event]:
        """The model said this. Returns provisional events, and with `completed` the commit of the round."""
        out: list[e.Event] = []
        for sample in samples:
            if type(sample) is s.TextDelta:  # the hot one first
                self._text(sample.text, out)
            elif isinstance(sample, s.Completed):
                out += self._completed(sample, attempts, model)
            else:
                out += self._other(sample)
        return out

    def round_failed(self, error: AguiBridgeError) -> None:
        """The round cannot be completed. Nothing of it enters history."""
        self._shown = self.has_shown_something
        self._round = None
        self._end = Fail(error)

    def end(self, step: Fail | Stop | Suspend) -> None:
        """The run is to end so, whatever else was to be done."""
        self._end = step

    @property
    def unanswered(self) -> list[str]:
        """The committed calls that have no output yet and are not the page's, those of an executor first."""
        return [*self._theirs, *self._waiting]

    def conclude(self, result: Json = None) -> list[e.Event]:
        """An executor has nothing more to say: the run succeeds, unless calls are to be run. Its own calls that it told
        nothing of have failed."""
        out: list[e.Event] = []
        for call_id in list(self._theirs):
            out += self.tool_output(call_id, UNTOLD, "error")
        if not self._waiting and not isinstance(self._end, Fail):
            self._end = Succeed(self._pending, result)
        return out

    @property
    def is_over(self) -> bool:
        """Whether nothing is left to be done but to end."""
        return self._end is not None

    def tool_output(self, tool_call_id: str, result: Content, kind: str) -> list[e.Event]:
        """A call has its one output; `kind` is one of `events.OUTPUT_KINDS`."""
        call = self._waiting.pop(tool_call_id, None) or self._theirs.pop(tool_call_id)
        return [e.output_of(call.tool_call_id, call.tool_name, result, kind)]

    # --- one sample each ------------------------------------------------------------------------------------------

    def _text(self, text: str, out: list[e.Event]) -> None:
        if self._answering is not None and self._round is not None:
            self._round.messages[-1].append(text)
        part = self._parts.flowing
        if part is not None and part.kind == TEXT and self._round is not None and self._round.uncovered_text:
            out.append(e.MessageDelta(self.message_id, part.part_id, part.index, text))  # the part just goes on
        else:
            out += self._said(TEXT, text)

    def _said(self, kind: str, text: str) -> list[e.Event]:
        round_ = self._open_round()
        round_.spoke = True
        if kind == REFUSAL:
            round_.refused = True
        if kind != REASONING:
            round_.uncovered_text = True
        return self._journaled(self._parts.append(kind, round_.number, text))

    def _other(self, sample: s.Sample) -> list[e.Event]:
        match sample:
            case s.RefusalDelta(text):
                return self._said(REFUSAL, text)
            case s.ReasoningDelta(text):
                return self._said(REASONING, text)
            case s.ReasoningDone():
                return self._reasoning_done(sample)
            case s.AssistantMessageDone(phase):
                round_ = self._open_round()
                round_.uncovered_text = False
                round_.messages.append([])
                round_.phase = phase or round_.phase
                return []
            case s.ToolCallDelta():
                return self._call_delta(sample)
            case s.ToolCallCommitted():
                return self._call_committed(sample)
            case _:
                return []

    def _reasoning_done(self, sample: s.ReasoningDone) -> list[e.Event]:
        round_ = self._open_round()
        round_.spoke = True
        flowing = self._parts.flowing is not None and self._parts.flowing.kind == REASONING
        boundaries = self._parts.end() if flowing else self._parts.whole(REASONING, round_.number)
        return self._journaled(boundaries, sample)

    def _call_delta(self, sample: s.ToolCallDelta) -> list[e.Event]:
        round_ = self._open_round()
        call = round_.calls.get(sample.key)
        if call is None:
            call = round_.calls[sample.key] = self._new_call(sample.name, sample.provider_call_id)
        return self._call_text(round_, sample.key, call, sample.arguments)

    def _call_text(self, round_: OpenRound, key: str, call: OpenCall, text: str) -> list[e.Event]:
        if not call.name:  # a call without a name is never shown: nobody could say whose it is
            return []
        if call.committed is None and not any(call.streamed):
            text, call.held = call.held + text, ""
            if may_be_nothing(text):  # "null" stands for {}, and what is shown must be what is committed
                text, call.held = "", text
        call.streamed.append(text)
        out: list[e.Event] = []
        for boundary in self._parts.call(key, round_.number, text):
            match boundary:
                case PartStarted(part_id, kind, _, index) if kind == TOOL_CALL:
                    round_.parts.append({"part_id": part_id, "kind": kind})
                    out.append(e.ToolCallStarted(self.message_id, part_id, index, call.tool_call_id, call.name))
                case PartDelta(_, kind, _, delta) if kind == TOOL_CALL:
                    if delta:
                        out.append(e.ToolCallDelta(call.tool_call_id, delta))
                case _:
                    out += self._journaled([boundary])
        return out

    def _call_committed(self, sample: s.ToolCallCommitted) -> list[e.Event]:
        round_ = self._open_round()
        call = round_.calls.get(sample.key)
        if call is None:
            call = round_.calls[sample.key] = self._new_call(sample.name, sample.provider_call_id)
        call.committed = sample
        call.name = call.name or sample.name
        arguments = arguments_of(sample)
        streamed = "".join(call.streamed)
        call.held = ""  # it is part of what was committed
        if arguments.startswith(streamed) and (len(arguments) > len(streamed) or not call.streamed):
            return self._call_text(round_, sample.key, call, arguments[len(streamed) :])
        return []

    def _new_call(self, name: str, provider_call_id: str) -> OpenCall:
        fits = self._keep_call_ids and bool(provider_call_id) and provider_call_id not in self._taken
        tool_call_id = provider_call_id if fits else self._mint("call")
        self._taken.add(tool_call_id)
        return OpenCall(tool_call_id, provider_call_id, name)

    # --- the commit -----------------------------------------------------------------------------------------------

    def _completed(self, sample: s.Completed, attempts: int, model: str) -> list[e.Event]:
        round_ = self._open_round()
        usage = self._count(sample, model)
        error = why_not(round_, sample.finish, sample.explanation)
        if error is not None:
            self.round_failed(error)
            return []
        out = self._journaled([*self._parts.end(), *self._parts.end_calls()])
        calls = [self._commit(call) for call in round_.calls.values()]
        paused = sample.finish in (PAUSED, CONTINUES) and not calls
        self._pauses = self._pauses + 1 if paused and sample.finish == PAUSED else 0
        judgement = None if paused else self._judged(round_, calls, sample.finish)
        rejection = judgement.rejection if judgement is not None else None
        out += calls
        out.append(
            e.RoundCompleted(
                round=round_.number,
                runtime_role=WORKING if calls or paused or rejection is not None else FINAL,
                finish=sample.finish,
                parts=round_.parts,
                tool_call_ids=[call.tool_call_id for call in calls],
                attempts=attempts,
                usage=usage,
                provider_response_id=sample.provider_response_id,
                provider_phase=round_.phase,
            )
        )
        self._round, self._shown = None, True
        for call in calls:
            if self._is_final(call.tool_name):
                self._waiting[call.tool_call_id] = call  # it is answered right here, and counts as no call of a tool
            else:
                self._await_output(call)
        if judgement is not None:
            out += self._answered(judgement)
        elif self._pauses > MOST_PAUSES:
            self._end = Fail(ProviderError("The provider paused the turn again and again.", code="turn_paused"))
        elif not calls and not paused:
            self._end = Succeed([])
        return out

    def _is_final(self, tool_name: str) -> bool:
        return self._answering is not None and self._answering.is_final(tool_name)

    def _judged(self, round_: OpenRound, calls: list[e.ToolCallCommitted], finish: str) -> Judgement | None:
        if self._answering is None:
            return None
        return self._answering.judge(round_.texts, calls, finish=finish, refused=round_.refused)

    def _answered(self, judgement: Judgement) -> list[e.Event]:
        """What the model is told of its answer, and how the run ends, if it does."""
        self._end = judgement.end
        out: list[e.Event] = []
        for call, text, kind in judgement.outputs:
            out += self.tool_output(call.tool_call_id, text, kind)
        if (said := judgement.rejection) is not None:
            out.append(e.MessageCompleted(self._mint("msg"), "user", said, digest(said), REJECTION))
        return out

    def _commit(self, call: OpenCall) -> e.ToolCallCommitted:
        sample = call.committed
        assert sample is not None  # why_not has refused the round otherwise
        arguments = arguments_of(sample)
        return e.ToolCallCommitted(
            tool_call_id=call.tool_call_id,
            tool_name=sample.name,
            arguments_json=arguments,
            target=e.PROVIDER if sample.at_provider else self._target_of(sample.name),
            malformed=not is_object(arguments),
            provider_call_id=sample.provider_call_id
            if sample.provider_call_id and sample.provider_call_id != call.tool_call_id
            else None,
            opaque=sample.opaque,
        )

    def _target_of(self, name: str) -> str:
        return "server" if self._is_final(name) else self._target(name)

    def _count(self, sample: s.Completed, model: str) -> JsonObject | None:
        if not sample.usage:
            return None
        usage: JsonObject = {"provider": self._provider, "model": sample.model or model, **sample.usage}
        self._spend(usage)
        return usage

    def _open_round(self) -> OpenRound:
        if self._round is None:
            raise ProtocolError("The provider's stream went on after its end.")
        return self._round

    def _journaled(self, boundaries: list[Boundary], done: s.ReasoningDone | None = None) -> list[e.Event]:
        out: list[e.Event] = []
        for boundary in boundaries:
            match boundary:
                case PartDelta(part_id, kind, index, delta):
                    made = e.ReasoningDelta if kind == REASONING else e.MessageDelta
                    out.append(made(self.message_id, part_id, index, delta))
                case PartStarted(part_id, kind, _, index):
                    if self._round is not None:
                        self._round.parts.append({"part_id": part_id, "kind": kind})
                    if kind == REASONING:
                        out.append(e.ReasoningStarted(self.message_id, part_id, index))
                case PartFinished(part_id, kind, index) if kind == REASONING:
                    done = done or s.ReasoningDone()
                    out.append(
                        e.ReasoningCompleted(
                            self.message_id,
                            part_id,
                            index,
                            self._provider,
                            done.signature,
                            done.encrypted_value,
                            done.opaque,
                        )
                    )
                case _:
                    pass
        return out


def _is_pages(call: e.ToolCallCommitted) -> bool:
    """Whether the page owes the call's output."""
    return call.target == "client" and not call.malformed
