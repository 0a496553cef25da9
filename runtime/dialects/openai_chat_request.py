"""A history as a Chat Completions request.

Pure. It never fails for what a history may hold: what the format cannot say is left out, what a server would refuse
(half a call, broken arguments, an orphan result) is mended in the request only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import cast

from runtime.canonical import Json, JsonObject
from runtime.dialects.history import Pairs, arguments_of, data_url, output_text, said_by_user
from runtime.items import Content, FunctionCall, FunctionCallOutput, Item, Message, Reasoning, ToolSpec, text_of
from runtime.tool_choice import OPTION, ToolChoice, choice_of

_OWN_OPTIONS = frozenset(
    {
        "model",
        "instructions",
        "output_schema",
        OPTION,
        "replay_reasoning",
        "reasoning_field",
        "think_tags",
        "starts_in_thinking",
    }
)
_NEEDS_TOOLS = ("tool_choice", "parallel_tool_calls")
_AUDIO_FORMATS = {
    "audio/wav": "wav",
    "audio/x-wav": "wav",
    "audio/wave": "wav",
    "audio/vnd.wave": "wav",
    "audio/mpeg": "mp3",
    "audio/mp3": "mp3",
}


def encode(items: Sequence[Item], tools: Sequence[ToolSpec], options: JsonObject, provider: str) -> JsonObject:
    """The request for this history, streaming and with usage.

    Options of our own, which are not sent: `instructions` (the system message), `output_schema` (`{name, schema,
    strict}`, sent as the `response_format` if the options have none), `replay_reasoning` (`loop`, the default:
    reasoning goes back within the running tool loop only; `always`; `never`), `reasoning_field` (where its text
    goes, `reasoning_content`), `choose_tool` (see `tool_choice`; it stands over the option `tool_choice`), and
    `think_tags` and `starts_in_thinking`, which belong to the dialect itself. Everything else goes into the request
    as it is; null takes a member out of it.
    """
    request: JsonObject = {
        "model": options.get("model"),
        "messages": _messages(items, options, provider),
        "stream_options": {"include_usage": True},
    }
    if (asked := options.get("output_schema")) is not None:
        request["response_format"] = {"type": "json_schema", "json_schema": asked}
    request.update({name: value for name, value in options.items() if name not in _OWN_OPTIONS})
    if (choice := choice_of(options.get(OPTION))) is not None:
        request["tool_choice"] = _choice(choice)
    if tools:
        request["tools"] = [_tool(tool) for tool in tools]
    if not request.get("tools"):
        for name in _NEEDS_TOOLS:
            request.pop(name, None)
    request["stream"] = True
    return {name: value for name, value in request.items() if value is not None}


def _choice(choice: ToolChoice) -> Json:
    if choice.name is None:
        return "required" if choice.any else "none"
    return {"type": "function", "function": {"name": choice.name}}


@dataclass(slots=True)
class _Block:
    """What becomes one assistant message, with the tool messages behind it."""

    texts: list[str] = field(default_factory=list[str])
    calls: list[tuple[int, FunctionCall]] = field(default_factory=list[tuple[int, FunctionCall]])
    reasoning: list[Reasoning] = field(default_factory=list[Reasoning])


def _messages(items: Sequence[Item], options: JsonObject, provider: str) -> list[JsonObject]:
    pairs = Pairs(items)
    replay = options.get("replay_reasoning", "loop")
    reasoning_field = options.get("reasoning_field", "reasoning_content")
    last_user = max(
        (at for at, item in enumerate(items) if isinstance(item, Message) and item.role == "user"), default=-1
    )
    messages: list[JsonObject] = []
    if instructions := options.get("instructions"):
        messages.append({"role": "system", "content": instructions})
    for at, entry in _entries(items):
        if isinstance(entry, Message):
            messages.append(_said(entry, provider))
            continue
        replayed = entry.reasoning if replay == "always" or (replay == "loop" and at > last_user) else []
        messages += _assistant(entry, replayed, pairs, provider, str(reasoning_field))
    return messages


def _entries(items: Sequence[Item]) -> Iterator[tuple[int, Message | _Block]]:
    """User and system messages as they are, and what the assistant did between them and its tools in blocks."""
    block: _Block | None = None
    began = 0
    for at, item in enumerate(items):
        spoken = isinstance(item, Message) and item.role != "assistant"
        ends = spoken or isinstance(item, FunctionCallOutput)
        if isinstance(item, Message) and block is not None and block.texts and item.runtime_role is None:
            ends = True  # texts of one round have a role; this one was adopted, a message of its own
        if ends and block is not None:
            yield began, block
            block = None
        if isinstance(item, FunctionCallOutput):
            continue
        if isinstance(item, Message) and spoken:
            yield at, item
            continue
        if block is None:
            block, began = _Block(), at
        if isinstance(item, Message):
            block.texts.append(text_of(item.content))
        elif isinstance(item, FunctionCall):
            block.calls.append((at, item))
        else:
            block.reasoning.append(item)
    if block is not None:
        yield began, block


# --- the assistant ------------------------------------------------------------------------------------------------


def _assistant(
    block: _Block, reasoning: list[Reasoning], pairs: Pairs, provider: str, reasoning_field: str
) -> Iterator[JsonObject]:
    """One assistant message, then one tool message a call, in call order. Nothing if it said nothing."""
    text = "".join(block.texts)
    if not text and not block.calls:
        return
    message: JsonObject = {"role": "assistant", "content": text or None}
    message.update(_reasoning([one for one in reasoning if one.provider == provider], reasoning_field))
    ids = [pairs.unique(call.call_id) for _, call in block.calls]
    if block.calls:
        message["tool_calls"] = [_call(call, id_, provider) for (_, call), id_ in zip(block.calls, ids, strict=True)]
    yield message
    for (at, _), id_ in zip(block.calls, ids, strict=True):
        yield {"role": "tool", "tool_call_id": id_, "content": output_text(pairs.output(at))}


def _reasoning(parts: list[Reasoning], reasoning_field: str) -> JsonObject:
    """What goes back of the thoughts: what the server gave us to keep, else their text."""
    details: list[Json] = []
    for part in parts:
        kept = (part.opaque or {}).get("reasoning_details")
        if isinstance(kept, list):
            details += cast("list[Json]", kept)
    if details:
        return {"reasoning_details": details}
    text = "".join(part.text for part in parts)
    return {reasoning_field: text} if text else {}


def _call(call: FunctionCall, call_id: str, provider: str) -> JsonObject:
    opaque = call.opaque if call.opaque and call.provider == provider else {}
    function = {"name": call.name, "arguments": arguments_of(call)}
    return {**opaque, "id": call_id, "type": "function", "function": function}


# --- what others said ---------------------------------------------------------------------------------------------


def _said(message: Message, provider: str) -> JsonObject:
    if message.role == "system":
        return {"role": "system", "content": text_of(message.content)}
    return {"role": "user", "content": _user_content(said_by_user(message), provider)}


def _user_content(content: Content, provider: str) -> str | list[JsonObject]:
    """Text as text when there is nothing else: some servers know no parts."""
    if isinstance(content, str):
        return content
    parts = [made for part in content if (made := _part(part, provider)) is not None]
    if len(parts) == 1 and parts[0]["type"] == "text":
        return cast("str", parts[0]["text"])
    return parts or ""


def takes(part: JsonObject, provider: str, *, in_output: bool) -> bool:
    """Whether the format has this media part: outputs have text alone."""
    return not in_output and _part(part, provider) is not None


def _part(part: JsonObject, provider: str) -> JsonObject | None:
    """The part in this format, None if it has none."""
    if part.get("type") == "text":
        return {"type": "text", "text": part.get("text") or ""}
    source = part.get("source")
    make = (
        _PARTS.get((str(part.get("type")), str(cast("JsonObject", source).get("type"))))
        if isinstance(source, dict)
        else None
    )
    if make is None:
        return None
    return make(part, cast("JsonObject", source), provider)


def _image_data(_part: JsonObject, source: JsonObject, _provider: str) -> JsonObject | None:
    return {"type": "image_url", "image_url": {"url": data_url(source, "image/png")}}


def _image_url(_part: JsonObject, source: JsonObject, _provider: str) -> JsonObject | None:
    return {"type": "image_url", "image_url": {"url": source.get("value")}}


def _audio_data(_part: JsonObject, source: JsonObject, _provider: str) -> JsonObject | None:
    name = _AUDIO_FORMATS.get(str(source.get("mime_type")).lower())
    return {"type": "input_audio", "input_audio": {"data": source.get("value"), "format": name}} if name else None


def _document_data(part: JsonObject, source: JsonObject, _provider: str) -> JsonObject | None:
    if source.get("mime_type") != "application/pdf":
        return None
    metadata = part.get("metadata")
    filename = cast("JsonObject", metadata).get("filename") if isinstance(metadata, dict) else None
    file = {"filename": filename or "document.pdf", "file_data": data_url(source, "application/pdf")}
    return {"type": "file", "file": file}


def _document_file(_part: JsonObject, source: JsonObject, provider: str) -> JsonObject | None:
    if source.get("provider") not in (None, provider):
        return None
    return {"type": "file", "file": {"file_id": source.get("value")}}


_PARTS = {
    ("image", "data"): _image_data,
    ("image", "url"): _image_url,
    ("audio", "data"): _audio_data,
    ("document", "data"): _document_data,
    ("document", "file"): _document_file,
}


def _tool(tool: ToolSpec) -> JsonObject:
    function: JsonObject = {"name": tool.name, "parameters": tool.parameters or {"type": "object", "properties": {}}}
    if tool.description:
        function["description"] = tool.description
    return {"type": "function", "function": function}
