"""A history as a request of Anthropic's Messages API.

Pure. What becomes of the history itself is in `anthropic_history`; here are the members around it, and the
breakpoints of the prompt cache. Tools whose names the API would refuse are sent under names that it accepts;
`names_of` leads back.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from typing import cast

from runtime.canonical import Json, JsonObject
from runtime.dialects.anthropic_history import History, wire_name
from runtime.dialects.anthropic_media import has_file
from runtime.items import Item, ToolSpec
from runtime.strict_schema import LIMITS, in_words
from runtime.tool_choice import OPTION, ToolChoice, choice_of

MAX_TOKENS = 32_000
"""How long an answer may be if no option says it; every model since Claude 3.7 can do it."""

_OLD_MAX_TOKENS = 4096
_OLD_MODELS = re.compile(r"claude-(3-(?!7)|2|instant)")
_MOST_BREAKPOINTS = 4
_FILES = "files-api-2025-04-14"
_OWN_OPTIONS = frozenset(
    {
        "model",
        "messages",
        "instructions",
        "tools",
        "betas",
        "cache_ttl",
        "output_config",
        "output_schema",
        OPTION,
        "replay_reasoning",
        "reasoning_field",
        "think_tags",
        "starts_in_thinking",
    }
)


def encode(items: Sequence[Item], tools: Sequence[ToolSpec], options: JsonObject, provider: str) -> JsonObject:
    """The request for this history, streaming.

    Options of our own, which are not sent: `choose_tool` (see `tool_choice`; it stands over the option
    `tool_choice`, and a call that has to be made is made without thinking), `cache_ttl` (`5m`, the default, or
    `1h`; null sets no breakpoints), `output_schema` (`{name, schema, strict}`, sent as `output_config.format` if
    the option `output_config` has none), `betas` (what goes into the header `anthropic-beta`), `replay_reasoning`
    (`always`, the default; `loop`: within the running tool loop only; `never`) and those of the Chat Completions
    dialect, which say nothing here. `tools` (the API's own, in its own shape) are added to the declared tools and
    replace one of the same name. Everything else goes into the request as it is; null takes a member out of it.
    """
    history = History(items, provider, str(options.get("replay_reasoning", "always")))
    request: JsonObject = {
        "model": options.get("model"),
        "system": _system(options.get("instructions"), history.system),
        "messages": history.messages,
        "tools": _tools(tools, options.get("tools")),
        "output_config": _output_config(options),
    }
    request.update({name: value for name, value in options.items() if name not in _OWN_OPTIONS})
    if (choice := choice_of(options.get(OPTION))) is not None:
        request["tool_choice"] = _choice(choice)
        if choice.any or choice.name is not None:
            request["thinking"] = None  # the API refuses to think before a call that it has to make
    request["max_tokens"] = options.get("max_tokens") or _max_tokens(request)
    if not request["tools"]:
        request.pop("tool_choice", None)
        if names := history.called:  # a history with calls must declare tools; none of these may be called
            request["tools"] = [{"name": name, "input_schema": {"type": "object"}} for name in names]
            request["tool_choice"] = {"type": "none"}
    if not history.may_think and _is_enabled(request.get("thinking")):
        request["thinking"] = None
    request["betas"] = _betas(options.get("betas"), history.messages)
    request["stream"] = True
    request = {name: value for name, value in request.items() if value not in (None, [])}
    if ttl := options.get("cache_ttl", "5m"):
        mark = {"type": "ephemeral"} if ttl == "5m" else {"type": "ephemeral", "ttl": ttl}
        _set_breakpoints(request, history.ends[-2:], mark)
    return request


def _choice(choice: ToolChoice) -> JsonObject:
    if choice.name is None:
        return {"type": "any" if choice.any else "none"}
    return {"type": "tool", "name": wire_name(choice.name)}


def names_of(declared: Collection[str]) -> dict[str, str]:
    """The declared names of the tools that are sent under other names, by these."""
    return {wire_name(name): name for name in reversed([*declared]) if wire_name(name) not in declared}


def _output_config(options: JsonObject) -> Json:
    given, asked = options.get("output_config"), options.get("output_schema")
    if asked is None or ("output_config" in options and not isinstance(given, dict)):
        return given
    schema = in_words(cast("JsonObject", asked["schema"]), LIMITS)
    return {"format": {"type": "json_schema", "schema": schema}, **cast("JsonObject", given or {})}


def _system(instructions: Json, said: list[str]) -> list[JsonObject]:
    return [{"type": "text", "text": text} for text in (str(instructions or ""), *said) if text.strip()]


def _max_tokens(request: JsonObject) -> int:
    """As long as the model's answers may be, behind all that it may think."""
    longest = _OLD_MAX_TOKENS if _OLD_MODELS.match(str(request.get("model"))) else MAX_TOKENS
    thinking = request.get("thinking")
    budget = cast("JsonObject", thinking).get("budget_tokens") if isinstance(thinking, dict) else None
    return longest + budget if isinstance(budget, int) and budget >= longest else longest


def _is_enabled(thinking: Json) -> bool:
    return isinstance(thinking, dict) and cast("JsonObject", thinking).get("type") == "enabled"


def _betas(asked: Json, messages: list[JsonObject]) -> list[str]:
    betas = [str(one) for one in cast("list[Json]", asked)] if isinstance(asked, list) else []
    return list(dict.fromkeys([*betas, _FILES] if has_file(messages) else betas))


# --- tools --------------------------------------------------------------------------------------------------------


def _tools(tools: Sequence[ToolSpec], more: Json) -> list[JsonObject]:
    """The declared tools, with those of the options behind them or in their place. A name stands once."""
    extra = cast("list[JsonObject]", more) if isinstance(more, list) else []
    taken = {tool.get("name") for tool in extra}
    sent: list[JsonObject] = []
    for tool in sorted(tools, key=lambda one: wire_name(one.name) != one.name):
        if (name := wire_name(tool.name)) not in taken:
            taken.add(name)
            sent.append(_tool(tool, name))
    return [*sent, *extra]


def _tool(tool: ToolSpec, name: str) -> JsonObject:
    made: JsonObject = {"name": name}
    if tool.description:
        made["description"] = tool.description
    return {**made, "input_schema": {"type": "object", **tool.parameters}}


# --- the prompt cache ---------------------------------------------------------------------------------------------


def _set_breakpoints(request: JsonObject, ends: list[tuple[list[JsonObject], int]], mark: JsonObject) -> None:
    """Mark what the next request of the thread will have in common with this one, as far as the API allows.

    The most useful places first: what the user and the tools said last, the end of the system text, where the
    request before this one ended, the end of the tools. Breakpoints that stand in the options count.
    """
    left = _MOST_BREAKPOINTS - sum(1 for _ in _marked(request))
    places: list[tuple[list[JsonObject], int]] = []
    if "cache_control" not in request:
        places += ends[-1:]
    for name in ("system", "tools"):
        if isinstance(given := request.get(name), list):
            request[name] = blocks = [*cast("list[JsonObject]", given)]  # it may be the options' own
            if (at := _last_stable(blocks)) is not None:
                places.append((blocks, at))
        if name == "system":
            places += ends[:-1]
    for blocks, at in places:
        if left > 0 and "cache_control" not in blocks[at]:
            blocks[at] = {**blocks[at], "cache_control": mark}
            left -= 1


def _last_stable(blocks: list[JsonObject]) -> int | None:
    """The last block that may be marked: a tool that is loaded later may not."""
    return next((at for at in reversed(range(len(blocks))) if not blocks[at].get("defer_loading")), None)


def _marked(value: Json) -> Iterator[None]:
    """One for each breakpoint among the members that hold any."""
    request = cast("JsonObject", value)
    if request.get("cache_control"):
        yield
    for name in ("tools", "system", "messages"):
        for block in cast("list[Json]", request[name]) if isinstance(request.get(name), list) else []:
            fields = cast("JsonObject", block) if isinstance(block, dict) else {}
            inner = fields.get("content")
            for one in [fields, *(cast("list[Json]", inner) if isinstance(inner, list) else [])]:
                if isinstance(one, dict) and cast("JsonObject", one).get("cache_control"):
                    yield
