"""One round with the model: ask it, try again what may be tried again, and pass on what it says.

It waits for the model and decides little: what a round commits is the loop's business, which errors pass by
themselves is said where they arise.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import replace
from itertools import count

from runtime import events as e
from runtime.canonical import JsonObject, digest
from runtime.dialects import Decoder
from runtime.errors import ProviderError
from runtime.hook_runner import HookRunner
from runtime.hooks import AFTER_ROUND
from runtime.items import Item
from runtime.prompt import instructions
from runtime.prompt_media import PromptMedia
from runtime.samples import Completed, Sample
from runtime.scope import RunScope
from runtime.steps import Fail
from runtime.tool_choice import options_for

log = logging.getLogger("agui_bridge.engine")

MOST_WAIT_S = 60.0
"""The longest wait that a provider may ask for before a retry; beyond it the round fails: somebody is watching."""

RETRY = "agui-bridge.model_retry"
"""The name of the `custom` event that says that an attempt failed and the model is asked again."""


class ModelCall:
    """Asks the model of one run, round after round."""

    def __init__(self, scope: RunScope, hooks: HookRunner) -> None:
        self._scope = scope
        self._hooks = hooks
        self._media = PromptMedia(scope, hooks)
        self._committed: list[e.Event] = []
        self._predictions = {tool.name: dict(tool.predicts) for tool in scope.agent.toolbox if tool.predicts}
        self.is_streaming = False
        """Whether a stream is open, or would not close."""

    async def make(self) -> None:
        """One round, with its attempts and hooks. Raises HookError, and what the journal raised."""
        scope = self._scope
        if scope.sampling.rounds:  # the prompt is made of facts; those of the first came with the request
            await scope.log.flush()
        history = self._items()
        asked = await self._hooks.before_round(scope.sampling.rounds + 1, history, self._options(history))
        if asked is None:
            return
        items, options = asked
        items = await self._media.prepared(items)
        request = scope.model.dialect.encode(items, scope.tools, options)
        name = str(options.get("model") or scope.model.name)
        scope.log.emit(scope.sampling.round_started(name, {"digest": digest(request), "items": len(items)}))
        if await self._until_answered(request, name) and self._hooks.any_at(AFTER_ROUND):
            await scope.log.flush()  # what a hook acts upon is a fact
            await self._hooks.after_commit(self._committed)

    def _items(self) -> list[Item]:
        """The history as the model is shown it."""
        policy = self._scope.agent.history_policy
        items = self._scope.thread.items()
        return items if policy is None else list(policy(items))

    def _options(self, items: list[Item]) -> JsonObject:
        scope = self._scope
        first = not scope.sampling.rounds
        return {
            "model": scope.model.name,
            "instructions": instructions(scope.agent.instructions, scope.request.context),
            **(scope.output.options() if scope.output is not None else {}),
            **scope.agent.model_options,
            **(options_for(scope.request.tool_choice, items, {tool.name for tool in scope.tools}) if first else {}),
        }

    # --- attempts -------------------------------------------------------------------------------------------------

    async def _until_answered(self, request: JsonObject, name: str) -> bool:
        """Ask until the round is committed; False if it failed."""
        scope = self._scope
        for attempt in count(1):
            try:
                await self._attempt(request, attempt, name)
            except ProviderError as error:
                scope.require_wanted()
                wait_s = self._wait_s(error, attempt)
                if wait_s is None:
                    scope.sampling.round_failed(error)
                    return False
                scope.log.emit([_retry(scope.sampling.rounds, attempt, error, wait_s)])
                await scope.log.flush()  # who reads is told before the wait, and a crash in it hides nothing
                await scope.clock.sleep(wait_s)
            else:
                return not isinstance(scope.sampling.next(), Fail)
        raise AssertionError("attempts are counted without end")

    def _wait_s(self, error: ProviderError, attempt: int) -> float | None:
        """How long to wait before the model is asked again; None if it is not."""
        limits = self._scope.limits
        if not error.retryable or self._scope.sampling.has_shown_something or attempt > limits.model_retries:
            return None
        wait_s = max(error.retry_after_s or 0.0, limits.retry_backoff_s * 2 ** (attempt - 1))
        return wait_s if wait_s <= MOST_WAIT_S else None

    async def _attempt(self, request: JsonObject, attempt: int, name: str) -> None:
        """Ask once. Raises ProviderError if nothing was committed that could have been."""
        scope = self._scope
        decoder = scope.model.dialect.decoder([tool.name for tool in scope.tools])
        scope.sampling.attempt_started()
        async with self._streaming(scope.model.stream(request)) as chunks:
            try:
                await self._read(chunks, decoder, attempt, name)
                self._tell(decoder.finish(), attempt, name)
            finally:  # also of one that is stopped, before its stream is waited for
                scope.sampling.spent(decoder.usage, decoder.model or name)
        match scope.sampling.next():
            case Fail(ProviderError() as error) if error.retryable:
                raise error
            case _:
                pass

    async def _read(self, chunks: AsyncGenerator[JsonObject, None], decoder: Decoder, attempt: int, name: str) -> None:
        """Pass on what the stream says, to its end."""
        scope = self._scope
        patience_s = self._first_token_timeout_s
        patience = asyncio.timeout(patience_s)
        try:
            async with patience:
                begun = False
                async for chunk in chunks:
                    scope.require_wanted()
                    if samples := decoder.feed(chunk):
                        if not begun:
                            begun = True
                            patience.reschedule(None)
                        silent = not scope.sampling.has_shown_something
                        self._tell(samples, attempt, name)
                        if silent and scope.sampling.has_shown_something:
                            await scope.log.flush()  # the first word goes out before others are made
                        elif scope.log.crowded:
                            await scope.log.room()
        except TimeoutError as error:
            if not patience.expired():
                raise
            said = f"The model said nothing within {patience_s:g} s."
            raise ProviderError(said, code="provider_timeout", retryable=True) from error

    @property
    def _first_token_timeout_s(self) -> float | None:
        own = self._scope.agent.timeouts
        return self._scope.limits.first_token_timeout_s if own is None else own.first_token_s

    def _tell(self, samples: Sequence[Sample], attempt: int, name: str) -> None:
        events = self._scope.sampling.feed(samples, attempt, name)
        if samples and isinstance(samples[-1], Completed):
            self._committed = events
        self._scope.log.emit(self._with_predictions(events) if self._predictions else events)

    def _with_predictions(self, events: list[e.Event]) -> list[e.Event]:
        """The events; a call that begins says what it will make of the state."""
        return [
            replace(event, predicts=self._predictions.get(event.tool_name))
            if isinstance(event, e.ToolCallStarted)
            else event
            for event in events
        ]

    @asynccontextmanager
    async def _streaming(
        self, stream: AsyncGenerator[JsonObject, None]
    ) -> AsyncGenerator[AsyncGenerator[JsonObject, None], None]:
        """Close a model's stream in any case; that it could not be closed well changes nothing for the run."""
        self.is_streaming = True
        try:
            yield stream
        finally:
            try:
                await stream.aclose()
            except Exception:
                log.exception("a model's stream could not be closed")
            finally:
                self.is_streaming = False


def _retry(round_: int, attempt: int, error: ProviderError, wait_s: float) -> e.Custom:
    return e.Custom(
        RETRY,
        {
            "round": round_,
            "attempt": attempt,
            "code": error.code,
            "message": error.message,
            "wait_ms": round(wait_s * 1000),
        },
    )
