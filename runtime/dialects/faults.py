"""What a provider's error body means: one table from the providers' words to our codes.

Pure. It is asked by decoders (an error inside a stream that began with HTTP 200) and by providers (an HTTP status).
It knows no SDK and no transport.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import cast

from runtime.canonical import Json, JsonObject, clean_text
from runtime.errors import ProviderError

RATE_LIMITED = "rate_limited"
OVERLOADED = "provider_overloaded"
UNAVAILABLE = "provider_unavailable"
TIMEOUT = "provider_timeout"
AUTH = "provider_auth"
QUOTA = "provider_quota"
CONTEXT_LENGTH = "context_length_exceeded"
CONTENT_FILTER = "content_filter"
BAD_REQUEST = "provider_bad_request"
UNKNOWN = "provider_error"

RETRYABLE = frozenset({RATE_LIMITED, OVERLOADED, UNAVAILABLE, TIMEOUT})

_BY_WORD = {
    word: code
    for code, words in {
        RATE_LIMITED: "rate_limit_exceeded rate_limit_error rate_limited too_many_requests tokens requests",
        OVERLOADED: "overloaded overloaded_error server_overloaded engine_overloaded model_overloaded slow_down"
        " insufficient_system_resource capacity_exceeded",
        UNAVAILABLE: "server_error internal_server_error internal_error service_unavailable bad_gateway api_error"
        " network_error",
        TIMEOUT: "timeout timeout_error request_timeout gateway_timeout deadline_exceeded",
        AUTH: "invalid_api_key authentication_error permission_error permission_denied unauthorized forbidden"
        " invalid_authentication account_deactivated",
        QUOTA: "insufficient_quota billing_hard_limit_reached quota_exceeded insufficient_balance payment_required"
        " billing_error",
        CONTEXT_LENGTH: "context_length_exceeded context_window_exceeded model_context_window_exceeded prompt_too_long",
        CONTENT_FILTER: "content_filter content_filtered content_policy_violation responsibleaipolicyviolation"
        " data_inspection_failed",
        BAD_REQUEST: "invalid_request_error model_not_found unsupported_parameter unsupported_value"
        " invalid_value missing_required_parameter badrequesterror not_found_error request_too_large",
    }.items()
    for word in words.split()
}

_BY_STATUS = {
    401: AUTH,
    402: QUOTA,
    403: AUTH,
    408: TIMEOUT,
    429: RATE_LIMITED,
    498: OVERLOADED,
    503: OVERLOADED,
    504: TIMEOUT,
    524: TIMEOUT,
    529: OVERLOADED,
}

_TOO_LONG = (
    "maximum context length",
    "context window",
    "context length",
    "context limit",
    "prompt is too long",
    "too many tokens",
)
_UNPAID = "credit balance is too low"

_OWN_MESSAGE = {AUTH: "The provider refused the credentials."}
"""Where the provider's own text is not repeated: it tends to quote the key."""

_SECRET = re.compile(
    r"\b(?:sk|pk|rk|gsk|xai|hf|key|AIza)[-_]?[A-Za-z0-9][A-Za-z0-9_*.\-]{7,}|(?i:\bbearer\s+\S+)", re.ASCII
)
_LONGEST_MESSAGE = 500


@dataclass(frozen=True, slots=True)
class _Body:
    """The members of an error body that mean something, whatever they were."""

    message: str
    word: str
    kind: str
    number: int | None
    param: str


def provider_error(
    body: Json, *, status: int | None = None, retry_after_s: float | None = None, default: str = UNKNOWN
) -> ProviderError:
    """The classified error for a body (an object, a text or nothing) and the HTTP status, if that was an error.

    `details` has what the provider said of it: `code`, `type`, `param` and `status`, as far as known. `default` is
    the code when neither the body nor the status says anything.
    """
    read = _read(body)
    code = _code(read, status, default)
    said = {"code": read.word or read.number, "type": read.kind, "param": read.param, "status": status}
    details = {name: value for name, value in said.items() if value not in ("", None)}
    message = _OWN_MESSAGE.get(code) or scrub(read.message) or None
    return ProviderError(message, code=code, details=details, retryable=code in RETRYABLE, retry_after_s=retry_after_s)


def scrub(text: str) -> str:
    """A provider's text as it may be shown: without keys, without lone surrogates, at most 500 characters."""
    return _SECRET.sub("[redacted]", clean_text(text))[:_LONGEST_MESSAGE].strip()


def _read(body: Json) -> _Body:
    if isinstance(body, list) and body:  # some gateways wrap the body in a list
        body = cast("list[Json]", body)[0]
    if not isinstance(body, dict):
        return _Body(body if isinstance(body, str) else "", "", "", None, "")
    fields = cast("JsonObject", body)
    inner = fields.get("error")
    if isinstance(inner, dict):
        fields = cast("JsonObject", inner)
    elif isinstance(inner, str) and inner:
        fields = {"message": inner, **fields}
    code = fields.get("code")
    numbers = (code, fields.get("status_code"), fields.get("status"))
    return _Body(
        message=_text(fields.get("message")) or _text(fields.get("detail")),
        word="" if _number(code) is not None else _text(code),
        kind=_text(fields.get("type")),
        number=next((number for value in numbers if (number := _number(value)) is not None), None),
        param=_text(fields.get("param")),
    )


def _code(read: _Body, status: int | None, default: str) -> str:
    """The most particular statement counts: the code, then the message, the status, the type.

    An unknown code inside a stream is nobody's but the provider's, whatever its type says; with an HTTP error the
    status is better evidence.
    """
    if known := _BY_WORD.get(read.word.lower()):
        return known
    if read.word and status is None:
        return UNKNOWN
    lowered = read.message.lower()
    number = status if status is not None else read.number
    found = _by_number(number) if number is not None else _BY_WORD.get(read.kind.lower(), default)
    if found in (BAD_REQUEST, UNKNOWN) and any(words in lowered for words in _TOO_LONG):
        return CONTEXT_LENGTH
    if found == BAD_REQUEST and _UNPAID in lowered:
        return QUOTA
    if found == RATE_LIMITED and _BY_WORD.get(read.kind.lower()) == QUOTA:
        return QUOTA
    return found


def _by_number(number: int) -> str:
    if number in _BY_STATUS:
        return _BY_STATUS[number]
    if 500 <= number < 600:
        return UNAVAILABLE
    return BAD_REQUEST if 400 <= number < 500 else UNKNOWN


def _number(value: Json) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value if 100 <= value < 600 else None
    return int(value) if isinstance(value, str) and re.fullmatch(r"[1-5]\d\d", value, re.ASCII) else None


def _text(value: Json) -> str:
    return clean_text(value) if isinstance(value, str) else ""
