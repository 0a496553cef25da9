"""The committed calls of a round: judge them all, execute what may run, and give each its one output.

It waits for tools and hooks and decides nothing: the gate says what may run, the schedule in what order, `execute`
what a tool came to.
"""

from __future__ import annotations

import asyncio
import logging
from dataclasses import dataclass

import orjson

from runtime import events as e
from runtime.canonical import Json, JsonObject
from runtime.errors import InvalidInput, StoreError
from runtime.gate import HOOKS, Asked, Case, Verdict, judging
from runtime.hook_runner import HookRunner
from runtime.hooks import BEFORE_TOOL, HookError
from runtime.interrupts import Approval, Question, approval_in, approval_question, raised
from runtime.items import Content
from runtime.pause import sleeps
from runtime.schedule import batches
from runtime.scope import RunScope
from runtime.sessions import owner_of
from runtime.state_delta import PatchConflict, changes
from runtime.steps import Fail, Stop, Suspend
from runtime.tool_facts import UNFIT, ToolFacts
from runtime.tools.context import ToolContext
from runtime.tools.execute import Output, execute
from runtime.tools.toolbox import Tool

log = logging.getLogger("agui_bridge.tools")

_UNKEPT = "The tool ran, but the media in its result could not be stored."
_UNTOLD = "Cancelled: the tool ran, but the run was stopped before its result was told."
_AT_PROVIDER = "Approved; the model's provider runs it."
_OTHERS = "it would run with other arguments than those it was asked for"
_UNSEEN = "The tool ran, but the hook that looks at its result failed; the result is not shown."


@dataclass(frozen=True, slots=True)
class _Admitted:
    """A call that nobody denies. `used` are the arguments as JSON, `changed` says that they are not the model's; it
    `asks` if somebody has to say first that it may run, and `sleeps` until what it asks itself is answered."""

    call: e.ToolCallCommitted
    tool: Tool
    arguments: dict[str, object]
    used: JsonObject
    changed: bool
    asks: bool
    sleeps: bool = False

    @property
    def is_held(self) -> bool:
        return self.asks or self.sleeps


class ToolRunner:
    """Performs the calls of one run, round after round."""

    def __init__(self, scope: RunScope, hooks: HookRunner) -> None:
        self._scope = scope
        self._hooks = hooks
        self._raised: list[e.InterruptRaised] = []
        self._waits = False

    async def run(self, calls: list[e.ToolCallCommitted], affordable: int | None) -> None:
        """Give each of these calls its output; fewer if the run is to end. Raises HookError, StoreError."""
        verdicts: list[tuple[e.ToolCallCommitted, Verdict]] = []
        for number, call in enumerate(calls):  # all of a round are judged before any of them runs
            verdict = await self._judge(call, affordable is None or number < affordable)
            if verdict.stop is not None:
                self._scope.sampling.end(Stop(verdict.stop))
                return
            verdicts.append((call, verdict))
        self._raised, self._waits = [], False
        admitted = [one for call, verdict in verdicts if (one := self._admit(call, verdict)) is not None]
        for one in admitted:
            if one.asks:
                self._ask(one.call, 0, approval_question(one.tool.name, one.used, one.tool.spec.parameters))
        self._waits = self._waits or any(one.sleeps for one in admitted)
        for batch in batches(admitted, lambda one: one.tool.parallel, lambda one: one.is_held):
            await self._run_together(batch)
            if self._scope.sampling.is_over:
                return
            if self._waits and not batch[0].tool.parallel:
                break
        if self._waits:
            self._scope.sampling.end(Suspend(self._raised))

    def _ask(self, call: e.ToolCallCommitted, number: int, question: Question) -> None:
        """The call waits for an answer to this; it is asked again only if it was not asked before."""
        self._waits = True
        known = self._scope.thread.calls[call.tool_call_id]
        if all(ask.raised.number != number for ask in known.asks):
            id_, now = self._scope.mint("int"), self._scope.clock.now()
            self._raised.append(raised(question, number, interrupt_id=id_, now=now, call=call))

    # --- the gate -------------------------------------------------------------------------------------------------

    async def _judge(self, call: e.ToolCallCommitted, affordable: bool) -> Verdict:
        scope = self._scope
        has_hooks = self._hooks.any_at(BEFORE_TOOL)
        offered = [one.name for one in scope.output.tools()] if scope.output is not None else []
        at_provider = call.target == e.PROVIDER
        case = Case(call, scope.agent.toolbox, scope.client_tools, affordable, has_hooks, at_provider, offered=offered)
        judgement = judging(case)
        try:
            while True:
                wanted = next(judgement)
                assert case.used is not None, "whoever is asked stands behind the arguments"
                if wanted == HOOKS:
                    assert case.tool is not None, "hooks are asked about tools of ours"
                    case.ruling = await self._hooks.before_tool(call, case.tool, case.used)
                else:
                    case.asked = await self._approval(call, case.tool, case.used)
        except StopIteration as end:
            return end.value

    async def _approval(self, call: e.ToolCallCommitted, tool: Tool | None, used: JsonObject) -> Asked:
        """Whether the call needs an approval, and what was said; without a tool of ours it does. Raises HookError."""
        thread = self._scope.thread
        for ask in thread.calls[call.tool_call_id].asks:
            if ask.raised.number == 0:
                answer = thread.answers.get(ask.id)
                if answer is None:
                    return Asked(needed=True)
                approval = approval_in(answer.event)
                if approval.approved and (ask.raised.metadata or {}).get("args") != used:
                    approval = Approval(approved=False, reason=_OTHERS)
                return Asked(needed=True, approval=approval)
        if tool is None:
            return Asked(needed=True)
        return Asked(await self._hooks.needs_approval(tool, used, self._context(call, self._scope.thread.state)))

    def _admit(self, call: e.ToolCallCommitted, verdict: Verdict) -> _Admitted | None:
        """The call if nobody denies it; else its output is told."""
        tool = self._scope.agent.toolbox.get(call.tool_name)
        if call.target == e.PROVIDER and verdict.used is not None and verdict.message is None:
            if verdict.asks:
                self._ask(call, 0, approval_question(call.tool_name, verdict.used, None))
            else:
                self._tell(call, _AT_PROVIDER, "answered")
        elif verdict.answer is not None:
            self._tell(call, verdict.answer, "answered")
        elif tool is None or verdict.arguments is None or verdict.used is None:
            self._tell(call, verdict.message or "Refused.", "denied")
        else:
            thread = self._scope.thread
            asleep = sleeps(thread, thread.calls[call.tool_call_id])
            return _Admitted(call, tool, verdict.arguments, verdict.used, verdict.changed, verdict.asks, asleep)
        return None

    def _tell(self, call: e.ToolCallCommitted, result: Content, kind: str) -> None:
        self._scope.log.emit(self._scope.sampling.tool_output(call.tool_call_id, result, kind))

    # --- executing ------------------------------------------------------------------------------------------------

    async def _run_together(self, batch: list[_Admitted]) -> None:
        started = [
            e.ToolExecutionStarted(
                one.call.tool_call_id, one.call.tool_name, self._idempotency_key(one.call), one.tool.streams or None
            )
            for one in batch
        ]
        self._scope.log.emit(started)
        await self._scope.log.flush()  # nothing is executed that the journal does not know of
        async with asyncio.TaskGroup() as group:
            tasks: list[asyncio.Task[None]] = []
            tasks += [group.create_task(self._run_one(one, tasks)) for one in batch]

    async def _run_one(self, one: _Admitted, together: list[asyncio.Task[None]]) -> None:
        await self._execute(one)
        if self._scope.sampling.is_over:  # a hook wants no more of it
            for task in together:
                if task is not asyncio.current_task():
                    task.cancel()

    async def _execute(self, one: _Admitted) -> None:
        scope, call = self._scope, one.call
        facts_of_call = ToolFacts(scope, scope.shelf, call, may_ask=not one.tool.parallel)
        context = self._context(call, scope.thread.state, facts_of_call)
        try:
            output = await execute(one.tool, one.arguments, context, scope.threads)
        finally:
            mistake = facts_of_call.close()
        if facts_of_call.is_suspended:  # however its function ended: it will be called again from its top
            self._waits = True
            for number, question in facts_of_call.asks:
                self._ask(call, number, question)
            return
        if mistake is not None and output.kind == "result":
            output = Output(mistake, True, "error")
        changed = one.tool.wants_context and output.kind == "result"
        result, kind = output.result, output.kind
        try:
            seen, stop = await self._hooks.after_tool(call, one.used, output)
            result, kind = await self._kept(seen)
            if stop is not None:
                scope.sampling.end(Stop(stop))
        except HookError as error:
            result, kind = _UNSEEN, "error"
            scope.sampling.end(Fail(error))
        except asyncio.CancelledError:
            self._tell(call, _UNTOLD, "cancelled")
            raise
        facts: list[e.Event] = []
        if changed:
            try:  # another call of its batch may have been quicker
                facts += changes(scope.thread.state, context.told_state, context.settled_state)
            except (PatchConflict, RecursionError):
                result, kind = UNFIT, "error"
        if one.changed:
            result = with_arguments(result, one.used)
        scope.log.emit([*facts, *scope.sampling.tool_output(call.tool_call_id, result, kind)])

    async def _kept(self, output: Output) -> tuple[Content, str]:
        """The output as it is told: large media are kept, and it refers to them."""
        scope = self._scope
        try:
            owner = owner_of(scope.request.principal)
            return await scope.media.kept(owner, scope.run.thread_id, output.result), output.kind
        except (StoreError, InvalidInput) as error:
            log.warning("the media of a result of %s could not be kept: %s", scope.run.run_id, error)
            return _UNKEPT, "error"

    def _context(self, call: e.ToolCallCommitted, state: Json, facts: ToolFacts | None = None) -> ToolContext:
        scope = self._scope
        return ToolContext(
            state=state,
            deps=scope.agent.deps,
            idempotency_key=self._idempotency_key(call),
            tool_call_id=call.tool_call_id,
            principal=scope.request.principal,
            forwarded_props=scope.request.forwarded_props,
            run=scope.run,
            cancelled=scope.stopped,
            surroundings=facts,
            state_type=scope.agent.shared_state,
        )

    def _idempotency_key(self, call: e.ToolCallCommitted) -> str:
        return f"{self._scope.run.run_id}:{call.tool_call_id}"


def with_arguments(result: Content, arguments: JsonObject) -> Content:
    """An output that begins with the arguments with which the call really ran: the history keeps the model's own."""
    said = f"Ran with other arguments: {orjson.dumps(arguments).decode()}"
    if isinstance(result, str):
        return f"{said}\n{result}" if result else said
    return [{"type": "text", "text": said}, *result]
