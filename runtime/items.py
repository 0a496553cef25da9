"""Items: the model-visible history, in our own shape, until a dialect turns it into a provider's request.

Pure values. A content part is a dict:
`{"type": "text", "text": str}` or `{"type": "image"|"audio"|"video"|"document", "source": source}` with source
`{"type": "data", "value": base64, "mime_type": str}`, `{"type": "url", "value": str, "mime_type"?: str}`,
`{"type": "file", "value": str, "provider"?: str, "mime_type"?: str}`, or, for bytes that are kept once, a `blob` (see
`media`); parts may also carry `id` and `metadata`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from runtime.canonical import JsonObject, digest
from runtime.media import same_source

Content: TypeAlias = "str | list[JsonObject]"
"""Text, or a list of content parts."""


WORKING = "working_message"
"""The runtime role of text before calls."""
FINAL = "final_response"
"""The runtime role of text that ends a run."""
REJECTION = "output_rejection"
"""The runtime role of what the model is told when its answer does not fit the output type."""
REJECTED = "This answer was not accepted:"
"""How a rejection begins."""


@dataclass(frozen=True, slots=True)
class Message:
    """What somebody said. `role` is `system`, `user` or `assistant`.

    `runtime_role` of an assistant message is `working_message` or `final_response`; of a user message it may be
    `late_tool_answer`, or `output_rejection`, which is the runtime's own. `refusal` marks text with which the model
    declined. `provider_phase` is for debug views only.
    """

    role: str
    content: Content
    runtime_role: str | None = None
    provider_phase: str | None = None
    refusal: bool = False


@dataclass(frozen=True, slots=True)
class FunctionCall:
    """A call that the model made; `arguments_json` is the text as the model wrote it, also when malformed."""

    call_id: str
    name: str
    arguments_json: str
    malformed: bool = False
    opaque: JsonObject | None = None
    provider: str | None = None


@dataclass(frozen=True, slots=True)
class FunctionCallOutput:
    """The one output of a call."""

    call_id: str
    tool_name: str
    output: Content
    is_error: bool


@dataclass(frozen=True, slots=True)
class Reasoning:
    """What the model thought. Signature, encrypted value and `opaque` go back only to `provider`, unchanged."""

    text: str
    provider: str
    signature: str | None = None
    encrypted_value: str | None = None
    opaque: JsonObject | None = None


Item: TypeAlias = Message | FunctionCall | FunctionCallOutput | Reasoning


@dataclass(frozen=True, slots=True)
class ToolSpec:
    """A tool as a model is told of it. `parameters` is a JSON Schema of an object."""

    name: str
    description: str
    parameters: JsonObject


def same_words(content: Content) -> str:
    """What counts when two messages are compared, as a digest: text, and media by the digest of their bytes, as far
    as these are known, else by their sources.

    One text part says the same as a string; ids and metadata of parts do not count.
    """
    if isinstance(content, str):
        return digest(content)
    if all(part.get("type") == "text" for part in content):
        return digest(text_of(content))
    return digest([same_source(part.get("source")) if "source" in part else part.get("text") for part in content])


def text_of(content: Content) -> str:
    """The text of a content, media left out."""
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in content if part.get("type") == "text")
