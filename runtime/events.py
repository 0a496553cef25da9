"""The journal's events: every fact that a run can leave behind.

Names are nouns in the past, one frozen dataclass an event type, fields are the payload. What is here is the contract
between those who write facts (engine, supervisor) and those who read them (thread fold, projection, API): the schema
grows by addition only, readers ignore unknown types and unknown fields.

Deltas are provisional: they may be shown, they never enter history. Nobody changes them, though they are not frozen:
they are made by the thousand, and that would make each dearer. The commit points are `tool.call.committed` and
`round.completed`. Exactly one event of `TERMINAL` ends a run.
"""

from __future__ import annotations

import hashlib
from dataclasses import MISSING, dataclass, fields
from typing import Any, ClassVar, NamedTuple, TypeAlias

import orjson

from runtime.canonical import Json, JsonObject, digest

SCHEMA_VERSION = 1

CHECKSUM_BYTES = 16

PROVIDER = "provider"
"""The target of a call that the model's provider performs."""
EXECUTOR = "executor"
"""The target of a call that the run's executor performs itself, and tells the output of."""


@dataclass(frozen=True, slots=True)
class RunStarted:
    """A run begins. `started_at` is ms since the epoch; the base state is named by the digest of its canonical JSON.

    `snapshots` names what the opening stream restates (`messages`, `state`) because the client lacked it. `continues`
    is the lost run that this one goes on with.
    """

    event_type: ClassVar[str] = "run.started"
    started_at: int
    client_run_id: str
    agent_id: str
    base_state_digest: str
    snapshots: list[str]
    continues: str | None = None


@dataclass(frozen=True, slots=True)
class RunCompleted:
    """The run succeeded. `pending_tool_call_ids` are the frontend calls of this run that wait for the client.

    `result` is the value of the agent's output type as JSON; absent without one, and for the value null. `absorbed_by`
    is the run that took the messages of this one in: then it said nothing itself.
    """

    event_type: ClassVar[str] = "run.completed"
    message_id: str | None = None
    pending_tool_call_ids: list[str] | None = None
    usage: list[JsonObject] | None = None
    result: Json = None
    absorbed_by: str | None = None


@dataclass(frozen=True, slots=True)
class RunFailed:
    """The run failed. `error` is `{code, message, retryable}`."""

    event_type: ClassVar[str] = "run.failed"
    error: JsonObject
    usage: list[JsonObject] | None = None


@dataclass(frozen=True, slots=True)
class RunCancelling:
    """Somebody asked the run to stop; its model stream and tools are being stopped."""

    event_type: ClassVar[str] = "run.cancelling"
    reason: str


@dataclass(frozen=True, slots=True)
class RunCancelled:
    """The run was stopped on purpose: by a person, a vanished reader or a budget.

    `external_stop_confirmed` is true only when the model stream, all tools and all hooks have really ended; otherwise
    `abandoned` names what may still be at work: the ids of calls, `model:NAME`, `hook:NAME`, `run:ID` of a child.
    """

    event_type: ClassVar[str] = "run.cancelled"
    reason: str
    external_stop_confirmed: bool
    abandoned: list[str] | None = None
    usage: list[JsonObject] | None = None


@dataclass(frozen=True, slots=True)
class RunInterrupted:
    """The run's executor was lost (crash, shutdown). It is never run again by itself."""

    event_type: ClassVar[str] = "run.interrupted"
    reason: str
    usage: list[JsonObject] | None = None


@dataclass(frozen=True, slots=True)
class RunSuspended:
    """The run waits for answers from outside; going on is a new run. `interrupts` are all that are open on the thread,
    those of earlier runs and of child runs too: each the payload of its `interrupt.raised`, with `run_id`, the run that
    raised it. Calls that wait, for an answer or behind one that does, have no output.
    """

    event_type: ClassVar[str] = "run.suspended"
    interrupts: list[JsonObject]
    message_id: str | None = None
    usage: list[JsonObject] | None = None


@dataclass(frozen=True, slots=True)
class RoundStarted:
    """One model call begins. `request` is `{digest, items}`: the digest of the request as sent, and how many items
    of history it held. What it consists of is in the store once: the history in the journal, the rest in the run's
    agent and context snapshots.
    """

    event_type: ClassVar[str] = "round.started"
    round: int
    model: str
    provider: str
    request: JsonObject


@dataclass(frozen=True, slots=True)
class RoundCompleted:
    """One model call is complete, and with it its text: `working_message` if calls follow, else `final_response`.

    `finish` is the normalised finish reason, `usage` `{provider, model, input_tokens, …}` (unknown counts are absent),
    `parts` (each `{part_id, kind}`) and `tool_call_ids` name what the round committed, in order.
    """

    event_type: ClassVar[str] = "round.completed"
    round: int
    runtime_role: str
    finish: str
    parts: list[JsonObject]
    tool_call_ids: list[str]
    attempts: int = 1
    usage: JsonObject | None = None
    provider_response_id: str | None = None
    provider_phase: str | None = None


@dataclass(frozen=True, slots=True)
class MessageStarted:
    """The run's one assistant message begins (before the first round)."""

    event_type: ClassVar[str] = "message.started"
    message_id: str
    role: str


@dataclass(slots=True)
class MessageDelta:
    """Provisional text of the part `part_id`, which stands at `content_index` of the message."""

    event_type: ClassVar[str] = "message.delta"
    message_id: str
    part_id: str
    content_index: int
    delta: str


@dataclass(frozen=True, slots=True)
class MessageCompleted:
    """A whole message: what a user said (`role` `user`), or at its end what the run's assistant message is.

    For the assistant `content` is the list of its parts (see `parts.Part.as_payload`); parts of rounds that never
    completed are marked `committed: false`. For a user it is text or a list of content parts (see `items`).
    `attributes` keeps what else the client said of the message (`name`, `metadata`, …).
    """

    event_type: ClassVar[str] = "message.completed"
    message_id: str
    role: str
    content: Json
    content_checksum: str
    runtime_role: str | None = None
    attributes: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ReasoningStarted:
    """A reasoning part of the assistant message begins."""

    event_type: ClassVar[str] = "reasoning.started"
    message_id: str
    part_id: str
    content_index: int


@dataclass(slots=True)
class ReasoningDelta:
    """Provisional reasoning text."""

    event_type: ClassVar[str] = "reasoning.delta"
    message_id: str
    part_id: str
    content_index: int
    delta: str


@dataclass(frozen=True, slots=True)
class ReasoningCompleted:
    """A reasoning part ends. `opaque` goes back, unchanged, only to the provider that issued it."""

    event_type: ClassVar[str] = "reasoning.completed"
    message_id: str
    part_id: str
    content_index: int
    provider: str
    signature: str | None = None
    encrypted_value: str | None = None
    opaque: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ToolCallStarted:
    """The model begins to write a tool call (provisional). `predicts` says of members of the state which argument each
    will be, once the call has been executed."""

    event_type: ClassVar[str] = "tool.call.started"
    message_id: str
    part_id: str
    content_index: int
    tool_call_id: str
    tool_name: str
    predicts: JsonObject | None = None


@dataclass(slots=True)
class ToolCallDelta:
    """Provisional argument text of a tool call."""

    event_type: ClassVar[str] = "tool.call.delta"
    tool_call_id: str
    delta: str


@dataclass(frozen=True, slots=True)
class ToolCallCommitted:
    """The call is complete and enters history. `target` is `server`, `client` (a frontend tool), `nobody`, `provider`,
    which performs it once somebody has said that it may, or `executor`, which performs it beside the loop.

    `malformed` says that the arguments are not a JSON object: such a call is never executed.
    `provider_call_id` is set when the provider's id was not unique in the thread; `opaque` are provider members
    that must go back with the call.
    """

    event_type: ClassVar[str] = "tool.call.committed"
    tool_call_id: str
    tool_name: str
    arguments_json: str
    target: str
    malformed: bool = False
    provider_call_id: str | None = None
    opaque: JsonObject | None = None


@dataclass(frozen=True, slots=True)
class ToolExecutionStarted:
    """The call is about to be executed: from here on, a lost executor means `indeterminate`, not "not run". `streams`
    says that it may tell of its progress."""

    event_type: ClassVar[str] = "tool.execution.started"
    tool_call_id: str
    tool_name: str
    idempotency_key: str
    streams: bool | None = None


@dataclass(frozen=True, slots=True)
class ToolCallProgress:
    """What the call has to show so far: provisional, it is gone with the call's output. `number` counts what the
    execution said, from 1; of what it said too fast only the latest is told."""

    event_type: ClassVar[str] = "tool.call.progress"
    tool_call_id: str
    tool_name: str
    number: int
    value: Json


@dataclass(frozen=True, slots=True)
class ToolCallCompleted:
    """The one output of a committed call. `kind` says how it came about (see `OUTPUT_KINDS`).

    `result` is text or a list of content parts. When the client answered, `message_id` is its id of the answering
    message and `error` what it said went wrong.
    """

    event_type: ClassVar[str] = "tool.call.completed"
    tool_call_id: str
    tool_name: str
    result: Json
    result_checksum: str
    is_error: bool
    kind: str
    message_id: str | None = None
    error: str | None = None


@dataclass(frozen=True, slots=True)
class StateSnapshot:
    """The thread's shared state as a whole. `origin` is `client` (sent with the request) or `agent`."""

    event_type: ClassVar[str] = "state.snapshot"
    snapshot: Json
    origin: str


@dataclass(frozen=True, slots=True)
class StateDelta:
    """A change of the shared state: RFC 6902 operations that apply to the state before it."""

    event_type: ClassVar[str] = "state.delta"
    delta: list[JsonObject]


@dataclass(frozen=True, slots=True)
class ActivitySnapshot:
    """Something that the page shows beside the messages, as a whole. `activity_id` names it in the thread; a type has
    a vendor's prefix, ours is taken by `artifact.created`."""

    event_type: ClassVar[str] = "activity.snapshot"
    activity_id: str
    activity_type: str
    content: JsonObject


@dataclass(frozen=True, slots=True)
class ActivityDelta:
    """A change of an activity: RFC 6902 operations that apply to its content before it."""

    event_type: ClassVar[str] = "activity.delta"
    activity_id: str
    activity_type: str
    delta: list[JsonObject]


@dataclass(frozen=True, slots=True)
class ArtifactCreated:
    """A tool made something to be fetched. Its bytes are stored already: `size` of them, with this SHA-256."""

    event_type: ClassVar[str] = "artifact.created"
    id: str
    name: str
    media_type: str
    size: int
    digest: str
    tool_call_id: str | None = None


@dataclass(frozen=True, slots=True)
class Custom:
    """A fact of whoever wrote it: it may be shown, and decides nothing. Names have a vendor's prefix.

    Ours are `agui-bridge.hook` (what a hook decided, see `hooks.decided`), `agui-bridge.model_retry` (a model call
    that failed and is tried again: `{round, attempt, code, message, wait_ms}`, written before the wait) and
    `agui-bridge.media_left_out` (what the model was not shown: `{parts: [{type, reason, name?, media_type?}]}`).
    """

    event_type: ClassVar[str] = "custom"
    name: str
    value: Json


@dataclass(frozen=True, slots=True)
class ChildStarted:
    """The run hands work to another agent: a child run is about to begin, on a thread of its own, or on that of the
    suspended child run that it `continues`.

    `agent_name` is for people. `number` counts the delegations of the call `tool_call_id` from 1; `request_digest` is
    the digest of what was asked of whom. Whatever the child says stands in its own journal, behind this.
    """

    event_type: ClassVar[str] = "child.started"
    run_id: str
    thread_id: str
    agent_id: str
    agent_name: str
    tool_call_id: str
    number: int
    request_digest: str
    description: str | None = None
    continues: str | None = None


@dataclass(frozen=True, slots=True)
class ChildCompleted:
    """The child run succeeded. `message_id` is its message; `result` is its value, if it owed one."""

    event_type: ClassVar[str] = "child.completed"
    run_id: str
    message_id: str | None = None
    result: Json = None


@dataclass(frozen=True, slots=True)
class ChildFailed:
    """The child run failed, or could not begin. `error` is `{code, message, retryable}`."""

    event_type: ClassVar[str] = "child.failed"
    run_id: str
    error: JsonObject


@dataclass(frozen=True, slots=True)
class ChildCancelled:
    """The child run was stopped on purpose."""

    event_type: ClassVar[str] = "child.cancelled"
    run_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChildInterrupted:
    """The child run's executor was lost, or the run that waited for it."""

    event_type: ClassVar[str] = "child.interrupted"
    run_id: str
    reason: str


@dataclass(frozen=True, slots=True)
class ChildSuspended:
    """The child run waits for answers to `interrupt_ids`, its own and those of runs below it. With them it is gone on
    with by another child run, on the same thread."""

    event_type: ClassVar[str] = "child.suspended"
    run_id: str
    interrupt_ids: list[str]


@dataclass(frozen=True, slots=True)
class ToolCallRecorded:
    """Something that the call did once: when it is called again from its top, `value` is what comes of it. `key` is
    the call's own name for it."""

    event_type: ClassVar[str] = "tool.call.recorded"
    tool_call_id: str
    key: str
    value: Json


@dataclass(frozen=True, slots=True)
class ExecutorRemembered:
    """Something that the run's executor wants to know when it is performed again on this branch, such as where its own
    memory stands. Only the last counts."""

    event_type: ClassVar[str] = "executor.remembered"
    value: Json


@dataclass(frozen=True, slots=True)
class InterruptRaised:
    """A call, or the run's executor, asks something of somebody outside, and waits; written with the `run.suspended`
    that it leads to.

    `reason` is `tool_call` (may it run?), `input_required`, `confirmation`, or one with a prefix. `number` counts what
    the call has asked: 0 is whether it may run at all, its own questions count from 1; `request_digest` is the digest
    of the question. An executor has no call, and a `key`, which is its own name for what it asks. `response_schema` is
    the JSON Schema of the answer, `expires_at` (ms since the epoch) when it can no longer be resolved.
    """

    event_type: ClassVar[str] = "interrupt.raised"
    interrupt_id: str
    reason: str
    tool_call_id: str | None
    number: int
    request_digest: str
    tool_name: str | None
    message: str | None = None
    response_schema: JsonObject | None = None
    expires_at: int | None = None
    metadata: JsonObject | None = None
    key: str | None = None


@dataclass(frozen=True, slots=True)
class InterruptAnswered:
    """Somebody answered: `status` is `resolved`, with the answer as `payload`, or `cancelled`. `answered_by` is the
    principal's id; `by_itself` says why nobody had to (`expired`, `forked`, `stopped`)."""

    event_type: ClassVar[str] = "interrupt.answered"
    interrupt_id: str
    status: str
    payload: Json = None
    answered_by: str | None = None
    by_itself: str | None = None


@dataclass(frozen=True, slots=True)
class HistorySeeded:
    """Messages taken over from a client: the history of a thread that this server had not seen, or foreign ones.

    Each is `{id, role, content?, tool_calls?, tool_call_id?, error?, attributes?, model_visible, after?}`; `after`
    is the key of the entry before it (absent: at the end, "": at the beginning).
    """

    event_type: ClassVar[str] = "history.seeded"
    messages: list[JsonObject]


@dataclass(frozen=True, slots=True)
class HistoryForked:
    """The client edited or cut the history: the branch goes on after `keep` (null: from the thread's beginning).

    `keep` is the key of the last entry that stays. `restored` are keys of entries of older branches that the client
    shows again, in order, as they were stored. An entry's key is its id, for a user message with what it says.
    """

    event_type: ClassVar[str] = "history.forked"
    keep: str | None
    restored: list[str]


Event: TypeAlias = (
    RunStarted
    | RunCompleted
    | RunFailed
    | RunCancelling
    | RunCancelled
    | RunInterrupted
    | RunSuspended
    | RoundStarted
    | RoundCompleted
    | MessageStarted
    | MessageDelta
    | MessageCompleted
    | ReasoningStarted
    | ReasoningDelta
    | ReasoningCompleted
    | ToolCallStarted
    | ToolCallDelta
    | ToolCallCommitted
    | ToolExecutionStarted
    | ToolCallProgress
    | ToolCallCompleted
    | ToolCallRecorded
    | StateSnapshot
    | StateDelta
    | ActivitySnapshot
    | ActivityDelta
    | ArtifactCreated
    | Custom
    | ChildStarted
    | ChildCompleted
    | ChildFailed
    | ChildCancelled
    | ChildInterrupted
    | ChildSuspended
    | ExecutorRemembered
    | InterruptRaised
    | InterruptAnswered
    | HistorySeeded
    | HistoryForked
)

EVENT_TYPES: dict[str, type[Event]] = {cls.event_type: cls for cls in Event.__args__}

DELTAS = frozenset({MessageDelta, ReasoningDelta, ToolCallDelta, ToolCallProgress})
"""Provisional events: a run does not wait for their commit, and they are dropped once what they lead to is complete."""

TERMINAL = frozenset({RunCompleted, RunFailed, RunCancelled, RunInterrupted, RunSuspended})
"""Exactly one of these ends a run."""

ENDS_INTAKE = frozenset({MessageStarted, RoundStarted, RunCancelling}) | TERMINAL
"""What no request brings: before the first of these stands, of a run's facts, what came with its request."""

CHILD_OVER = frozenset({ChildCompleted, ChildFailed, ChildCancelled, ChildInterrupted, ChildSuspended})
"""Exactly one of these follows each `child.started`."""

OUTPUT_KINDS: dict[str, str] = {
    "result": "the tool returned",
    "error": "the tool failed or timed out",
    "denied": "the gate refused the call (unknown tool, malformed or invalid arguments, budget, a hook, a person)",
    "answered": "a hook answered instead of the tool",
    "cancelled": "the run was stopped while the call ran or before it began",
    "client": "the client answered its own tool",
    "unanswered": "the client went on without answering",
    "not_run": "the executor was lost before the call began",
    "indeterminate": "the executor was lost while the call ran: it may have happened",
}


class Record(NamedTuple):
    """An event with its place: what a journal gives back.

    `seq` counts the run's events from 1, `root_seq` those of its tree. `event` is None for a type that this release
    does not know. Times are ms since the epoch: `occurred_at` of the writer's clock, `recorded_at` of the store's.
    A compacted record stands for the deltas `from_seq` to `seq`, whose words it has in one piece. `stored` is the
    payload as it is in the store, `stored_checksum` its checksum, None where the event shares its row with others.
    """

    run_id: str
    seq: int
    root_seq: int
    event_type: str
    event: Event | None
    stored: bytes | None
    stored_checksum: str | None
    occurred_at: int
    recorded_at: int
    schema_version: int = SCHEMA_VERSION
    from_seq: int | None = None

    @property
    def payload(self) -> bytes:
        """The event's payload as JSON."""
        if self.stored is not None:
            return self.stored
        assert self.event is not None, "only events of known types share a row"
        return encode(self.event)

    @property
    def payload_checksum(self) -> str:
        """The checksum of the payload, as hex digits."""
        return self.stored_checksum or checksum_of(self.payload).hex()

    @property
    def first_seq(self) -> int:
        """The first seq that the record stands for: its own, unless it was compacted."""
        return self.seq if self.from_seq is None else self.from_seq


def output_of(tool_call_id: str, tool_name: str, result: Json, kind: str) -> ToolCallCompleted:
    """The event of a call's one output."""
    is_error = kind not in ("result", "client", "answered")
    return ToolCallCompleted(tool_call_id, tool_name, result, digest(result), is_error, kind)


def checksum_of(payload: bytes) -> bytes:
    """What is kept to find a payload that has changed: half of its SHA-256."""
    return hashlib.sha256(payload).digest()[:CHECKSUM_BYTES]


def encode(event: Event) -> bytes:
    """The payload of an event as JSON. Optional fields without a value are left out."""
    optional = _OPTIONAL[type(event)]
    if not optional:
        return orjson.dumps(event)
    absent = {name for name in optional if getattr(event, name) is None}
    if not absent:
        return orjson.dumps(event)
    return orjson.dumps({f: getattr(event, f) for f in _FIELDS[type(event)] if f not in absent})


def decode(event_type: str, payload: bytes) -> Event | None:
    """The event of a stored payload, or None for an unknown type. Members this release does not know are ignored."""
    cls = EVENT_TYPES.get(event_type)
    if cls is None:
        return None
    members: dict[str, Any] = orjson.loads(payload)
    known = _FIELDS[cls]
    return cls(**{name: members[name] for name in known if name in members})


_FIELDS: dict[type[Event], tuple[str, ...]] = {cls: tuple(f.name for f in fields(cls)) for cls in EVENT_TYPES.values()}
_OPTIONAL: dict[type[Event], tuple[str, ...]] = {
    cls: tuple(f.name for f in fields(cls) if f.default is not MISSING and f.default is None)
    for cls in EVENT_TYPES.values()
}
