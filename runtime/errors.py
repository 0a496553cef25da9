"""What can go wrong, whose fault it is, and what to do: one base class, five kinds of fault.

An error carries a stable `code` (for machines), a message (for people, free of secrets and internals) and
`retryable` (whether the same request may succeed later). Exceptions of other libraries are translated into these
once, at the edge where they arise (providers, journal, tools), never deeper.
"""

from __future__ import annotations

from typing import ClassVar

from runtime.canonical import JsonObject


class AguiBridgeError(Exception):
    """Base of every error of this project. The docstring of a subclass (its first paragraph) is its default message."""

    code: str = "internal_error"
    status: ClassVar[int] = 500
    """The HTTP status that fits when the error is met before a stream has started."""
    retryable: bool = False

    def __init__(self, message: str | None = None, *, code: str | None = None, details: JsonObject | None = None):
        self.message = message or " ".join((type(self).__doc__ or "").partition("\n\n")[0].split())
        self.details: JsonObject = details or {}
        if code is not None:
            self.code = code
        super().__init__(self.message)

    def as_payload(self) -> JsonObject:
        """`{code, message, retryable}`, the shape that `run.failed` stores and the API shows."""
        return {"code": self.code, "message": self.message, "retryable": self.retryable}


# --- the caller's fault -------------------------------------------------------------------------------------------


class CallerError(AguiBridgeError):
    """The request cannot be served as it is."""

    code = "bad_request"
    status = 400


class NotFound(CallerError):
    """There is nothing here."""

    code = "not_found"
    status = 404


class ThreadBusy(CallerError):
    """Another run is at work on this thread."""

    code = "thread_busy"
    status = 409


class ThreadQueueFull(CallerError):
    """As many messages wait for this thread as may; send it again when one of them has been answered."""

    code = "queue_full"
    status = 429
    retryable = True


class RunConflict(CallerError):
    """This runId was used on the thread for a request with other content; choose a new runId."""

    code = "run_conflict"
    status = 409


class IdempotencyConflict(CallerError):
    """This Idempotency-Key was used for another request; choose a new one."""

    code = "idempotency_conflict"
    status = 409


class AlreadyAnswered(CallerError):
    """This was answered already, in another way."""

    code = "interrupt_answered"
    status = 409


class AnswerExpired(CallerError):
    """The time to answer this is over; it can be cancelled."""

    code = "interrupt_expired"
    status = 409


class NotAnApprover(CallerError):
    """Somebody else has to answer this."""

    code = "not_an_approver"
    status = 403


class UnfitAnswer(CallerError):
    """The answer does not fit what was asked for."""

    code = "answer_unfit"
    status = 422


class InvalidInput(CallerError):
    """The input does not have the required shape."""

    code = "invalid_input"
    status = 422


class InvalidCursor(CallerError):
    """The cursor is malformed, negative or beyond the end of the journal."""

    code = "invalid_cursor"
    status = 422


class EventsExpired(CallerError):
    """The facts behind this cursor are gone: they were compacted, or removed when their time was over."""

    code = "events_expired"
    status = 410


class ConfigurationError(CallerError):
    """The program or its settings are wrong; the message says how to mend them."""

    code = "configuration_error"
    status = 500


# --- the agent's author's fault -----------------------------------------------------------------------------------


class ExecutorError(AguiBridgeError):
    """The agent failed; the server's log says why."""

    code = "agent_failed"


# --- the provider's fault -----------------------------------------------------------------------------------------


class ProviderError(AguiBridgeError):
    """The model provider failed."""

    code = "provider_error"
    status = 502

    def __init__(
        self,
        message: str | None = None,
        *,
        code: str | None = None,
        details: JsonObject | None = None,
        retryable: bool = False,
        retry_after_s: float | None = None,
    ):
        super().__init__(message, code=code, details=details)
        self.retryable = retryable
        self.retry_after_s = retry_after_s


class ProtocolError(ProviderError):
    """The provider's stream broke the rules of its own protocol."""

    code = "provider_protocol_error"


class OutputInvalid(ProviderError):
    """The model's answer does not fit the output type, even after it was told why."""

    code = "output_invalid"


# --- ours ---------------------------------------------------------------------------------------------------------


class StoreError(AguiBridgeError):
    """The store did not accept or return the facts."""

    code = "store_error"
    status = 503
    retryable = True


class StoreVersionError(ConfigurationError):
    """The store was written by a release that this one cannot read."""

    code = "store_version"


class StoreLocked(ConfigurationError):
    """Another process has this store open."""

    code = "store_locked"


class FenceLost(StoreError):
    """This executor no longer owns the run: it was taken over or is over. It must stop at once."""

    code = "fence_lost"
    retryable = False


class AppendConflict(StoreError):
    """The journal does not end where the writer thought it did."""

    code = "append_conflict"
    retryable = False


class ReaderDropped(AguiBridgeError):
    """The server is shutting down and what is read here goes on elsewhere; come back with the cursor."""

    code = "reader_dropped"
    status = 503
    retryable = True


class ShuttingDown(AguiBridgeError):
    """The server is shutting down and starts no new runs; try again in a moment."""

    code = "shutting_down"
    status = 503
    retryable = True
