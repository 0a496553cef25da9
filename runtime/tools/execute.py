"""Executing one call: run the tool, wait for it within its time, and turn whatever comes of it into an output.

A tool is foreign code: its exceptions are translated here, once, into something that the model can read. Nothing that
it does ends the run, and nothing but the run's own cancellation leaves `execute` as an exception. It knows nothing of
the journal, of what becomes of a changed state or of whether the call was allowed.

A generator is read to its end. Whatever it yields is told as progress, because nobody knows yet whether more follows;
what came last is the output.
"""

from __future__ import annotations

import asyncio
import inspect
import logging
import traceback
from collections.abc import AsyncGenerator, Awaitable, Generator
from contextlib import aclosing, closing
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeGuard, cast

import orjson

from runtime.canonical import Json, JsonObject, clean, clean_text
from runtime.interrupts import Suspended
from runtime.items import Content
from runtime.state_type import StateMisfit
from runtime.tools.context import ToolContext
from runtime.tools.threads import ThreadLimiter
from runtime.tools.toolbox import Tool, ToolError

STOP_GRACE_S = 0.5
"""How long a tool that was told to stop is waited for before it is abandoned."""
MAX_FAILURE_LENGTH = 2000
SUSPENDED = "suspended"
"""The kind of no output: the tool waits for somebody outside."""

_log = logging.getLogger("agui_bridge.tools")

Job: TypeAlias = "asyncio.Future[Content]"
"""The task of an async tool, or the future of a sync tool's thread."""


@dataclass(frozen=True, slots=True)
class Output:
    """What a call came to. `kind` is one of `events.OUTPUT_KINDS`, here `result` or `error`, or `SUSPENDED`."""

    result: Content
    is_error: bool
    kind: str


async def execute(
    tool: Tool,
    arguments: dict[str, object],
    context: ToolContext,
    threads: ThreadLimiter,
    *,
    grace_s: float = STOP_GRACE_S,
) -> Output:
    """Call the tool with validated arguments and return its output, an error output if it fails or times out.

    The time limit counts from when the tool begins, not while it waits for a thread. When the caller is cancelled,
    the tool is told to stop (`context.cancelled`; an async tool is cancelled) and CancelledError is raised again. A
    tool that is still at work `grace_s` seconds after being told is abandoned: until it ends, `threads.abandoned`
    has its call.
    """
    job = await _start(tool, arguments, context, threads)
    try:
        await asyncio.wait({job}, timeout=tool.timeout_s)
    except asyncio.CancelledError:
        await _stop(job, context, threads, grace_s)
        raise
    if job.done():
        return _output(job, tool, context)
    await _stop(job, context, threads, grace_s)
    _log.warning("tool %s timed out after %g s (call %s)", tool.name, tool.timeout_s, context.tool_call_id)
    doubt = "" if job.done() else "; it may still be at work"
    return _error(f"timed out after {tool.timeout_s:g} s{doubt}")


async def _start(tool: Tool, arguments: dict[str, object], context: ToolContext, threads: ThreadLimiter) -> Job:
    keywords = tool.keywords(arguments, context)
    if tool.is_async:
        return asyncio.create_task(_call_async(tool, keywords, context), name=f"tool {tool.name}")
    return await threads.start(partial(_call_sync, tool, keywords, context), f"tool {tool.name}")


async def _call_async(tool: Tool, keywords: dict[str, object], context: ToolContext) -> Content:
    try:
        if tool.streams:
            value = await _last_of(cast("AsyncGenerator[object]", tool.function(**keywords)), context)
        else:
            value = await cast("Awaitable[object]", tool.function(**keywords))
        return _made(value, context)
    except SystemExit as error:
        # A task would pass it on to the event loop and end the server.
        raise RuntimeError("the tool tried to end the process") from error


async def _last_of(yielded: AsyncGenerator[object], context: ToolContext) -> object:
    last: object = None
    async with aclosing(yielded):
        async for last in yielded:
            _tell(last, context)
    return last


def _call_sync(tool: Tool, keywords: dict[str, object], context: ToolContext) -> Content:
    if tool.streams:
        return _made(
            _last_of_sync(cast("Generator[object, None, object]", tool.function(**keywords)), context), context
        )
    value = tool.function(**keywords)
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("the tool returned a coroutine; its function must be declared with `async def`")
    return _made(value, context)


def _made(value: object, context: ToolContext) -> Content:
    """What the function has made, told while it still counts as the tool's work: its values are foreign code, too."""
    content = as_content(value)
    context.settle()
    return content


def _last_of_sync(yielded: Generator[object, None, object], context: ToolContext) -> object:
    last: object = None
    with closing(_returning_nothing(yielded)) as values:
        for last in values:
            _tell(last, context)
    return last


def _returning_nothing(yielded: Generator[object, None, object]) -> Generator[object]:
    returned = yield from yielded
    if returned is not None:
        raise TypeError("the tool yields and returns a value; its output is what it yields last")


def _tell(value: object, context: ToolContext) -> None:
    """A generator that nobody waits for any more goes no further, be it that it swallowed its cancellation: it is
    closed where it yielded, and what it has shown is no output."""
    if context.cancelled:
        raise ToolError("The call was stopped.")
    context.tell_progress(value)


async def _stop(job: Job, context: ToolContext, threads: ThreadLimiter, grace_s: float) -> None:
    context.request_stop()
    await threads.let_go(job, context.run.run_id, context.tool_call_id, grace_s)


# --- what came of it ----------------------------------------------------------------------------------------------


def _output(job: Job, tool: Tool, context: ToolContext) -> Output:
    if job.cancelled():
        _log.warning("tool %s cancelled itself (call %s)", tool.name, context.tool_call_id)
        return _error("the tool cancelled itself")
    error = job.exception()
    if error is None:
        return Output(job.result(), False, "result")
    if isinstance(error, Suspended):
        return Output("", False, SUSPENDED)
    if isinstance(error, ToolError | StateMisfit):
        return _error(error.message)
    _log.warning("tool %s failed (call %s)", tool.name, context.tool_call_id, exc_info=error)
    return _error(_told(error))


def _error(message: str) -> Output:
    return Output(clean_text(message), True, "error")


def _told(error: BaseException) -> str:
    """The exception's type and text. Formatted by `traceback`, which survives an exception that cannot be printed."""
    text = "".join(traceback.format_exception_only(type(error), error)).strip()
    text = text.removeprefix(f"{type(error).__module__}.")
    return text if len(text) <= MAX_FAILURE_LENGTH else text[: MAX_FAILURE_LENGTH - 1] + "…"


def as_content(value: object) -> Content:
    """What a tool returned, as the model reads it: text, or content parts if the value is a list of them.

    None is "", and a value whose JSON is a string (a date, an enum member) is that text; others are JSON text.
    """
    if value is None:
        return ""
    cleaned = clean(value)
    if isinstance(cleaned, str) or _are_parts(cleaned):
        return cleaned
    return orjson.dumps(cleaned).decode()


# --- content parts ------------------------------------------------------------------------------------------------

_SOURCES: dict[str, tuple[frozenset[str], frozenset[str]]] = {
    "data": (frozenset({"value", "mime_type"}), frozenset()),
    "url": (frozenset({"value"}), frozenset({"mime_type"})),
    "file": (frozenset({"value"}), frozenset({"provider", "mime_type"})),
}
"""Required and optional members of a part's source, all of them text."""
_MEDIA = frozenset({"image", "audio", "video", "document"})
_COMMON = frozenset({"type", "id", "metadata"})


def _are_parts(value: Json) -> TypeGuard[list[JsonObject]]:
    """Whether this is a list of content parts as `items` has them; an empty one is just an empty list."""
    if not isinstance(value, list) or not value:
        return False
    return all(_is_part(item) for item in cast("list[Json]", value))


def _is_part(value: Json) -> bool:
    if not isinstance(value, dict):
        return False
    part = cast("JsonObject", value)
    if not isinstance(part.get("id", ""), str):
        return False
    own = part.keys() - _COMMON
    if part.get("type") == "text":
        return own == {"text"} and isinstance(part["text"], str)
    return part.get("type") in _MEDIA and own == {"source"} and _is_source(part["source"])


def _is_source(value: Json) -> bool:
    if not isinstance(value, dict):
        return False
    source = cast("dict[str, Any]", value)
    required, optional = _SOURCES.get(str(source.get("type")), (frozenset({""}), frozenset[str]()))
    members = source.keys() - {"type"}
    return required <= members <= required | optional and all(isinstance(source[name], str) for name in members)
