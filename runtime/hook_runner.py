"""Asking the hooks of one run: wait for each, write down what it decided, pass on what that makes of the case.

A hook is foreign code: what goes wrong in it is translated here, once, into a HookError that names the hook and
nothing else. A synchronous hook has a thread of the tools' limiter; one that does not end when the run is stopped is
abandoned and named, like a tool.
"""

from __future__ import annotations

import asyncio
import copy
import inspect
import logging
from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from typing import Any, cast

import orjson

from runtime import events as e
from runtime import samples as s
from runtime.canonical import Json, JsonObject, clean, clean_text, digest
from runtime.gate import Ruling
from runtime.hooks import (
    AFTER_ROUND,
    AFTER_TOOL,
    BEFORE_ROUND,
    BEFORE_TOOL,
    DECISIONS,
    AfterRound,
    AfterTool,
    Answer,
    BeforeRound,
    BeforeTool,
    ChangeArguments,
    ChangeRequest,
    Decision,
    Deny,
    Hook,
    HookContext,
    HookError,
    Occasion,
    ReplaceResult,
    Respond,
    StopRun,
    decided,
)
from runtime.items import Item
from runtime.parts import REFUSAL, TEXT
from runtime.scope import RunScope
from runtime.steps import Stop
from runtime.tools.context import ToolContext
from runtime.tools.execute import STOP_GRACE_S, Output, as_content
from runtime.tools.toolbox import InvalidArguments, Tool

log = logging.getLogger("agui_bridge.hooks")


class HookRunner:
    """The hooks of one run."""

    def __init__(self, scope: RunScope) -> None:
        self._scope = scope
        self._hooks = scope.agent.hooks_at
        self._context = HookContext(
            run=scope.run,
            principal=scope.request.principal,
            forwarded_props=scope.request.forwarded_props,
            deps=scope.agent.deps,
            stopped=scope.stopped,
        )

    def any_at(self, point: str) -> bool:
        """Whether there is a hook at this point."""
        return bool(self._hooks[point])

    # --- the four points ------------------------------------------------------------------------------------------

    async def before_round(
        self, number: int, items: list[Item], options: JsonObject
    ) -> tuple[list[Item], JsonObject] | None:
        """The history and the options with which the model is to be asked; None if a hook has settled the round: it
        stopped the run, or said itself what is said. Raises HookError, and what the journal raised."""
        for hook in self._hooks[BEFORE_ROUND]:
            usage, state = copy.deepcopy((self._scope.sampling.usage, self._scope.thread.state))
            dialect = self._scope.model.dialect.name
            asked = BeforeRound(self._context, number, tuple(items), copy.deepcopy(options), dialect, usage, state)
            decision = await self._decision(hook, asked, round=number)
            if isinstance(decision, StopRun):
                self._scope.sampling.end(Stop(decision.reason))
                return None
            if isinstance(decision, Respond):
                await self._say(hook, decision, items)
                return None
            if isinstance(decision, ChangeRequest):
                items = items if decision.items is None else list(decision.items)
                options = {**options, **clean(decision.options or {})}
        return items, options

    async def _say(self, hook: Hook, said: Respond, items: list[Item]) -> None:
        """A round that nobody was asked for."""
        scope = self._scope
        request: JsonObject = {"digest": digest([hook.name, scope.thread.position]), "items": len(items)}
        samples: list[s.Sample] = [s.TextDelta(clean_text(said.text))] if said.text else []
        samples += [
            s.ToolCallCommitted(f"{number}", name, orjson.dumps(clean(arguments)).decode(), "")
            for number, (name, arguments) in enumerate(said.calls)
        ]
        samples += [s.AssistantMessageDone(), s.Completed("tool_calls" if said.calls else "stop")]
        name = f"hook:{hook.name}"
        scope.log.emit(scope.sampling.round_started(name, request))
        committed = scope.sampling.feed(samples, model=name)
        scope.log.emit(committed)
        if self.any_at(AFTER_ROUND) and any(isinstance(event, e.RoundCompleted) for event in committed):
            await scope.log.flush()  # what a hook acts upon is a fact
            await self.after_commit(committed)

    async def after_commit(self, committed: Sequence[e.Event]) -> None:
        """Tell of the round among these events, which are facts by now; the run is stopped if a hook wants that. Raises
        HookError."""
        (completed,) = (event for event in committed if isinstance(event, e.RoundCompleted))
        calls = [event for event in committed if isinstance(event, e.ToolCallCommitted)]
        turn = self._scope.thread.turn
        parts = turn.parts if turn is not None else []
        said = [part.text for part in parts if part.round == completed.round and part.kind in (TEXT, REFUSAL)]
        reason = await self._after_round(completed, "".join(said), calls)
        if reason is not None:
            self._scope.sampling.end(Stop(reason))

    async def _after_round(
        self, completed: e.RoundCompleted, text: str, calls: list[e.ToolCallCommitted]
    ) -> str | None:
        for hook in self._hooks[AFTER_ROUND]:
            number, role, finish = completed.round, completed.runtime_role, completed.finish
            usage = copy.deepcopy(completed.usage)
            told = AfterRound(self._context, number, role, finish, text, tuple(calls), usage)
            decision = await self._decision(hook, told, round=number)
            if isinstance(decision, StopRun):
                return decision.reason
        return None

    async def before_tool(self, call: e.ToolCallCommitted, tool: Tool, arguments: JsonObject) -> Ruling:
        """What the hooks say of a call that may run otherwise. Raises HookError."""
        ruling = Ruling()
        for hook in self._hooks[BEFORE_TOOL]:
            used = arguments if ruling.parsed is None else ruling.parsed
            told = BeforeTool(self._context, call.tool_call_id, call.tool_name, copy.deepcopy(used))
            decision = await self._decision(hook, told, tool_call_id=call.tool_call_id)
            match decision:
                case Deny(message):
                    return Ruling(hook.name, denied=message)
                case Answer(result):
                    return Ruling(hook.name, answer=as_content(result))
                case StopRun(reason):
                    return Ruling(hook.name, stop=reason)
                case ChangeArguments(changed):
                    ruling = _changed(hook, tool, changed)
                case _:
                    pass
        return ruling

    async def after_tool(
        self, call: e.ToolCallCommitted, arguments: JsonObject, output: Output
    ) -> tuple[Output, str | None]:
        """The output that the model is to read, and why the run is to be stopped, if it is. Raises HookError."""
        for hook in self._hooks[AFTER_TOOL]:
            shown = copy.deepcopy(arguments)
            told = AfterTool(self._context, call.tool_call_id, call.tool_name, shown, output.result, output.is_error)
            decision = await self._decision(hook, told, tool_call_id=call.tool_call_id)
            if isinstance(decision, StopRun):
                return output, decision.reason
            if isinstance(decision, ReplaceResult):
                is_error = output.is_error if decision.is_error is None else decision.is_error
                output = Output(as_content(decision.result), is_error, "error" if is_error else "result")
        return output, None

    # --- the policy of a tool -------------------------------------------------------------------------------------

    async def needs_approval(self, tool: Tool, arguments: JsonObject, context: ToolContext) -> bool:
        """Whether somebody outside has to say that a call may run. Raises HookError."""
        if isinstance(tool.approval, bool):
            return tool.approval
        policy = partial(tool.approval, copy.deepcopy(arguments), context)
        said = await self._ask(f"policy:{tool.name}", policy, is_async=inspect.iscoroutinefunction(tool.approval))
        return bool(said)

    # --- documents ------------------------------------------------------------------------------------------------

    async def extract_text(self, media_type: str, data: bytes) -> str | None:
        """The text that the agent finds in a document; None if it finds none. Raises HookError."""
        extract = self._scope.agent.extract_text
        if extract is None:
            return None
        work = partial(extract, media_type, data)
        text = await self._ask("hook:extract_text", work, is_async=inspect.iscoroutinefunction(extract))
        return text if isinstance(text, str) else None

    # --- asking one -----------------------------------------------------------------------------------------------

    async def _decision(self, hook: Hook, occasion: Occasion, **where: Json) -> Decision | None:
        said = await self._ask(f"hook:{hook.name}", partial(hook.function, occasion), is_async=hook.is_async)
        if said is None:
            return None
        if not isinstance(said, DECISIONS[hook.point]):
            allowed = ", ".join(kind.__name__ for kind in DECISIONS[hook.point])
            raise HookError(
                f"The hook {hook.name} answered with a {type(said).__name__}; {hook.point} takes None, {allowed}."
            )
        self._scope.log.emit([decided(hook, said, **where)])
        return said

    async def _ask(self, name: str, work: Callable[[], object], *, is_async: bool) -> object:
        """What the agent's function returns. Raises HookError for whatever it raises."""
        threads = self._scope.threads
        job: asyncio.Future[object] = (
            asyncio.create_task(awaited(work), name=name)
            if is_async
            else await threads.start(partial(called, work), name)
        )
        try:
            await asyncio.wait({job})
        except asyncio.CancelledError:
            await threads.let_go(job, self._scope.run.run_id, name, STOP_GRACE_S)
            raise
        self._scope.require_wanted()
        error = asyncio.CancelledError() if job.cancelled() else job.exception()
        if error is not None:
            log.error("%s failed (run %s)", name, self._scope.run.run_id, exc_info=error)
            raise HookError(f"The {name.replace(':', ' ', 1)} failed; the server's log says why.") from error
        return job.result()


def _changed(hook: Hook, tool: Tool, arguments: Any) -> Ruling:
    parsed = clean(arguments)
    if not isinstance(parsed, dict):
        raise HookError(f"The hook {hook.name} gave arguments that are no JSON object.")
    try:
        return Ruling(hook.name, parsed=cast("JsonObject", parsed), arguments=tool.validate(cast("JsonObject", parsed)))
    except InvalidArguments as error:
        raise HookError(f"The hook {hook.name} gave {tool.name} arguments that do not fit: {error.message}") from error


async def awaited(work: Callable[[], object]) -> object:
    """What an agent's async function returns."""
    try:
        return await cast("Awaitable[object]", work())
    except SystemExit as error:
        # A task would pass it on to the event loop and end the server.
        raise RuntimeError("the hook tried to end the process") from error


def called(work: Callable[[], object]) -> object:
    """What an agent's synchronous function returns. Raises TypeError if it is an async one in disguise."""
    said = work()
    if inspect.iscoroutine(said):
        said.close()
        raise TypeError("it returned a coroutine; its function must be declared with `async def`")
    return said
