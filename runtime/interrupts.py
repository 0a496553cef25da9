"""Interrupts: what a call, or an executor, asks of somebody outside, and what came of it.

Pure. A question becomes an interrupt when its run is suspended; an answer is judged here against what was asked, before
anything is recorded or done.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any, cast

from jsonschema import Draft202012Validator
from jsonschema.exceptions import SchemaError, ValidationError

from runtime import events as e
from runtime.canonical import Json, JsonObject, digest
from runtime.errors import AnswerExpired, UnfitAnswer

RESOLVED = "resolved"
CANCELLED = "cancelled"
STATUSES = (RESOLVED, CANCELLED)

APPROVAL = "tool_call"
INPUT = "input_required"
CONFIRMATION = "confirmation"
RESERVED = "core:"
"""What the reasons begin with that the protocol keeps for itself."""

EXPIRED = "expired"
FORKED = "forked"
STOPPED = "stopped"

MOST_TOLD = 300
"""How many letters of a problem are told: it may quote the whole answer."""


@dataclass(frozen=True, slots=True)
class Question:
    """What is asked. `expires_in` is in seconds."""

    reason: str
    message: str | None = None
    response_schema: JsonObject | None = None
    expires_in: float | None = None
    metadata: JsonObject | None = None

    def check(self) -> None:
        """Raises ValueError for a question that cannot be asked."""
        if not self.reason or self.reason.startswith(RESERVED):
            raise ValueError(f"{self.reason!r} is no reason for an interrupt: give it a prefix that is not {RESERVED}")
        if self.expires_in is not None and not 0 < self.expires_in < 1e9:
            raise ValueError(f"expires_in is a number of seconds greater than 0, not {self.expires_in}")
        if self.response_schema is not None:
            try:
                Draft202012Validator.check_schema(self.response_schema)
            except SchemaError as error:
                raise ValueError(f"response_schema is no JSON Schema: {error.message}") from error

    @property
    def request_digest(self) -> str:
        """Names what is asked, whenever it is asked."""
        return digest([self.reason, self.message, self.response_schema, self.metadata])


class Suspended(BaseException):
    """Unwinds a tool that waits for somebody outside. It is no Exception, so that a tool which catches those goes on
    unwinding; whatever becomes of it, the call has asked."""


@dataclass(frozen=True, slots=True)
class Interrupt:
    """A question that was asked, in the run `run_id`."""

    raised: e.InterruptRaised
    run_id: str

    @property
    def id(self) -> str:
        """Its id."""
        return self.raised.interrupt_id

    def is_expired(self, now: int) -> bool:
        """Whether it can no longer be resolved; `now` is in ms since the epoch."""
        return self.raised.expires_at is not None and self.raised.expires_at <= now

    def as_payload(self) -> JsonObject:
        """It as `run.suspended` tells it."""
        given = {name: value for name, value in asdict(self.raised).items() if value is not None}
        return {**given, "run_id": self.run_id}


def raised(
    question: Question,
    number: int,
    *,
    interrupt_id: str,
    now: int,
    call: e.ToolCallCommitted | None = None,
    key: str | None = None,
) -> e.InterruptRaised:
    """The fact that the call asks this, or an executor under its own `key`; `now` is in ms since the epoch."""
    return e.InterruptRaised(
        interrupt_id,
        question.reason,
        None if call is None else call.tool_call_id,
        number,
        question.request_digest,
        None if call is None else call.tool_name,
        question.message,
        question.response_schema,
        None if question.expires_in is None else now + round(question.expires_in * 1000),
        question.metadata,
        key,
    )


def answer(
    interrupt: Interrupt, status: str, payload: Json, *, answered_by: str | None, now: int
) -> e.InterruptAnswered:
    """The fact that somebody answered so. Raises AnswerExpired, UnfitAnswer."""
    if status == CANCELLED:
        return e.InterruptAnswered(interrupt.id, CANCELLED, None, answered_by)
    if interrupt.is_expired(now):
        raise AnswerExpired
    schema = interrupt.raised.response_schema
    if schema is not None:
        errors = cast("Any", Draft202012Validator(schema)).iter_errors(payload)
        problems: list[ValidationError] = sorted(errors, key=lambda error: error.json_path)
        if problems:
            where = [{"path": problem.json_path, "problem": problem.message[:MOST_TOLD]} for problem in problems[:5]]
            said = f"The answer does not fit: {where[0]['problem']} (at {where[0]['path']})."
            raise UnfitAnswer(said, details={"problems": where})
    return e.InterruptAnswered(interrupt.id, RESOLVED, payload, answered_by)


def by_itself(interrupt_id: str, why: str) -> e.InterruptAnswered:
    """The fact that nobody can answer any more: `EXPIRED`, `FORKED` or `STOPPED`."""
    return e.InterruptAnswered(interrupt_id, CANCELLED, by_itself=why)


# --- whether a call may run ---------------------------------------------------------------------------------------


def approval_question(tool_name: str, arguments: JsonObject, parameters: JsonObject | None) -> Question:
    """The question whether a call may run, with these arguments or others that fit the tool's parameters; without
    parameters, only with these."""
    properties: JsonObject = {
        "approved": {"type": "boolean", "description": "Whether the call may run."},
        "reason": {"type": "string", "description": "Why not; the model reads it."},
    }
    schema: JsonObject = {"type": "object", "properties": properties, "required": ["approved"]}
    if parameters is not None:
        own = {name: value for name, value in parameters.items() if name != "$defs"}
        edited = "Arguments to run it with, in the place of all of the model's."
        properties["editedArgs"] = {**own, "description": edited}
        if "$defs" in parameters:
            schema["$defs"] = parameters["$defs"]  # what refers to them does so from the root
    return Question(APPROVAL, f"May {tool_name} run?", schema, metadata={"toolName": tool_name, "args": arguments})


@dataclass(frozen=True, slots=True)
class Approval:
    """What was answered to that question: `edited` are the arguments to run the call with, `reason` why it may not."""

    approved: bool
    edited: JsonObject | None = None
    reason: str | None = None


def approval_in(given: e.InterruptAnswered) -> Approval:
    """The approval that an answer is. Whatever does not say yes says no."""
    said: JsonObject = cast("JsonObject", given.payload) if isinstance(given.payload, dict) else {}
    if given.status != RESOLVED or said.get("approved") is not True:
        reason = said.get("reason")
        return Approval(False, None, reason if isinstance(reason, str) and reason else _WHY.get(given.by_itself or ""))
    edited = said.get("editedArgs")
    return Approval(True, cast("JsonObject", edited) if isinstance(edited, dict) else None)


_WHY = {EXPIRED: "nobody answered in time"}
