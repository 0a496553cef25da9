"""The round that is being sampled: what it has said so far, and whether it may commit. Pure."""

from __future__ import annotations

from dataclasses import dataclass, field

import orjson

from runtime import samples as s
from runtime.canonical import JsonObject
from runtime.errors import AguiBridgeError, ProtocolError, ProviderError


@dataclass(slots=True)
class OpenCall:
    """A tool call of the present round."""

    tool_call_id: str
    provider_call_id: str
    name: str
    streamed: list[str] = field(default_factory=list[str])
    held: str = ""
    committed: s.ToolCallCommitted | None = None


@dataclass(slots=True)
class OpenRound:
    """What the present round has said so far."""

    number: int
    calls: dict[str, OpenCall] = field(default_factory=dict[str, OpenCall])
    parts: list[JsonObject] = field(default_factory=list[JsonObject])
    uncovered_text: bool = False
    spoke: bool = False
    refused: bool = False
    phase: str | None = None
    messages: list[list[str]] = field(default_factory=lambda: [[]])
    """The texts of its messages, in pieces; kept only when a value is wanted of them."""

    @property
    def texts(self) -> list[str]:
        """What its messages say, the empty ones left out."""
        return [text for pieces in self.messages if (text := "".join(pieces))]


def why_not(round_: OpenRound, finish: str, explanation: str | None = None) -> AguiBridgeError | None:
    """Why this round does not commit, in the order in which the reasons count.

    `explanation` is the provider's own, if it gave one.
    """
    if finish == "content_filter":
        return ProviderError("The provider's content filter stopped the answer.", code="content_filter")
    if finish == "length" and round_.calls:
        return ProviderError("The answer was cut by its length limit within a tool call.", code="output_truncated")
    if finish == "refusal" and not round_.refused:
        said = f"The model refused to answer: {explanation}" if explanation else "The model refused to answer."
        return ProviderError(said, code="refusal")
    if round_.uncovered_text:
        return ProtocolError("The provider streamed text but never completed the message.")
    if any(call.committed is None for call in round_.calls.values()):
        return ProtocolError("The provider streamed tool arguments but never completed the call.")
    if not round_.spoke and not round_.calls:
        return ProviderError("The model answered with nothing.", code="empty_response", retryable=True)
    return None


def arguments_of(sample: s.ToolCallCommitted) -> str:
    """The arguments as they are committed: nothing at all means no arguments."""
    text = sample.arguments_json.strip()
    return "{}" if text in ("", "null") else sample.arguments_json


def may_be_nothing(begun: str) -> bool:
    """Whether argument text that begins so may turn out to be "" or "null"."""
    text = begun.strip()
    return text == "" or (text[0] == "n" and "null".startswith(text))


def is_object(arguments_json: str) -> bool:
    """Whether argument text is a JSON object."""
    try:
        return isinstance(orjson.loads(arguments_json), dict)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return False
