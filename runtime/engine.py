"""The engine: performs one run. The only file where sampling, model, tools, hooks and journal meet.

It waits and decides nothing: the loop says what to do next, and `ending` how a run ends. Asking the model has a room
of its own (`model_call`), and so have executors, which are asked in its place (`executor_call`), the tools
(`tool_runner`) and the hooks (`hook_runner`). Above it stands the supervisor, which began the run and may ask it to
stop.

A stop is settled here and nowhere else: the model stream and the tools are cancelled, waited for, and then exactly
one terminal event is committed, outside of what was cancelled.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from runtime import events as e
from runtime.agent import Agent
from runtime.artifacts import ArtifactShelf
from runtime.canonical import JsonObject
from runtime.children import ROOT, Children, Lineage, Nursery
from runtime.ending import ending
from runtime.errors import AguiBridgeError
from runtime.executor_call import ExecutorCall
from runtime.hook_runner import HookRunner
from runtime.interrupts import Interrupt
from runtime.limits import Limits
from runtime.media_shelf import MediaShelf
from runtime.model_call import ModelCall
from runtime.models import Model
from runtime.progress import Progress
from runtime.request import RunRequest
from runtime.run import RunRecord
from runtime.run_log import RunLog
from runtime.sampling import Sampling
from runtime.scope import RunScope
from runtime.steering import Steering
from runtime.steps import CallModel, Fail, RunTools, Stop, Succeed, Suspend
from runtime.system import Clock, Mint
from runtime.thread import Thread
from runtime.tool_runner import ToolRunner
from runtime.tools.threads import ThreadLimiter

log = logging.getLogger("agui_bridge.engine")


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
        shelf: ArtifactShelf,
        media: MediaShelf,
        nursery: Nursery,
        steering: Steering,
        lineage: Lineage = ROOT,
        progress: Progress | None = None,
    ) -> None:
        run_log.on_failure = self._halt
        output = agent.output(model)
        our_tools = agent.specs(model)
        ours = {tool.name for tool in our_tools}
        client_tools = {tool.name: tool for tool in request.client_tools if tool.name not in ours}
        self._sampling = Sampling(
            message_id=mint("msg"),
            provider=model.provider,
            target=self._target,
            taken=set(thread.call_ids),
            mint=mint,
            budget=agent.budget.with_rounds(limits.max_rounds).within(request.budget),
            elapsed=lambda: (clock.now() - (run.started_at or run.created_at)) / 1000,
            output=output,
            above=lineage.above,
            keep_call_ids=lineage.depth == 0,
        )
        self._children = Children(
            run,
            request,
            thread,
            run_log,
            nursery=nursery,
            mint=mint,
            lineage=lineage,
            spending=self._sampling,
            max_depth=limits.max_depth,
        )
        self._scope = RunScope(
            run=run,
            request=request,
            agent=agent,
            model=model,
            thread=thread,
            sampling=self._sampling,
            log=run_log,
            clock=clock,
            threads=threads,
            limits=limits,
            tools=[*our_tools, *client_tools.values()],
            client_tools=client_tools,
            shelf=shelf,
            media=media,
            children=self._children,
            output=output,
            mint=mint,
        )
        self._log = run_log
        self._steering = steering
        self._raised: list[e.InterruptRaised] = []
        self._goes_on = progress is not None
        self._sampling.carry(call.as_committed() for call in thread.open_before(run.run_id))
        if progress is not None:
            self._sampling.resume(progress)
        hooks = HookRunner(self._scope)
        executor = agent.performer
        self._asking = ModelCall(self._scope, hooks) if executor is None else ExecutorCall(self._scope, hooks, executor)
        self._tool_runner = ToolRunner(self._scope, hooks)
        self._work: asyncio.Task[e.Event | None] | None = None
        self._stop: Callable[[], e.Event] | None = None
        self._given_up = asyncio.Event()
        self._leaving = False
        self.left = False
        """Whether it has stopped between two rounds, without an end, for another executor to go on."""
        self.terminal: e.Event | None = None
        """The run's end, once it is committed."""

    # --- a stop ---------------------------------------------------------------------------------------------------

    def cancel(self, reason: str) -> None:
        """Stop on purpose: the run ends as cancelled. Comes to nothing if it is over or being stopped already."""
        if self._stoppable():
            self._stop = lambda: self._cancellation(reason)
            self._log.emit([e.RunCancelling(reason)])
            self._children.cancel()
            self._halt()

    def interrupt(self, reason: str) -> None:
        """Give up the executor (shutdown): the run ends as interrupted."""
        if self._stoppable():
            self._stop = lambda: e.RunInterrupted(reason, self._usage())
            self._children.interrupt(reason)
            self._halt()

    def leave(self) -> None:
        """Stop between two rounds, for another executor to go on, if it comes to that before the run's end."""
        self._leaving = True

    def _stoppable(self) -> bool:
        return self._stop is None and (self._work is None or not self._work.done())

    def _halt(self) -> None:
        self._scope.stopped.set()
        self._children.cancel()
        if self._work is not None and not self._work.done():
            self._work.cancel()
            asyncio.get_running_loop().call_later(self._scope.limits.stop_grace_s, self._given_up.set)

    def _cancellation(self, reason: str) -> e.Event:
        abandoned = self._abandoned()
        confirmed = not abandoned and (self._work is None or self._work.done() or self._stop is None)
        return e.RunCancelled(reason, confirmed, abandoned or None, self._usage())

    def _abandoned(self) -> list[str]:
        """What of this run may still be at work: calls, hooks and the model's stream, as far as they would not end."""
        scope = self._scope
        stream = [f"model:{scope.model.name}"] if self._asking.is_streaming else []
        return [*scope.threads.abandoned_by(scope.run.run_id), *stream, *self._children.unconfirmed]

    # --- the run --------------------------------------------------------------------------------------------------

    async def drive(self) -> None:
        """Perform the run and commit its terminal event, unless it has `left`. Raises what the journal raised if that
        failed."""
        if not self._scope.stopped.is_set():  # it may have been stopped before it began
            self._work = asyncio.create_task(self._perform(), name=f"run {self._scope.run.run_id}")
            await self._until_over_or_given_up(self._work)
        self._children.cancel()
        await self._children.all_over()
        await self._log.settled()
        self._log.check()
        terminal = self._terminal()
        if terminal is None:
            return
        self.left = False
        raised = self._raised if isinstance(terminal, e.RunSuspended) else []
        self._log.end([*raised, *ending(self._scope.thread, self._scope.run.run_id, terminal)])
        await self._log.flush()
        self.terminal = terminal

    async def _until_over_or_given_up(self, work: asyncio.Task[e.Event | None]) -> None:
        patience = asyncio.create_task(self._given_up.wait())
        try:
            await asyncio.wait({work, patience}, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            work.cancel()
            raise
        finally:
            patience.cancel()

    def _terminal(self) -> e.Event | None:
        if self._stop is not None:
            return self._stop()
        if self._work is None or not self._work.done() or self._work.cancelled():
            log.error("run %s was cancelled from within, by its model or a library", self._scope.run.run_id)
            return self._failed_on_a_bug()
        return self._work.result()

    def _failed_on_a_bug(self) -> e.Event:
        return e.RunFailed(AguiBridgeError("The server failed; its log says why.").as_payload(), self._usage())

    async def _perform(self) -> e.Event | None:
        try:
            if not self._goes_on:
                self._log.emit(self._sampling.start())
            while True:
                self._scope.require_wanted()
                if self._sampling.may_be_steered and await self._is_steered():
                    continue
                match self._sampling.next():
                    case CallModel() | RunTools() if self._leaving:
                        await self._log.flush()
                        self.left = True
                        return None
                    case CallModel():
                        await self._asking.make()
                    case RunTools(calls, affordable):
                        await self._tool_runner.run(calls, affordable)
                    case Succeed(pending, result):
                        return e.RunCompleted(self._sampling.message_id, pending or None, self._usage(), result)
                    case Fail(error):
                        return e.RunFailed(error.as_payload(), self._usage())
                    case Suspend(raised):
                        return self._suspension(raised)
                    case Stop(reason):
                        self._log.emit([e.RunCancelling(reason)])
                        return self._cancellation(reason)
        except AguiBridgeError as error:
            await self._log.flush()  # an error of the journal itself is raised again here
            return e.RunFailed(error.as_payload(), self._usage())
        except Exception:
            log.exception("run %s failed on a bug", self._scope.run.run_id)
            return self._failed_on_a_bug()

    def _suspension(self, raised: list[e.InterruptRaised]) -> e.Event:
        """The end of a run whose calls wait; what they ask is written together with it."""
        scope = self._scope
        self._raised = raised
        asked = [*scope.thread.open_interrupts(), *(Interrupt(each, scope.run.run_id) for each in raised)]
        payloads = [interrupt.as_payload() for interrupt in asked]
        return e.RunSuspended(payloads, self._sampling.message_id, self._usage())

    async def _is_steered(self) -> bool:
        """Whether a user has said something meanwhile that this run answers now."""
        scope = self._scope
        taken = await self._steering.take(scope.run, scope.thread, self._log, lambda: not scope.stopped.is_set())
        if taken:
            self._sampling.steered()
        return taken

    def _usage(self) -> list[JsonObject] | None:
        return [dict(entry) for entry in self._sampling.usage] or None

    def _target(self, name: str) -> str:
        if name in self._scope.agent.toolbox.names:
            return "server"
        if name in self._scope.client_tools:
            return "client"
        return "nobody" if self._scope.agent.performer is None else e.EXECUTOR
