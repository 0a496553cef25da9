"""From RunAgentInput to a run: what of the shown history is new, and what follows from it.

Pure. A client sends the whole history that it shows, each time; the thread has its own. `reconcile` takes what is
new out of the one in the light of the other and answers with the first facts of a run. The order of the questions is
the rule: is it an answer to something open; if not, where do the two histories part; if nothing is stored, the shown
one is adopted. What the server has stored wins over what a client says of it: a client can never forge a result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

from agui_bridge.alignment import UserAlignment, align_users, match_lines
from agui_bridge.interrupts import Answerer, Answers, answers_in, resumes
from agui_bridge.prelude import differs, must_restate
from agui_bridge.run_input import RunInput
from agui_bridge.told import adopted, answer_fact, key_of, late_fact, seed_of, user_fact
from agui_bridge.transcript import lines_of, owner_of, transcript
from runtime import events as e
from runtime.canonical import Json, JsonObject, canonical
from runtime.ending import closing_output
from runtime.entries import Call, Said, Turn
from runtime.pause import abandoned, standing
from runtime.thread import Thread

ClientState = Literal["replace", "merge", "ignore"]


@dataclass(frozen=True, slots=True)
class IntakePolicy:
    """What a client may decide: `client_state` says what its state does to ours, and whether its system and developer
    messages reach the model."""

    client_state: ClientState = "replace"
    accept_system_messages: bool = False


@dataclass(frozen=True, slots=True)
class Plan:
    """What to do with a request.

    `facts` open the run; without `call_model` it is over at once. `follow` is the run that was asked for already.
    `nothing`: an unknown thread without messages, which is not created. `snapshots` names what the client must be
    told again.
    """

    facts: list[e.Event] = field(default_factory=list[e.Event])
    call_model: bool = False
    follow: str | None = None
    nothing: bool = False
    snapshots: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])


def reconcile(run_input: RunInput, thread: Thread, policy: IntakePolicy, answerer: Answerer) -> Plan:
    """The plan for this request on this thread."""
    intake = _Intake(run_input.messages, thread, policy, answerer.now)
    if not thread.is_empty:
        answers = answers_in(run_input, thread, answerer) if resumes(run_input) else None
        call_model = intake.take(answers)
    elif intake.last_said():
        call_model = intake.adopt()
    else:
        return Plan(nothing=True, warnings=intake.warnings)
    if intake.follow:
        return Plan(follow=intake.follow, warnings=intake.warnings)
    state = client_state(run_input.state, thread.state, policy.client_state)
    ours = state[0].snapshot if state else thread.state
    messages = ["messages"] if run_input.has_large_media else intake.snapshots()
    return Plan(
        facts=[*state, *intake.facts],
        call_model=call_model,
        snapshots=[*messages, *(["state"] if differs(ours, run_input.state) else [])],
        warnings=intake.warnings,
    )


def client_state(given: Json, ours: Json, rule: ClientState) -> list[e.StateSnapshot]:
    """What the client's state does to ours. Absent, null or `{}` is no opinion."""
    if given in (None, {}) or rule == "ignore":
        return []
    if rule == "merge" and isinstance(given, dict) and isinstance(ours, dict):
        given = cast("JsonObject", ours) | cast("JsonObject", given)
    return [] if canonical(given) == canonical(ours) else [e.StateSnapshot(given, "client")]


class _Intake:
    """One reconciliation at work: collects facts in the order in which they are to be told."""

    def __init__(self, messages: list[JsonObject], thread: Thread, policy: IntakePolicy, now: int) -> None:
        self.facts: list[e.Event] = []
        self.warnings: list[str] = []
        self.follow: str | None = None
        self._thread = thread
        self._pause = standing(thread, now)
        self._policy = policy
        self._shown = [message for message in messages if message["role"] != "activity"]
        self._lines = transcript(thread)
        self._matches: list[int | None] = []
        """Which of our lines the shown messages are that stand before all that is new."""
        self._branch = {entry.key: entry for entry in thread.entries}
        """What stays of the branch, or was restored; what these facts add is not in it."""
        self._end: str | None = thread.entries[-1].key if thread.entries else None
        """The key of the branch's last entry, after the facts so far."""
        self._taken: set[str] = set()
        """The ids of the shown messages that these facts take in."""
        self._answers_again = False
        """Whether an answer is given again that a run has lost: what it let run may run."""

    def last_said(self) -> str:
        """The role of the last shown message that somebody said; "" if nobody said anything."""
        last = self._last()
        return last["role"] if last else ""

    def _last(self) -> JsonObject | None:
        return next((m for m in reversed(self._shown) if m["role"] in ("user", "assistant", "tool")), None)

    # --- nothing stored -------------------------------------------------------------------------------------------

    def adopt(self) -> bool:
        """Take over the shown history; its last user messages are new."""
        new = len(self._shown)
        while new and self._shown[new - 1]["role"] == "user":
            new -= 1
        self.facts += adopted(self._shown[:new], self._may_be_visible)
        self.facts += map(user_fact, self._shown[new:])
        self._taken.update(message["id"] for message in self._shown)
        return self.last_said() != "assistant"

    def _may_be_visible(self, message: JsonObject) -> bool:
        role = message["role"]
        if role in ("system", "developer") and not self._policy.accept_system_messages:
            self.warnings.append(f"{role} message {message['id']} of the client was not given to the model")
            return False
        return role != "reasoning"

    # --- something stored -----------------------------------------------------------------------------------------

    def take(self, given: Answers | None) -> bool:
        """Take in what is new; `given` if the request answers interrupts. Returns whether there is anything to do."""
        users = align_users(self._shown, self._thread, self._lines)
        answers = self._answers()
        if given is not None:
            self.warnings += given.warnings
            self.facts += given.facts
            last = self._thread.last_run
            if given.repeated and last is not None and not self._said_since(given.repeated):
                self._answers_again = last.status in ("failed", "interrupted")
                if not (self._answers_again or given.facts or answers or self._new(users)):
                    self.follow = last.run_id
                    return False
            if given.facts or self._answers_again:
                self._continue(answers, users)
                return True
        has_more = self._continue(answers, users) if answers or given else self._take_up(users)
        return has_more and not self._still_asked()

    def _take_up(self, users: UserAlignment) -> bool:
        """Take in what is new of a request that answers nothing."""
        place = self._place(users.rest)
        self._match(place)
        if (older := self._older_answer(place)) is not None:
            self._close_open()
            self._cut(self._anchor(older))
            return self._take_in(older)
        if not users.shown or (users.matched and users.continues and not users.rest):
            return self._same_again(users)
        self._close_open()
        if users.is_cut and self.last_said() == "user":
            self._cut(users.stored[users.agreed - 1].key)
        elif users.matched and not users.continues:
            self._cut(self._before(users.stored[users.agreed]))
        return self._take_in(place)

    def _said_since(self, run_id: str) -> bool:
        """Whether a user has said something behind this run, and the thread has gone on."""
        runs = list(self._thread.agents)
        return any(said.run_id in runs[runs.index(run_id) + 1 :] for said in self._thread.users())

    def _still_asked(self) -> bool:
        """Whether somebody can still answer what the branch asks: then nothing is done."""
        if not self._pause.waits:
            return False
        turns = [entry for entry in self._branch.values() if isinstance(entry, Turn)]
        return bool(self._thread.open_interrupts(turns))

    def _place(self, new: list[JsonObject]) -> int:
        """Where among the shown messages the first of these stands; behind all of them if there is none."""
        return next((i for i, message in enumerate(self._shown) if new and message is new[0]), len(self._shown))

    def _match(self, place: int) -> None:
        """Find out which of our lines the messages before `place` are."""
        self._matches = match_lines(self._shown[:place], self._lines)

    # --- an answer to something open ------------------------------------------------------------------------------

    def _continue(self, answers: list[e.ToolCallCompleted], users: UserAlignment) -> bool:
        self.facts += answers
        new = self._new(users)
        place = self._place(new)
        self._match(place)
        answered = {answer.tool_call_id for answer in answers}
        open_calls = [call for call in self._thread.open_calls() if call.call_id not in answered]
        if new:
            self._settle(open_calls)
        self._take_in(place, new)
        return bool(new) or (bool(answers) and not open_calls)

    def _new(self, users: UserAlignment) -> list[JsonObject]:
        """What the user says in a request that continues, and never a fork."""
        return [m for m in users.rest if not users.matched or m["id"] not in self._thread.user_ids]

    def _answers(self) -> list[e.ToolCallCompleted]:
        waiting = {call.call_id: call for call in self._thread.open_calls()}
        answers: list[e.ToolCallCompleted] = []
        for message in self._shown:
            call = waiting.pop(message["toolCallId"], None) if message["role"] == "tool" else None
            if call is not None:
                self._taken.add(message["id"])
                answers.append(answer_fact(message, call.name))
        return answers

    def _late_answers(self) -> None:
        """Answers to calls that were closed without one: the model sees them before the next user message."""
        ours: set[str] | None = None
        for message in self._shown:
            call = self._thread.calls.get(message["toolCallId"]) if message["role"] == "tool" else None
            if call is None or call.output_kind != "unanswered":
                continue
            ours = {call.call_id for entry in self._branch.values() for call in entry.calls} if ours is None else ours
            if call.call_id not in ours:
                continue
            if call.late is not None:
                self._restore(call.late)
            elif call.answered_by is None:
                self._taken.add(message["id"])
                self.facts.append(late_fact(message))
                self._end = key_of(message)

    def _close_open(self) -> None:
        self._settle(self._thread.open_calls())

    def _settle(self, open_calls: list[Call]) -> None:
        """Close what was left open: something else came than an answer. Nothing is closed while somebody can still say
        whether a call may run, or has just said so, be it again."""
        just_said = self._answers_again or any(isinstance(fact, e.InterruptAnswered) for fact in self.facts)
        if not self._pause.waits and not just_said:
            self.facts += self._pause.facts
            self._close(open_calls)

    def _close(self, calls: list[Call]) -> None:
        self.facts += [closing_output(call, "unanswered") for call in calls]

    # --- where the histories part ---------------------------------------------------------------------------------

    def _same_again(self, users: UserAlignment) -> bool:
        """Everything shown is stored, and everything stored is shown."""
        last, run = self.last_said(), self._thread.last_run
        if run is not None and run.status == "running" and self._waits_for(run.run_id):
            self.follow = run.run_id
            return False
        if last == "user" and users.shown and not self._pause.waits:
            self._close_open()
            self._cut(users.stored[-1].key)
        if users.matched:
            self._take_in(len(self._shown))
        else:
            self._late_answers()
        broke_off = run is not None and run.status in ("failed", "cancelled", "interrupted")
        return last == "user" or (last == "tool" and broke_off)

    def _waits_for(self, run_id: str) -> bool:
        """Whether the last that is shown is what this run answers: a user's message, or the result of a call of a run
        before it."""
        last = self._last() or {"role": ""}
        call = self._thread.calls.get(last["toolCallId"]) if last["role"] == "tool" else None
        answered_before = call is not None and call.answered_by is not None and call.run_id != run_id
        return last["role"] == "user" or answered_before

    def _older_answer(self, place: int) -> int | None:
        """The first shown answer before `place` that only an older branch has: there the page went another way."""
        for index, message in enumerate(self._shown[:place]):
            key = self._archived(message) if message["role"] in ("assistant", "reasoning") else None
            if key is not None and key not in self._branch and self._anchor(index) is not None:
                return index
        return None

    def _anchor(self, place: int) -> str | None:
        """The key of the last entry of the branch that is shown before `place`."""
        line = next((m for m in reversed(self._matches[:place]) if m is not None), None)
        return None if line is None else self._lines[line].entry

    def _before(self, said: Said) -> str | None:
        """The key of the entry before this one in the branch."""
        keys = list(self._branch)
        index = keys.index(said.key)
        return keys[index - 1] if index else None

    def _cut(self, keep: str | None) -> None:
        if keep != self._end:
            keys = list(self._branch)
            gone = [self._branch[key] for key in keys[keys.index(keep) + 1 if keep is not None else 0 :]]
            turns = [entry for entry in gone if isinstance(entry, Turn)]
            self.facts += [*abandoned(self._thread, turns, self.facts), e.HistoryForked(keep, [])]
            self._branch = {key: self._branch[key] for key in keys[: keys.index(keep) + 1 if keep is not None else 0]}
            self._end = keep

    def _restore(self, key: str) -> None:
        """Put an entry of an older branch behind the branch's end, unless it is there."""
        if key in self._branch or key not in self._thread.archive:
            return
        last = self.facts[-1] if self.facts else None
        if isinstance(last, e.HistoryForked):
            last.restored.append(key)
        else:
            self.facts.append(e.HistoryForked(self._end, [key]))
        self._branch[key] = self._thread.archive[key]
        self._end = key

    # --- taking in ------------------------------------------------------------------------------------------------

    def _take_in(self, from_: int, new: list[JsonObject] | None = None) -> bool:
        """Tell what the page shows beyond ours: foreign messages at their place, and all that stands behind `from_`,
        restored from older branches where we know it, new where we do not. With `new`, only these are taken in as
        user messages, and nothing is restored.

        Returns whether that leaves somebody waiting for an answer.
        """
        after = ""
        for message, line in zip(self._shown[:from_], self._matches, strict=False):
            if line is not None:
                after = self._lines[line].entry if self._lines[line].entry in self._branch else after
            elif self._is_foreign(message):
                after = self._seed_foreign(message, after)
        wanted = None if new is None else {message["id"] for message in new}
        asked = False
        for message in self._shown[from_:]:
            key = self._archived(message)
            if key is not None and wanted is None:
                self._restore(key)
            elif message["role"] == "user" and (wanted is None or message["id"] in wanted):
                if not asked:
                    self._late_answers()
                asked = True
                self.facts.append(user_fact(message))
                self._taken.add(message["id"])
                self._end = key_of(message)
            elif key is None and self._is_foreign(message):
                self._seed_foreign(message, self._end)
        if not asked:
            self._late_answers()
        return asked or self.last_said() == "user"

    def _archived(self, message: JsonObject) -> str | None:
        """The key of the entry, of whatever branch, that this message shows."""
        if message["role"] == "tool" and self._thread.owns(message["toolCallId"]):
            return None  # it comes with its call
        key = key_of(message)
        return key if key in self._thread.archive else self._turn(message)

    def _turn(self, message: JsonObject) -> str | None:
        """The key of the turn, of whatever branch, of which this message shows something."""
        turn = owner_of(message["id"]) if message["role"] in ("assistant", "reasoning") else ""
        return turn if isinstance(self._thread.archive.get(turn), Turn) else None

    def _is_foreign(self, message: JsonObject) -> bool:
        match message["role"]:
            case "tool":
                return not self._thread.owns(message["toolCallId"])
            case "assistant":
                return self._turn(message) is None and not self._thread.is_said_below(owner_of(message["id"]))
            case role:
                return role in ("system", "developer")

    def _seed_foreign(self, message: JsonObject, after: str | None) -> str:
        """Take over one foreign message, behind the entry with the key `after`; returns the key of its own."""
        key = key_of(message)
        visible = message["role"] in ("system", "developer") and self._may_be_visible(message)
        seeded = seed_of(message, visible=visible)
        if after == self._end:
            self._end = key
        else:
            seeded["after"] = after
        if self.facts and isinstance(last := self.facts[-1], e.HistorySeeded):
            last.messages.append(seeded)
        else:
            self.facts.append(e.HistorySeeded([seeded]))
        self._taken.add(message["id"])
        return key

    # --- what the page must be told -------------------------------------------------------------------------------

    def snapshots(self) -> list[str]:
        """`["messages"]` if the page lacks something of ours, or shows what is not ours."""
        shown = [message for message in self._shown if message["id"] not in self._taken]
        changed = any(isinstance(fact, e.HistoryForked) for fact in self.facts)
        lines = lines_of(self._branch.values()) if changed else self._lines
        return ["messages"] if must_restate(self._thread, lines, shown, match_lines(shown, lines)) else []
