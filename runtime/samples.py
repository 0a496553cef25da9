"""The sampling events: all that the loop ever sees of a model provider.

A dialect's decoder turns a provider's chunks into these; nothing behind it knows which provider spoke. Deltas are
provisional. `AssistantMessageDone` and `ToolCallCommitted` are the provider's commit points and `Completed` the
evidence that the stream really ended: a decoder emits it only when it has seen a finish reason, `[DONE]`,
`response.completed` or `message_stop`.

Within a round a decoder keeps this order: deltas of an item before its commit, every commit before `Completed`,
nothing after `Completed`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from runtime.canonical import JsonObject


@dataclass(slots=True)
class TextDelta:
    """A piece of visible text; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class RefusalDelta:
    """A piece of a refusal's text (the `refusal` event of the contract); never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDelta:
    """A piece of reasoning text; never empty."""

    text: str


@dataclass(frozen=True, slots=True)
class ReasoningDone:
    """The reasoning part before it is complete (one without text is a part of its own, e.g. redacted thinking)."""

    signature: str | None = None
    encrypted_value: str | None = None
    opaque: JsonObject | None = None
    """Provider members to send back unchanged to the same provider."""


@dataclass(frozen=True, slots=True)
class AssistantMessageDone:
    """The text (and refusal) that was streamed so far in this round is complete."""

    provider_phase: str | None = None


@dataclass(frozen=True, slots=True)
class ToolCallDelta:
    """A piece of a tool call. `key` is the decoder's own name for the call within the round, unique in it.

    The first delta of a key carries the settled tool name and the provider's call id if it is known by then (later
    news of it counts only at the commit); `arguments` may be empty.
    """

    key: str
    name: str
    arguments: str
    provider_call_id: str = ""


@dataclass(frozen=True, slots=True)
class ToolCallCommitted:
    """The call is complete as the provider wrote it.

    `arguments_json` is the text as written ("" and "null" stand for `{}`; the loop decides what is malformed).
    `provider_call_id` is "" if the provider gave none. `at_provider` says that the provider performs it, once somebody
    has said that it may.
    """

    key: str
    name: str
    arguments_json: str
    provider_call_id: str
    opaque: JsonObject | None = None
    at_provider: bool = False


@dataclass(frozen=True, slots=True)
class Completed:
    """The provider's stream ended with evidence.

    `finish` is one of `FINISH_REASONS` or, for a value nobody knows, the provider's own word.
    `usage` has integer members among `USAGE_COUNTS`; what the provider did not say is absent, never zero.
    """

    finish: str
    usage: JsonObject | None = None
    provider_response_id: str | None = None
    model: str | None = None
    explanation: str | None = None
    """What the provider says of a refusal, in its own words."""


Sample: TypeAlias = (
    TextDelta
    | RefusalDelta
    | ReasoningDelta
    | ReasoningDone
    | AssistantMessageDone
    | ToolCallDelta
    | ToolCallCommitted
    | Completed
)

FINISH_REASONS = frozenset({"stop", "tool_calls", "length", "content_filter", "refusal", "pause_turn"})

USAGE_COUNTS = (
    "input_tokens",
    "output_tokens",
    "total_tokens",
    "reasoning_tokens",
    "cached_input_tokens",
    "cache_write_input_tokens",
)
"""Accounting of AG-UI 1.0 (R-196): input and output are totals, reasoning is part of output, cache counts of input."""
