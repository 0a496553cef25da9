"""The engine: performs one run. The only file where sampling, model, tools and journal meet.

It waits and decides nothing: the loop says what to do next, the gate what may run, the schedule in what order, and
`ending` how a run ends. Above it stands the supervisor, which began the run and may ask it to stop.

A stop is settled here and nowhere else: the model stream and the tools are cancelled, waited for, and then exactly
one terminal event is committed, outside of what was cancelled.
"""

from __future__ import annotations

import asyncio
import copy
import logging
import threading
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from runtime import events as e
from runtime.agent import Agent
from runtime.canonical import Json, JsonObject, clean, digest
from runtime.ending import ending
from runtime.errors import AguiBridgeError, ProviderError
from runtime.gate import judge
from runtime.items import Item, ToolSpec
from runtime.models import Model
from runtime.prompt import instructions
from runtime.request import RunRequest
from runtime.run import RunRecord
from runtime.run_log import RunLog
from runtime.sampling import Sampling
from runtime.schedule import batches
from runtime.state_delta import PatchConflict, change, merge
from runtime.steps import CallModel, Fail, RunTools, Stop, Succeed
from runtime.system import Clock, Mint
from runtime.thread import Thread
from runtime.tools.context import ToolContext
from runtime.tools.execute import ThreadLimiter, execute
from runtime.tools.toolbox import Tool

log = logging.getLogger("agui_bridge.engine")

MOST_WAIT_S = 60.0
"""The longest wait that a provider may ask for before a retry; beyond it the round fails: somebody is watching."""


@dataclass(frozen=True, slots=True)
class Limits:
    """What one run may use, and how patient it is. Times in seconds."""

    max_rounds: int = 50
    model_retries: int = 2
    retry_backoff_s: float = 0.5
    stop_grace_s: float = 5.0
    max_uncommitted: int = 64


class Engine:
    """One run from its first step to its terminal event. `drive` is awaited once."""

    def __init__(
        self,
        *,
        run: RunRecord,
        request: RunRequest,
        agent: Agent,
        model: Model,
        thread: Thread,
        run_log: RunLog,
        clock: Clock,
        mint: Mint,
        threads: ThreadLimiter,
        limits: Limits,
    ) -> None:
        self._run = run
        self._request = request
        self._agent = agent
        self._model = model
        self._thread = thread
        self._log = run_log
        run_log.on_failure = self._halt
        self._clock = clock
        self._mint = mint
        self._threads = threads
        self._limits = limits
        self._client_tools = {tool.name: tool for tool in request.client_tools if tool.name not in agent.toolbox.names}
        self._sampling = Sampling(
            message_id=mint("msg"),
            provider=model.provider,
            target=self._target,
            taken=set(thread.calls),
            mint=mint,
            budget=agent.budget.with_rounds(limits.max_rounds),
            elapsed=lambda: (clock.now() - run.created_at) / 1000,
        )
        self._work: asyncio.Task[e.Event] | None = None
        self._stop: Callable[[], e.Event] | None = None
        self._stopped = threading.Event()
        self._given_up = asyncio.Event()

    # --- a stop ---------------------------------------------------------------------------------------------------

    def cancel(self, reason: str) -> None:
        """Stop on purpose: the run ends as cancelled. Comes to nothing if it is over or being stopped already."""
        if self._stoppable():
            self._stop = lambda: self._cancellation(reason)
            self._log.emit([e.RunCancelling(reason)])
            self._halt()

    def interrupt(self, reason: str) -> None:
        """Give up the executor (shutdown): the run ends as interrupted."""
        if self._stoppable():
            self._stop = lambda: e.RunInterrupted(reason)
            self._halt()

    def _stoppable(self) -> bool:
        return self._stop is None and (self._work is None or not self._work.done())

    def _halt(self) -> None:
        self._stopped.set()
        if self._work is not None and not self._work.done():
            self._work.cancel()
            asyncio.get_running_loop().call_later(self._limits.stop_grace_s, self._given_up.set)

    def _cancellation(self, reason: str) -> e.Event:
        abandoned = self._abandoned()
        confirmed = not abandoned and (self._work is None or self._work.done() or self._stop is None)
        return e.RunCancelled(reason, confirmed, abandoned or None, self._usage())

    def _abandoned(self) -> list[str]:
        """The calls of this run that may still be at work: in a thread, or in a task that would not end."""
        return self._threads.abandoned_by(self._run.run_id)

    # --- the run --------------------------------------------------------------------------------------------------

    async def drive(self) -> None:
        """Perform the run and commit its terminal event. Raises what the journal raised if that failed."""
        if not self._stopped.is_set():  # it may have been stopped before it began
            self._work = asyncio.create_task(self._perform(), name=f"run {self._run.run_id}")
            await self._until_over_or_given_up(self._work)
        self._log.check()
        self._log.end(ending(self._thread.turn, self._terminal()))
        await self._log.flush()

    async def _until_over_or_given_up(self, work: asyncio.Task[e.Event]) -> None:
        patience = asyncio.create_task(self._given_up.wait())
        try:
            await asyncio.wait({work, patience}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            work.cancel()
            raise
        finally:
            patience.cancel()

    def _terminal(self) -> e.Event:
        if self._stop is not None:
            return self._stop()
        if self._work is None or not self._work.done() or self._work.cancelled():
            log.error("run %s was cancelled from within, by its model or a library", self._run.run_id)
            return self._failed_on_a_bug()
        return self._work.result()

    def _failed_on_a_bug(self) -> e.Event:
        return e.RunFailed(AguiBridgeError("The server failed; its log says why.").as_payload(), self._usage())

    async def _perform(self) -> e.Event:
        try:
            self._log.emit(self._sampling.start())
            while True:
                self._require_wanted()
                match self._sampling.next():
                    case CallModel():
                        await self._call_model()
                    case RunTools(calls, affordable):
                        await self._run_tools(calls, affordable)
                    case Succeed(pending):
                        return e.RunCompleted(self._sampling.message_id, pending or None, self._usage())
                    case Fail(error):
                        return e.RunFailed(error.as_payload(), self._usage())
                    case Stop(reason):
                        self._log.emit([e.RunCancelling(reason)])
                        return self._cancellation(reason)
        except AguiBridgeError as error:
            await self._log.flush()  # an error of the journal itself is raised again here
            return e.RunFailed(error.as_payload(), self._usage())
        except Exception:
            log.exception("run %s failed on a bug", self._run.run_id)
            return self._failed_on_a_bug()

    def _require_wanted(self) -> None:
        """A model or a library may have swallowed the cancellation: then it is raised again here."""
        if self._stopped.is_set():
            raise asyncio.CancelledError

    def _usage(self) -> list[JsonObject] | None:
        return self._sampling.usage or None

    def _target(self, name: str) -> str:
        if name in self._agent.toolbox.names:
            return "server"
        return "client" if name in self._client_tools else "nobody"

    # --- a round --------------------------------------------------------------------------------------------------

    async def _call_model(self) -> None:
        if self._sampling.rounds:  # the prompt is made of facts; those of the first came with the request
            await self._log.flush()
        tools = [*self._agent.toolbox.specs(), *self._client_tools.values()]
        items = self._items()
        request = self._model.dialect.encode(items, tools, self._options())
        reference = {"digest": digest(request), "items": len(items)}
        self._log.emit(self._sampling.round_started(self._model.name, reference))
        attempt = 1
        while True:
            try:
                await self._attempt(request, tools, attempt)
                return
            except ProviderError as error:
                self._require_wanted()
                wait_s = max(error.retry_after_s or 0.0, self._limits.retry_backoff_s * 2 ** (attempt - 1))
                retry = error.retryable and not self._sampling.has_shown_something and wait_s <= MOST_WAIT_S
                if not retry or attempt > self._limits.model_retries:
                    self._sampling.round_failed(error)
                    return
                await self._clock.sleep(wait_s)
                attempt += 1

    async def _attempt(self, request: JsonObject, tools: list[ToolSpec], attempt: int) -> None:
        decoder = self._model.dialect.decoder([tool.name for tool in tools])
        name = self._model.name
        async with _closing(self._model.stream(request)) as chunks:
            async for chunk in chunks:
                self._require_wanted()
                if samples := decoder.feed(chunk):
                    silent = not self._sampling.has_shown_something
                    self._log.emit(self._sampling.feed(samples, attempt, name))
                    if silent and self._sampling.has_shown_something:
                        await self._log.flush()  # the first word goes out before others are made
                    elif self._log.crowded:
                        await self._log.room()
        self._log.emit(self._sampling.feed(decoder.finish(), attempt, name))

    def _items(self) -> list[Item]:
        """The history as the model is shown it."""
        policy = self._agent.history_policy
        items = self._thread.items()
        return items if policy is None else list(policy(items))

    def _options(self) -> JsonObject:
        return {
            "model": self._model.name,
            "instructions": instructions(self._agent.instructions, self._request.context),
            **self._agent.model_options,
            **self._request.options,
        }

    # --- tools ----------------------------------------------------------------------------------------------------

    async def _run_tools(self, calls: list[e.ToolCallCommitted], affordable: int | None) -> None:
        allowed: list[tuple[e.ToolCallCommitted, Tool, dict[str, object]]] = []
        for number, call in enumerate(calls):
            within = affordable is None or number < affordable
            verdict = judge(call, self._agent.toolbox, self._client_tools, affordable=within)
            tool = self._agent.toolbox.get(call.tool_name)
            if tool is None or verdict.arguments is None or not verdict.allowed:
                self._log.emit(self._sampling.tool_output(call.tool_call_id, verdict.message or "Refused.", "denied"))
            else:
                allowed.append((call, tool, verdict.arguments))
        for batch in batches(allowed, lambda one: one[1].parallel):
            self._log.emit(
                [e.ToolExecutionStarted(c.tool_call_id, c.tool_name, self._idempotency_key(c)) for c, _, _ in batch]
            )
            await self._log.flush()  # nothing is executed that the journal does not know of
            async with asyncio.TaskGroup() as group:
                for call, tool, arguments in batch:
                    group.create_task(self._execute(call, tool, arguments))

    async def _execute(self, call: e.ToolCallCommitted, tool: Tool, arguments: dict[str, object]) -> None:
        before = copy.deepcopy(self._thread.state) if tool.wants_context else None
        context = self._context(call, copy.deepcopy(before))
        output = await execute(tool, arguments, context, self._threads)
        facts: list[e.Event] = []
        result, kind = output.result, output.kind
        if tool.wants_context and kind == "result":
            try:
                facts = self._state_change(before, context.state)
            except (PatchConflict, RecursionError):
                result, kind = (
                    "What this call made of the shared state does not fit into it; the state is as it was.",
                    "error",
                )
        self._log.emit([*facts, *self._sampling.tool_output(call.tool_call_id, result, kind)])

    def _state_change(self, before: Json, after: Json) -> list[e.Event]:
        """What the call did to the state, carried over to the state as it is now: another of its batch may have been
        quicker. Raises PatchConflict."""
        now = self._thread.state
        fact = change(now, merge(before, now, clean(after)))
        return [fact] if fact is not None else []

    def _context(self, call: e.ToolCallCommitted, state: Json) -> ToolContext:
        return ToolContext(
            state=state,
            deps=self._agent.deps,
            idempotency_key=self._idempotency_key(call),
            tool_call_id=call.tool_call_id,
            principal=self._request.principal,
            forwarded_props=self._request.forwarded_props,
            run=self._run,
            cancelled=self._stopped,
        )

    def _idempotency_key(self, call: e.ToolCallCommitted) -> str:
        return f"{self._run.run_id}:{call.tool_call_id}"


@asynccontextmanager
async def _closing(stream: AsyncGenerator[JsonObject, None]) -> AsyncGenerator[AsyncGenerator[JsonObject, None], None]:
    """Close a model's stream in any case; that it could not be closed well changes nothing for the run."""
    try:
        yield stream
    finally:
        try:
            await stream.aclose()
        except Exception:
            log.exception("a model's stream could not be closed")
