"""What the writers of all APIs share: frames, arguments that come in pieces, counts, and the words for a fault."""

from __future__ import annotations

import json
from dataclasses import dataclass

from runtime.canonical import JsonObject
from runtime.errors import ProviderError


def frame(document: JsonObject, event: str = "") -> bytes:
    """One server-sent event. Everything beyond ASCII is escaped, so that half characters can be said too."""
    head = f"event: {event}\n" if event else ""
    return f"{head}data: {json.dumps(document, separators=(',', ':'))}\n\n".encode("ascii")


@dataclass(slots=True)
class Call:
    """A tool call that is being written; `place` is where it stands in the response."""

    place: int
    name: str
    call_id: str
    arguments: str = ""

    def more(self, piece: str) -> str:
        """The piece, which is part of the arguments from now on."""
        self.arguments += piece
        return piece

    def rest(self, whole: str) -> str:
        """What the committed arguments say beyond the deltas. Raises ValueError if they say something else."""
        if not whole.startswith(self.arguments):
            raise ValueError(f"The call {self.name!r} commits other arguments than its deltas said.")
        return self.more(whole[len(self.arguments) :])


def openai_usage(usage: JsonObject, read: str, wrote: str) -> JsonObject:
    """Our counts as OpenAI tells them; `read` and `wrote` are the API's words for input and output."""
    inputs = {"cached_tokens": usage.get("cached_input_tokens"), "cache_write_tokens": _written(usage)}
    outputs = {"reasoning_tokens": usage.get("reasoning_tokens")}
    count, made = usage.get("input_tokens"), usage.get("output_tokens")
    both = None if count is None or made is None else count + made
    told: JsonObject = {
        f"{read}_tokens": count,
        f"{wrote}_tokens": made,
        "total_tokens": usage.get("total_tokens", both),
        f"{read}_tokens_details": said(inputs) or None,
        f"{wrote}_tokens_details": said(outputs) or None,
    }
    return said(told)


def anthropic_usage(usage: JsonObject) -> JsonObject:
    """Our counts as Anthropic tells them: what came from or went to the cache is no part of the input."""
    cached, written = usage.get("cached_input_tokens"), _written(usage)
    count = usage.get("input_tokens")
    return said(
        {
            "input_tokens": None if count is None else count - (cached or 0) - (written or 0),
            "cache_read_input_tokens": cached,
            "cache_creation_input_tokens": written,
            "output_tokens": usage.get("output_tokens"),
        }
    )


def said(fields: JsonObject) -> JsonObject:
    """The members that say something."""
    return {name: value for name, value in fields.items() if value is not None}


def _written(usage: JsonObject) -> int | None:
    return usage.get("cache_write_input_tokens")


# --- faults -------------------------------------------------------------------------------------------------------


@dataclass(frozen=True, slots=True)
class _Fault:
    """How the providers say one of our error codes."""

    status: int
    openai: str
    anthropic: str
    anthropic_status: int | None = None


_FAULTS = {
    "rate_limited": _Fault(429, "rate_limit_exceeded", "rate_limit_error"),
    "provider_overloaded": _Fault(503, "server_overloaded", "overloaded_error", 529),
    "provider_unavailable": _Fault(500, "server_error", "api_error"),
    "provider_timeout": _Fault(504, "timeout", "timeout_error"),
    "provider_auth": _Fault(401, "invalid_api_key", "authentication_error"),
    "provider_quota": _Fault(429, "insufficient_quota", "billing_error", 402),
    "context_length_exceeded": _Fault(400, "context_length_exceeded", "invalid_request_error"),
    "content_filter": _Fault(400, "content_policy_violation", "invalid_request_error"),
    "provider_bad_request": _Fault(400, "invalid_value", "invalid_request_error"),
}
_OTHER = _Fault(500, "", "api_error")
_TOO_LONG = "prompt is too long: "


def openai_failure(error: ProviderError) -> tuple[int, JsonObject]:
    """The status and the error object, as OpenAI's APIs say it; `details["status"]` overrules the status."""
    fault = _FAULTS.get(error.code, _OTHER)
    kind = "invalid_request_error" if fault.status == 400 else "server_error"
    body = {"message": error.message, "type": kind, "param": None, "code": fault.openai or error.code}
    return error.details.get("status", fault.status), body


def anthropic_failure(error: ProviderError) -> tuple[int, JsonObject]:
    """The status and the error object, as Anthropic's API says it, which has no word for a prompt that is too long."""
    fault = _FAULTS.get(error.code, _OTHER)
    message = _TOO_LONG + error.message if error.code == "context_length_exceeded" else error.message
    status = fault.anthropic_status or fault.status
    return error.details.get("status", status), {"type": fault.anthropic, "message": message}
