"""From RunAgentInput to a run: what of the shown history is new, and what follows from it.

Pure. A client sends the whole history that it shows, each time; the thread has its own. `reconcile` takes what is
new out of the one in the light of the other and answers with the first facts of a run. The order of the questions is
the rule: is it an answer to something open; if not, where do the two histories part; if nothing is stored, the shown
one is adopted. What the server has stored wins over what a client says of it: a client can never forge a result.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal, cast

from agui_bridge.alignment import UserAlignment, align_users, match_lines, says_the_same
from agui_bridge.content import content_in
from agui_bridge.prelude import differs
from agui_bridge.run_input import RunInput
from agui_bridge.told import key_of, seed_of, unanswered, user_fact
from agui_bridge.transcript import owner_of, transcript
from runtime import events as e
from runtime.canonical import Json, JsonObject, canonical, digest
from runtime.ending import closing_output
from runtime.entries import LATE_ANSWER, Said
from runtime.items import ToolSpec
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

    `facts` open the run; without `call_model` it succeeds at once. `follow`: the running run is what was asked for.
    `nothing`: an unknown thread without messages, which is not created. `snapshots` names what the client must be
    told again.
    """

    facts: list[e.Event] = field(default_factory=list[e.Event])
    call_model: bool = False
    follow: bool = False
    nothing: bool = False
    snapshots: list[str] = field(default_factory=list[str])
    warnings: list[str] = field(default_factory=list[str])


def reconcile(run_input: RunInput, thread: Thread, policy: IntakePolicy) -> Plan:
    """The plan for this request on this thread."""
    shown = [message for message in run_input.messages if message["role"] != "activity"]
    intake = _Intake(shown, thread, policy)
    if thread.is_empty:
        if not any(message["role"] in ("user", "assistant", "tool") for message in shown):
            return Plan(nothing=True, warnings=intake.warnings)
        call_model = intake.adopt()
    else:
        call_model = intake.continuation(resumes(run_input))
        if call_model is None:
            call_model = intake.alignment()
    if intake.follow:
        return Plan(follow=True, warnings=intake.warnings)
    state = client_state(run_input.state, thread.state, policy.client_state)
    ours = state[0].snapshot if state else thread.state
    return Plan(
        facts=[*state, *intake.facts],
        call_model=call_model,
        snapshots=[*intake.snapshots(), *(["state"] if differs(ours, run_input.state) else [])],
        warnings=intake.warnings,
    )


def resumes(run_input: RunInput) -> bool:
    """Whether the request answers interrupts: by `resume`, or in the way of older LangGraph pages."""
    props = run_input.forwarded_props
    command = cast("JsonObject", props).get("command") if isinstance(props, dict) else None
    legacy = isinstance(command, dict) and "resume" in command
    return bool(run_input.resume) or legacy


def client_state(given: Json, ours: Json, rule: ClientState) -> list[e.StateSnapshot]:
    """What the client's state does to ours. Absent, null or `{}` is no opinion."""
    if given in (None, {}) or rule == "ignore":
        return []
    if rule == "merge" and isinstance(given, dict) and isinstance(ours, dict):
        given = cast("JsonObject", ours) | cast("JsonObject", given)
    return [] if canonical(given) == canonical(ours) else [e.StateSnapshot(given, "client")]


def client_tools(run_input: RunInput) -> list[ToolSpec]:
    """The frontend tools of a request as a model is told of them; parameters that are no object schema become one."""
    tools: dict[str, ToolSpec] = {}
    for tool in run_input.tools:
        given: Json = tool.get("parameters")
        nothing: JsonObject = {"type": "object", "properties": {}}
        schema = cast("JsonObject", given) if isinstance(given, dict) else nothing
        tools[tool["name"]] = ToolSpec(tool["name"], tool["description"], schema)
    return list(tools.values())


class _Intake:
    """One reconciliation at work: collects facts in the order in which they are to be told."""

    def __init__(self, shown: list[JsonObject], thread: Thread, policy: IntakePolicy) -> None:
        self.facts: list[e.Event] = []
        self.warnings: list[str] = []
        self.follow = False
        self._shown = shown
        self._thread = thread
        self._policy = policy
        self._lines = transcript(thread)
        self._matches = match_lines(shown, self._lines)
        self._kept = len(self._lines)
        """How many lines of the branch stay."""
        self._answers_taken: set[str] = set()
        """The ids of the shown messages that were taken as answers."""
        self._end = thread.entries[-1].key if thread.entries else None
        """The key of the branch's last entry, after the facts so far."""

    # --- nothing stored -------------------------------------------------------------------------------------------

    def adopt(self) -> bool:
        """Take over the shown history; its last user messages are new."""
        new = len(self._shown)
        while new and self._shown[new - 1]["role"] == "user":
            new -= 1
        seeded: list[JsonObject] = []
        calls: set[str] = set()
        answered = {m["toolCallId"] for m in self._shown[:new] if m["role"] == "tool"}
        for message in self._shown[:new]:
            seeded.append(seed_of(message, visible=self._is_visible(message, calls)))
            for call in seeded[-1].get("tool_calls", []):
                calls.add(call["id"])
        made: list[JsonObject] = [call for message in seeded for call in message.get("tool_calls", [])]
        if seeded:
            self.facts.append(e.HistorySeeded(seeded))
        self.facts += [unanswered(call["id"], call["name"]) for call in made if call["id"] not in answered]
        self.facts += [user_fact(message) for message in self._shown[new:]]
        return self._last_said() != "assistant"

    def _is_visible(self, message: JsonObject, calls: set[str]) -> bool:
        role = message["role"]
        if role == "tool":
            return message["toolCallId"] in calls
        if role in ("system", "developer") and not self._policy.accept_system_messages:
            self.warnings.append(f"{role} message {message['id']} of the client was not given to the model")
            return False
        return role != "reasoning"

    def _last_said(self) -> str:
        """The role of the last shown message that somebody said."""
        said = ("user", "assistant", "tool")
        return next((m["role"] for m in reversed(self._shown) if m["role"] in said), "")

    # --- an answer to something open ------------------------------------------------------------------------------

    def continuation(self, resumed: bool) -> bool | None:
        """Whether the model is called, if the request answers something open; None if it does not."""
        answers = self._answers()
        if not answers and not resumed:
            return None
        self.facts += answers
        self._late_answers()
        users = align_users(self._shown, self._thread)
        known = self._thread.user_ids
        new = [m for m in users.rest if m["id"] not in known] if users.matched else users.shown
        open_ids = {call.call_id for call in self._thread.open_calls()} - {a.tool_call_id for a in answers}
        if new:
            self._close_open(open_ids)
            self.facts += [user_fact(message) for message in new]
            return True
        return bool(answers) and not open_ids

    def _answers(self) -> list[e.ToolCallCompleted]:
        waiting = {call.call_id: call for call in self._thread.open_calls()}
        answers: list[e.ToolCallCompleted] = []
        for message in self._shown:
            call = waiting.pop(message["toolCallId"], None) if message["role"] == "tool" else None
            if call is not None:
                content, error = content_in(message["content"]), message.get("error")
                self._answers_taken.add(message["id"])
                answers.append(
                    e.ToolCallCompleted(
                        tool_call_id=call.call_id,
                        tool_name=call.name,
                        result=content,
                        result_checksum=digest(content),
                        is_error=error is not None,
                        kind="client",
                        message_id=message["id"],
                        error=error,
                    )
                )
        return answers

    def _late_answers(self) -> None:
        """Answers to calls that were closed without one: the model sees them before the next user message."""
        for message in self._shown:
            call = self._thread.calls.get(message["toolCallId"]) if message["role"] == "tool" else None
            if call is not None and call.output_kind == "unanswered" and call.answered_by is None:
                content = content_in(message["content"])
                self._answers_taken.add(message["id"])
                self.facts.append(
                    e.MessageCompleted(
                        message_id=message["id"],
                        role="user",
                        content=content,
                        content_checksum=digest(content),
                        runtime_role=LATE_ANSWER,
                        attributes={"tool_call_id": call.call_id},
                    )
                )

    def _close_open(self, call_ids: set[str]) -> None:
        self.facts += [
            closing_output(call, "unanswered") for call in self._thread.open_calls() if call.call_id in call_ids
        ]

    # --- where the histories part ---------------------------------------------------------------------------------

    def alignment(self) -> bool:
        """Whether the model is called, after what is new was taken in."""
        self._late_answers()
        users = align_users(self._shown, self._thread)
        if not users.shown:
            return self._goes_on() if self._last_said() == "tool" else False
        if not users.matched or users.continues:
            if users.rest:
                self._close_open({call.call_id for call in self._thread.open_calls()})
                return self._take_in(from_=self._place(users.rest[0]))
            self._take_in(from_=len(self._shown))
            return self._same_again(users)
        return self._fork(users)

    def _same_again(self, users: UserAlignment) -> bool:
        """Everything shown is stored, and everything stored is shown."""
        last = self._last_said()
        if last == "tool":
            return self._goes_on()
        if last != "user":
            return False
        run = self._thread.last_run
        if run is not None and run.status == "running":
            self.follow = True
            return False
        self._regenerate(users.stored[-1])
        return True

    def _goes_on(self) -> bool:
        """Whether a run that broke off behind a tool's result is taken up again."""
        run = self._thread.last_run
        return run is not None and run.status in ("failed", "cancelled", "interrupted")

    def _regenerate(self, asked: Said) -> None:
        self._close_open({call.call_id for call in self._thread.open_calls()})
        if self._thread.entries[-1] is not asked:
            self._cut(asked.key)

    def _fork(self, users: UserAlignment) -> bool:
        """The page shows a history that parts from ours: go on from there, with what it shows."""
        self._close_open({call.call_id for call in self._thread.open_calls()})
        if users.is_cut:
            if self._last_said() == "user":
                self._cut(users.stored[users.agreed - 1].key)
                return True
            self._cut(self._before(users.stored[users.agreed]))
            return False
        self._cut(self._before(users.stored[users.agreed]))
        return self._take_in(from_=self._place(users.rest[0]))

    def _before(self, said: Said) -> str | None:
        """The key of the entry before this one in the branch."""
        index = next(index for index, entry in enumerate(self._thread.entries) if entry is said)
        return self._thread.entries[index - 1].key if index else None

    def _cut(self, keep: str | None) -> None:
        self.facts.append(e.HistoryForked(keep, []))
        keys = [entry.key for entry in self._thread.entries]
        staying = set(keys[: keys.index(keep) + 1]) if keep is not None else set[str]()
        self._kept = sum(line.entry in staying for line in self._lines)
        self._end = keep

    def _place(self, message: JsonObject) -> int:
        return next(index for index, shown in enumerate(self._shown) if shown is message)

    # --- taking in ------------------------------------------------------------------------------------------------

    def _take_in(self, from_: int) -> bool:
        """Tell what the page shows beyond ours: foreign messages at their place, and all that stands behind `from_`,
        restored from older branches where we know it, new where we do not.

        Returns whether that leaves somebody waiting for an answer.
        """
        after = ""
        for index, message in enumerate(self._shown[:from_]):
            line = self._matches[index]
            if line is not None and line < self._kept:
                after = self._lines[line].entry
            elif self._is_foreign(message):
                after = self._seed_one(message, after)
        asked = False
        staying = {line.entry for line in self._lines[: self._kept]}
        for message in self._shown[from_:]:
            if (key := self._archived(message)) is not None:
                if key not in staying:
                    staying.add(key)
                    self.facts.append(e.HistoryForked(self._end, [key]))
                    self._end = key
            elif message["role"] == "user":
                asked = True
                self.facts.append(user_fact(message))
                self._end = key_of(message)
            elif self._is_foreign(message):
                self._end = self._seed_one(message, None)
        return asked or self._last_said() == "user"

    def _archived(self, message: JsonObject) -> str | None:
        """The key of the entry, of whatever branch, that this message shows."""
        if message["role"] not in ("user", "assistant"):
            return None
        keys = (key_of(message), owner_of(message["id"]))  # a message of its own, or a round of a turn
        return next((key for key in keys if key in self._thread.archive), None)

    def _is_foreign(self, message: JsonObject) -> bool:
        role = message["role"]
        if role == "tool":
            return message["toolCallId"] not in self._thread.calls
        return role in ("assistant", "system", "developer")

    def _seed_one(self, message: JsonObject, after: str | None) -> str:
        """Take over one foreign message; returns the key of its entry."""
        visible = message["role"] in ("system", "developer") and self._is_visible(message, set())
        seeded = seed_of(message, visible=visible)
        if after is not None:
            seeded["after"] = after
        self.facts.append(e.HistorySeeded([seeded]))
        return key_of(message)

    # --- what the page must be told -------------------------------------------------------------------------------

    def snapshots(self) -> list[str]:
        """`["messages"]` if the page lacks something of ours, or shows what is not ours."""
        known = {index for index in self._matches if index is not None}
        lacks = any(i not in known and self._lines[i].role != "reasoning" for i in range(self._kept))
        wrong = any(
            (index is None and message["role"] == "tool" and message["toolCallId"] in self._thread.calls)
            or (index is not None and not says_the_same(message, self._lines[index].message))
            for message, index in zip(self._shown, self._matches, strict=True)
            if message["role"] != "reasoning" and message["id"] not in self._answers_taken
        )
        return ["messages"] if lacks or wrong else []
