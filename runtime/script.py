"""What the scripted model says: a pure function from a Chat Completions request to a list of steps.

It has no memory: everything follows from the last user message and the rounds since then. So a run of it can be
repeated, restarted or replayed and says the same again.

- `/tokens N [delay_ms]`: N text deltas `tok `, each after the delay.
- `/fail K`: a provider failure after K deltas.
- `/script JSON`: `{"rounds": [{"reasoning"?, "text"?, "tool_calls"?: [{"name", "arguments"}], "fail"?, "finish"?,
  "delay_ms"?}, …]}`; round n after that message plays entry n, past the end it answers "done". `fail: K` fails the
  round after K deltas. Text streams word by word, arguments in pieces.
- Anything else is answered by `phrases`, a function of the words and the round; without one, by an echo.

A command that cannot be read is answered with what is wrong with it.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TypeAlias, cast

import orjson

from runtime.canonical import Json, JsonObject
from runtime.items import REJECTED

PIECE = 12
"""Characters of argument text in one delta."""


@dataclass(frozen=True, slots=True)
class Say:
    """One chunk of the response, after `delay_ms`."""

    chunk: JsonObject
    delay_ms: int = 0


@dataclass(frozen=True, slots=True)
class Break:
    """The provider fails here."""

    after: int


_MOST = 10_000_000

_USAGE = {
    "tokens": "Say /tokens N or /tokens N DELAY_MS, for example /tokens 50 20.",
    "fail": "Say /fail K, for example /fail 3: the provider then fails after three deltas.",
}

Step: TypeAlias = Say | Break

Phrases: TypeAlias = Callable[[str, int, frozenset[str]], "JsonObject | None"]
"""`(words, round, tool names) -> entry of a script, or None`."""


def script(request: JsonObject, phrases: Phrases | None = None) -> Iterator[Step]:
    """The response to a request, step by step."""
    words, round_ = _asked(request)
    prompt_tokens = sum(len(str(message.get("content") or "").split()) for message in request["messages"])
    if (tokens := re.fullmatch(r"/tokens\s+(\d{1,7})(?:\s+(\d{1,7}))?", words)) is not None:
        return _tokens(int(tokens[1]), int(tokens[2] or 0), prompt_tokens)
    return _entry(_entry_for(words, round_, request, phrases), prompt_tokens)


def _asked(request: JsonObject) -> tuple[str, int]:
    """The last user message's text, and the number of this round since then, from 1."""
    rounds = 1
    for message in reversed(cast("list[JsonObject]", request["messages"])):
        if message["role"] == "user":
            words = _text(message["content"]).strip()
            if not words.startswith(REJECTED):  # no user said that: the round is one more of the same turn
                return words, rounds
        rounds += message["role"] == "assistant"
    return "", rounds


def _text(content: Json) -> str:
    if isinstance(content, str):
        return content
    return "".join(part.get("text", "") for part in cast("list[JsonObject]", content))


def _entry_for(words: str, round_: int, request: JsonObject, phrases: Phrases | None) -> JsonObject:
    if (fail := re.fullmatch(r"/fail\s+(\d{1,7})", words)) is not None:
        return {"text": "tok " * (int(fail[1]) + 1), "fail": int(fail[1])}
    if (command := re.match(r"/(tokens|fail|script)\b", words)) is not None:
        if command[1] == "script":
            return _scripted(words.removeprefix("/script").strip(), round_)
        return {"text": _USAGE[command[1]]}
    names = frozenset(tool["function"]["name"] for tool in request.get("tools", []))
    entry = phrases(words, round_, names) if phrases else None
    return entry or {"text": f"You said: {words}" if words else "I am listening."}


def _scripted(text: str, round_: int) -> JsonObject:
    try:
        rounds = _rounds(orjson.loads(text))
    except ValueError as problem:
        return {"text": f'A script is {{"rounds": [{{"text": "…"}}, …]}}; this one cannot be read: {problem}'}
    return rounds[round_ - 1] if round_ <= len(rounds) else {"text": "done"}


def _rounds(document: Json) -> list[JsonObject]:
    """The entries of a script, all of them checked. Raises ValueError."""
    rounds: Json = cast("JsonObject", document).get("rounds") if isinstance(document, dict) else None
    if not isinstance(rounds, list):
        raise ValueError("it has no list of rounds")  # noqa: TRY004  told to a person as text
    entries = cast("list[Json]", rounds)
    for number, entry in enumerate(entries, 1):
        if (complaint := _complaint(entry)) is not None:
            raise ValueError(f"round {number}: {complaint}")
    return entries


def _complaint(entry: Json) -> str | None:
    if not isinstance(entry, dict):
        return "it is no object"
    for name, value in cast("JsonObject", entry).items():
        if name not in _ENTRY:
            return f"there is no {name!r}, only {', '.join(_ENTRY)}"
        expected, fits = _ENTRY[name]
        if value is not None and not fits(value):
            return f"{name} must be {expected}"
    return None


def _is_text(value: Json) -> bool:
    return isinstance(value, str)


def _is_count(value: Json) -> bool:
    return isinstance(value, int) and 0 <= value <= _MOST


def _are_calls(value: Json) -> bool:
    return isinstance(value, list) and all(
        isinstance(call, dict) and isinstance(cast("JsonObject", call).get("name"), str)
        for call in cast("list[Json]", value)
    )


_ENTRY: dict[str, tuple[str, Callable[[Json], bool]]] = {
    "reasoning": ("text", _is_text),
    "text": ("text", _is_text),
    "tool_calls": ('a list of {"name", "arguments"}', _are_calls),
    "fail": ("a number of deltas", _is_count),
    "finish": ("text", _is_text),
    "delay_ms": ("a number of milliseconds", _is_count),
}
"""What an entry of a script may hold: how that is called, and whether a value is it."""


def _tokens(count: int, delay_ms: int, prompt_tokens: int) -> Iterator[Step]:
    chunk = _chunk({"content": "tok "})
    for _ in range(count):
        yield Say(chunk, delay_ms)
    yield from _end("stop", prompt_tokens, count)


def _entry(entry: JsonObject, prompt_tokens: int) -> Iterator[Step]:
    delay_ms = int(entry.get("delay_ms") or 0)
    fail_after = entry.get("fail")
    deltas = list(_deltas(entry))
    count = 0
    for delta in deltas:
        if fail_after is not None and fail_after is not False and count >= int(fail_after):
            break
        count += 1
        yield Say(_chunk(delta), delay_ms)
    if fail_after is not None and fail_after is not False:
        yield Break(count)
        return
    calls = entry.get("tool_calls")
    yield from _end(entry.get("finish") or ("tool_calls" if calls else "stop"), prompt_tokens, count)


def _deltas(entry: JsonObject) -> Iterator[JsonObject]:
    for word in _words(entry.get("reasoning") or ""):
        yield {"reasoning_content": word}
    for word in _words(entry.get("text") or ""):
        yield {"content": word}
    for index, call in enumerate(entry.get("tool_calls") or []):
        arguments = call.get("arguments", {})
        text = arguments if isinstance(arguments, str) else orjson.dumps(arguments).decode()
        head = {"index": index, "id": f"call_{index + 1}", "type": "function"}
        yield {"tool_calls": [{**head, "function": {"name": call.get("name", ""), "arguments": ""}}]}
        for at in range(0, len(text), PIECE):
            yield {"tool_calls": [{"index": index, "function": {"arguments": text[at : at + PIECE]}}]}


def _words(text: str) -> list[str]:
    """The text in pieces of a word and the white space behind it; joined they are the text."""
    return re.findall(r"\s*\S+\s*|\s+", text)


def _chunk(delta: JsonObject) -> JsonObject:
    return {"object": "chat.completion.chunk", "choices": [{"index": 0, "delta": delta, "finish_reason": None}]}


def _end(finish: str, prompt_tokens: int, completion_tokens: int) -> Iterator[Step]:
    usage = {
        "prompt_tokens": prompt_tokens,
        "completion_tokens": completion_tokens,
        "total_tokens": prompt_tokens + completion_tokens,
    }
    yield Say({"choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    yield Say({"choices": [], "usage": usage})
