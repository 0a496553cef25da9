"""A history as a Responses request.

Pure. It never fails for what a history may hold: what the format cannot say is left out, what a server would refuse
is mended in the request only. The server keeps nothing (`store` is false), so every request says all of it:

1. A call and its output go together; the outputs stand behind the turn that called, in call order.
2. Only reasoning carries an id, and only the one it was given: a server looks for what an id names. Messages and
   calls go without, so none is ever missed together with something that was left out.
3. Reasoning goes back as its encrypted value, to the provider that issued it, and only directly before what it led
   to (a message, a call, a hosted tool); without that it is left out. Its plain text never goes back.
4. An item of a kind that we do not know, hosted tools among them, goes back as it came, at its place, to its
   provider. One that names a call stays only together with its output.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterator, Sequence
from typing import TypeAlias, cast

import orjson

from runtime.canonical import Json, JsonObject
from runtime.dialects.history import (
    Pairs,
    arguments_of,
    data_url,
    is_marked,
    output_text,
    said_by_user,
)
from runtime.dialects.response_items import APPROVAL
from runtime.items import Content, FunctionCall, FunctionCallOutput, Item, Message, Reasoning, ToolSpec, text_of
from runtime.tool_choice import OPTION, ToolChoice, choice_of

ENCRYPTED = "reasoning.encrypted_content"

_OWN_OPTIONS = frozenset(
    {
        "model",
        "instructions",
        "tools",
        "include",
        "output_schema",
        OPTION,
        "text",
        "replay_reasoning",
        "think_tags",
        "starts_in_thinking",
        "reasoning_field",
    }
)
_NEEDS_TOOLS = ("tool_choice", "parallel_tool_calls", "max_tool_calls")
_CALL_TYPES = frozenset({"function_call", "custom_tool_call"})
_PHASES = frozenset({"commentary", "final_answer"})
_LONGEST_ID = 64
_LONGEST_NAME = 64
_BAD_IN_NAME = re.compile(r"[^A-Za-z0-9_-]")
_NEVER_ENCRYPTS = re.compile(r"(ft:)?(gpt-(3|4)|chatgpt-|gpt-5(\.\d+)?-chat)")
"""Models that do not reason; they refuse to be asked for encrypted reasoning."""

_EXTENSIONS = {
    "application/pdf": ".pdf",
    "application/json": ".json",
    "text/plain": ".txt",
    "text/markdown": ".md",
    "text/csv": ".csv",
    "text/html": ".html",
}

_Entry: TypeAlias = "tuple[JsonObject, str | None]"
"""An input item and the provider that said it, if that is known."""


def encode(items: Sequence[Item], tools: Sequence[ToolSpec], options: JsonObject, provider: str) -> JsonObject:
    """The request for this history, streaming.

    Options of our own, which are not sent: `choose_tool` (see `tool_choice`; it stands over the option
    `tool_choice`), `output_schema` (`{name, schema, strict}`, sent as `text.format` if the
    option `text` has none), `replay_reasoning` (`always`, the default; `loop`: within the running tool
    loop only; `never`) and those of the Chat Completions dialect, which say nothing here. `tools` (hosted and custom
    ones, in the API's own shape) are added to the declared tools and replace one of the same name; `include` is added
    to what we ask for. Everything else goes into the request as it is; null takes a member out of it.
    """
    request: JsonObject = {
        "model": options.get("model"),
        "instructions": options.get("instructions") or None,
        "input": _input(items, str(options.get("replay_reasoning", "always")), provider),
        "store": False,
        "include": _include(options),
        "tools": _tools(tools, options.get("tools")),
        "text": _text(options),
    }
    request.update({name: value for name, value in options.items() if name not in _OWN_OPTIONS})
    if (choice := choice_of(options.get(OPTION))) is not None:
        request["tool_choice"] = _choice(choice)
    if not request["tools"]:
        for name in ("tools", *_NEEDS_TOOLS):
            request.pop(name, None)
    request["stream"] = True
    return {name: value for name, value in request.items() if value is not None}


def _choice(choice: ToolChoice) -> Json:
    if choice.name is None:
        return "required" if choice.any else "none"
    return {"type": "function", "name": choice.name}


def _text(options: JsonObject) -> Json:
    given, asked = options.get("text"), options.get("output_schema")
    if asked is None or ("text" in options and not isinstance(given, dict)):
        return given
    return {"format": {"type": "json_schema", **asked}, **cast("JsonObject", given or {})}


def _include(options: JsonObject) -> list[str] | None:
    if "include" in options and options["include"] is None:
        return None
    asked = [str(one) for one in cast("list[object]", options.get("include") or [])]
    ours = [] if ENCRYPTED in asked or _NEVER_ENCRYPTS.match(str(options.get("model"))) else [ENCRYPTED]
    return [*ours, *asked] or None


def _tools(tools: Sequence[ToolSpec], more: object) -> list[JsonObject]:
    """The declared tools, with those of the options behind them or in their place."""
    extra = cast("list[JsonObject]", more) if isinstance(more, list) else []
    replaced = {tool.get("name") for tool in extra if tool.get("name")}
    return [*(_tool(tool) for tool in tools if tool.name not in replaced), *extra]


def _tool(tool: ToolSpec) -> JsonObject:
    made: JsonObject = {"type": "function", "name": tool.name}
    if tool.description:
        made["description"] = tool.description
    # The API would make a schema strict by itself, and change it.
    return {**made, "parameters": tool.parameters or {"type": "object", "properties": {}}, "strict": False}


# --- the history --------------------------------------------------------------------------------------------------


def _input(items: Sequence[Item], replay: str, provider: str) -> list[JsonObject]:
    writer = _Writer(items, replay, provider)
    sent: list[JsonObject] = []
    for entry in _turns(items):
        sent += writer.turn(entry) if isinstance(entry, list) else [_said(entry, provider)]
    return sent


def _turns(items: Sequence[Item]) -> Iterator[Message | list[tuple[int, Item]]]:
    """User and system messages as they are; what the assistant did between them and its outputs, with its places."""
    turn: list[tuple[int, Item]] = []
    for at, item in enumerate(items):
        if isinstance(item, Message) and item.role != "assistant":
            if turn:
                yield turn
                turn = []
            yield item
        elif isinstance(item, FunctionCallOutput):
            if turn:
                yield turn
                turn = []
        else:
            turn.append((at, item))
    if turn:
        yield turn


class _Writer:
    """Writes the assistant's turns of one request."""

    def __init__(self, items: Sequence[Item], replay: str, provider: str) -> None:
        self._provider = provider
        self._pairs = Pairs(items)
        self._ids: set[tuple[str, str]] = set()
        self._kept = [(at, kept) for at, item in enumerate(items) if (kept := _kept(item, provider)) is not None]
        users = (at for at, item in enumerate(items) if isinstance(item, Message) and item.role == "user")
        last_user = max(users, default=-1)
        self._replay_from = {"always": -1, "loop": last_user}.get(replay, len(items))

    def turn(self, turn: list[tuple[int, Item]]) -> list[JsonObject]:
        """The input items of a turn: what the assistant said and did in its order, then the outputs in call order."""
        entries: list[_Entry] = []
        outputs: list[JsonObject] = []
        spoken = [at for at, item in turn if isinstance(item, Message) and item.content]
        for at, item in turn:
            if isinstance(item, Message):
                if text := text_of(item.content):
                    # A round has one phase, that of its last message.
                    entries.append((_assistant(item, text, at == spoken[-1]), None))
            elif isinstance(item, FunctionCall):
                call = self._call(item)
                entries.append((call, item.provider))
                outputs.append(self._output(call, self._pairs.output(at), item))
            elif isinstance(item, Reasoning) and (kept := self._reasoning(at, item)) is not None:
                entries.append((kept, self._provider))
        return [*_followed(entries, self._provider), *outputs]

    # --- calls ----------------------------------------------------------------------------------------------------

    def _call(self, call: FunctionCall) -> JsonObject:
        opaque = call.opaque if call.opaque and call.provider == self._provider else {}
        if opaque.get("type") == APPROVAL:
            return {**opaque, "name": call.name, "arguments": call.arguments_json}
        kept = opaque if opaque.get("type") in _CALL_TYPES else {}
        short = call.call_id if 0 < len(call.call_id) <= _LONGEST_ID - 4 else _digest(call.call_id)
        made: JsonObject = {
            **kept,
            "type": "function_call",
            "call_id": self._pairs.unique(short),
            "name": _BAD_IN_NAME.sub("_", call.name)[:_LONGEST_NAME] or "unnamed",
        }
        if kept.get("type") == "custom_tool_call" and (text := _input_of(call)) is not None:
            return {**made, "type": "custom_tool_call", "input": text}
        return {**made, "arguments": arguments_of(call)}

    def _output(self, call: JsonObject, output: FunctionCallOutput | None, item: FunctionCall) -> JsonObject:
        if call["type"] == APPROVAL:
            return _approval(call, output)
        made: JsonObject = {"type": f"{call['type']}_output", "call_id": call["call_id"]}
        if "caller" in call:
            made["caller"] = call["caller"]
        made["output"] = _output_content(output, self._provider)
        return made

    # --- reasoning, and what only the provider understands --------------------------------------------------------

    def _reasoning(self, at: int, item: Reasoning) -> JsonObject | None:
        kept = _kept(item, self._provider)
        if kept is None or (kept["type"] == "reasoning" and at <= self._replay_from):
            return None
        if not self._is_paired(at, kept):
            return None
        kind, id_ = cast("str", kept["type"]), kept.get("id")
        if not isinstance(id_, str) or not id_ or (kind, id_) in self._ids:
            if kind != "reasoning" and id_:
                return None  # the same item once more
            return {name: value for name, value in kept.items() if name != "id"}
        self._ids.add((kind, id_))  # an output may have the id of its call
        return kept

    def _is_paired(self, at: int, kept: JsonObject) -> bool:
        """Whether an item that needs another one, by the id of a call, has it: a call behind it, an output before."""
        kind = cast("str", kept["type"])
        is_output = kind.endswith("_output")
        if not is_output and not (kind.endswith("_call") and "call_id" in kept):
            return True
        other = kind.removesuffix("_output") if is_output else f"{kind}_output"
        names = {kept.get("call_id"), kept.get("id")}
        return any(
            one["type"] == other
            and (place < at if is_output else place > at)
            and not names.isdisjoint({one.get("call_id"), one.get("id")} - {None})
            for place, one in self._kept
        )


def _kept(item: Item, provider: str) -> JsonObject | None:
    """The provider's own item that a reasoning part stands for, as it may go back; None if there is none."""
    if not isinstance(item, Reasoning) or item.provider != provider:
        return None
    opaque = item.opaque or {"type": "reasoning"}
    kind = opaque.get("type")
    if not isinstance(kind, str):
        return None
    if kind != "reasoning":
        return dict(opaque)
    if not item.encrypted_value:
        return None
    return {**opaque, "summary": opaque.get("summary") or [], "encrypted_content": item.encrypted_value}


def _approval(request: JsonObject, output: FunctionCallOutput | None) -> JsonObject:
    """What was said to a call that the provider performs."""
    approved = output is not None and not output.is_error
    made: JsonObject = {"type": "mcp_approval_response", "approval_request_id": request["id"], "approve": approved}
    return made if approved else {**made, "reason": output_text(output)}


def _followed(entries: list[_Entry], provider: str) -> list[JsonObject]:
    """The items of a turn without reasoning that does not stand directly before what it led to."""
    sent: list[JsonObject] = []
    follower: _Entry | None = None
    for entry in reversed(entries):
        item, _ = entry
        leads = follower is not None and follower[1] in (None, provider) and follower[0]["type"] != "reasoning"
        if item["type"] == "reasoning" and not leads:
            continue
        sent.append(item)
        follower = entry
    return sent[::-1]


def _input_of(call: FunctionCall) -> str | None:
    """The free text that a custom tool was called with, None if the arguments are something else."""
    try:
        arguments = orjson.loads(call.arguments_json)
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        return None
    text = cast("JsonObject", arguments).get("input") if isinstance(arguments, dict) else None
    return text if isinstance(text, str) else None


def _digest(call_id: str) -> str:
    """An id in place of one that is empty or longer than the API allows."""
    return f"call_{hashlib.sha256(call_id.encode('utf-8', 'surrogatepass')).hexdigest()[:24]}"


# --- what was said ------------------------------------------------------------------------------------------------


def _assistant(message: Message, text: str, is_last: bool) -> JsonObject:
    content = [{"type": "refusal", "refusal": text}] if message.refusal else text
    made: JsonObject = {"type": "message", "role": "assistant", "content": content}
    if is_last and message.provider_phase in _PHASES:
        made["phase"] = message.provider_phase  # kept for the provider, as it asks; nothing of ours depends on it
    return made


def _said(message: Message, provider: str) -> JsonObject:
    if message.role == "system":
        return {"type": "message", "role": "system", "content": text_of(message.content)}
    content = said_by_user(message)
    made = content if isinstance(content, str) else _parts(content, provider) or ""
    return {"type": "message", "role": "user", "content": made}


def _output_content(output: FunctionCallOutput | None, provider: str) -> str | list[JsonObject]:
    """An output as text, or as parts where it has media that the API can be given."""
    if output is None or isinstance(output.output, str):
        return output_text(output)
    parts = _parts(output.output, provider)
    if all(part["type"] == "input_text" for part in parts):
        return output_text(output)
    if output.is_error and not is_marked(text_of(output.output)):
        parts.insert(0, {"type": "input_text", "text": "Error"})
    return parts


def takes(part: JsonObject, provider: str) -> bool:
    """Whether the format has this media part: in outputs as in messages."""
    return bool(_parts([part], provider))


def _parts(content: Content, provider: str) -> list[JsonObject]:
    """The parts that the format has; text without words is none."""
    made: list[JsonObject] = []
    for part in content if isinstance(content, list) else []:
        if part.get("type") == "text":
            if text := part.get("text"):
                made.append({"type": "input_text", "text": text})
        elif isinstance(source := part.get("source"), dict):
            made += _media(part, cast("JsonObject", source), provider)
    return made


def _media(part: JsonObject, source: JsonObject, provider: str) -> Iterator[JsonObject]:
    kind, value = source.get("type"), source.get("value")
    if kind == "file" and source.get("provider") not in (None, provider):
        return
    if part.get("type") == "image":
        image: JsonObject = {"type": "input_image", "detail": "auto"}
        if kind == "data":
            yield {**image, "image_url": data_url(source, "image/png")}
        elif kind == "url":
            yield {**image, "image_url": value}
        elif kind == "file":
            yield {**image, "file_id": value}
    elif part.get("type") == "document":
        if kind == "data":
            url = data_url(source, "application/pdf")
            yield {"type": "input_file", "filename": _filename(part, source), "file_data": url}
        elif kind == "url":
            yield {"type": "input_file", "file_url": value}
        elif kind == "file":
            yield {"type": "input_file", "file_id": value}


def _filename(part: JsonObject, source: JsonObject) -> str:
    metadata = part.get("metadata")
    given = cast("JsonObject", metadata).get("filename") if isinstance(metadata, dict) else None
    kind = str(source.get("mime_type") or "application/pdf")
    return str(given) if given else f"document{_EXTENSIONS.get(kind, '')}"
