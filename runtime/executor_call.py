"""One performance of an executor: hear its words to their end, and write down what they become.

It takes the place of the model's call in the loop. What an executor raises is translated here, once. What its words
become is said in `executors.narration` and in the loop; here stands what needs the thread, the store or the clock.
"""

from __future__ import annotations

import logging
from collections.abc import AsyncGenerator
from dataclasses import replace
from typing import cast

from runtime import events as e
from runtime.canonical import Json, JsonObject, clean, digest
from runtime.errors import AguiBridgeError, ExecutorError, InvalidInput, StoreError
from runtime.executors import Executor
from runtime.executors.context import RunContext
from runtime.executors.narration import Narration
from runtime.executors.recollection import Recollection, recollection
from runtime.executors.words import (
    Activity,
    Artifact,
    Custom,
    Done,
    Failed,
    Interrupt,
    Reasoning,
    Remember,
    State,
    Text,
    ToolCallDelta,
    Word,
)
from runtime.hook_runner import HookRunner
from runtime.hooks import AFTER_ROUND
from runtime.interrupts import Question, raised
from runtime.items import FunctionCallOutput, Item, Message
from runtime.prompt_media import PromptMedia
from runtime.scope import RunScope
from runtime.shared_state import SharedState
from runtime.state_delta import PatchConflict, changes
from runtime.state_type import StateMisfit
from runtime.steps import Fail, Stop, Suspend

log = logging.getLogger("agui_bridge.engine")

_DELTAS = (Text, Reasoning, ToolCallDelta)


class ExecutorCall:
    """Performs the rounds of one run with its agent's executor."""

    def __init__(self, scope: RunScope, hooks: HookRunner, executor: Executor) -> None:
        self._scope = scope
        self._hooks = hooks
        self._executor = executor
        self._media = PromptMedia(scope, hooks)
        self.is_streaming = False
        """Whether it is at work, or would not stop."""

    async def make(self) -> None:
        """One performance. Raises HookError, and what the journal raised."""
        scope = self._scope
        if scope.thread.open_interrupts():  # some were answered, but not all
            scope.sampling.end(Suspend([]))
            return
        if scope.sampling.rounds:
            await scope.log.flush()
        asked = await self._hooks.before_round(scope.sampling.rounds + 1, scope.thread.items(), {})
        if asked is None:
            return
        found = recollection(scope.thread, scope.run.agent_id)
        items = await self._media.prepared(asked[0])
        news = await self._media.prepared([item for _, item in found.news])
        told = list(zip((id_ for id_, _ in found.news), cast("list[Message | FunctionCallOutput]", news), strict=True))
        found = replace(found, news=told)
        performance = _Performance(scope, self._hooks, self._executor.kind, items, found)
        self.is_streaming = True
        try:
            await performance.hear(self._executor)
        finally:
            self.is_streaming = False


class _Performance:
    """What is known between the first word of a performance and its last."""

    def __init__(self, scope: RunScope, hooks: HookRunner, kind: str, items: list[Item], found: Recollection) -> None:
        request: JsonObject = {"digest": digest([kind, scope.thread.position]), "items": len(items)}
        self._scope = scope
        self._hooks = hooks
        self._narration = Narration(scope.sampling, name=scope.agent.name, request=request, calls=found.calls)
        self._before = scope.thread.state
        self._context = self._told(items, found)
        self._raised: list[e.InterruptRaised] = []

    def _told(self, items: list[Item], found: Recollection) -> RunContext:
        scope = self._scope
        return RunContext(
            run=scope.run,
            round=scope.sampling.rounds + 1,
            items=items,
            shared_state=SharedState(self._before, scope.agent.shared_state),
            answers=found.answers,
            remembered=found.remembered,
            news=found.news,
            open_calls=found.calls.keys(),
            tools=scope.tools,
            client_tools=frozenset(scope.client_tools),
            context=scope.request.context,
            forwarded_props=scope.request.forwarded_props,
            principal=scope.request.principal,
            deps=scope.agent.deps,
            stopped=scope.stopped,
        )

    async def hear(self, executor: Executor) -> None:
        """Hear it out. Raises HookError, and what the journal raised."""
        words = executor.perform(self._context)
        try:
            await self._conclude(await self._heard(words))
        except ExecutorError as error:
            self._narration.fail(error)
        finally:
            await _close(words)

    async def _heard(self, words: AsyncGenerator[Word, None]) -> Json:
        """Take its words to the last; the run's value, if it told one."""
        scope = self._scope
        while (word := await _next(words)) is not None:
            scope.require_wanted()
            if isinstance(word, Done):
                return clean(word.result)
            if isinstance(word, Failed):
                raise ExecutorError(word.message, code=word.code)
            silent = not scope.sampling.has_shown_something
            if not isinstance(word, _DELTAS):
                self._settle()
            await self._take(word)
            if isinstance(scope.sampling.next(), Fail | Stop):
                break
            if silent and scope.sampling.has_shown_something:
                await scope.log.flush()  # the first word goes out before others are made
            elif scope.log.crowded:
                await scope.log.room()
        return None

    async def _take(self, word: Word) -> None:
        log_ = self._scope.log
        match word:
            case State(value):
                self._change_to(clean(value))
                self._context.shared_state.value = value
            case Activity(activity_id, activity_type, content):
                log_.emit([e.ActivitySnapshot(activity_id, activity_type, cast("JsonObject", clean(content)))])
            case Custom(name, value):
                log_.emit([e.Custom(name, clean(value))])
            case Artifact():
                await self._artifact(word)
            case Remember(value):
                log_.emit([e.ExecutorRemembered(clean(value))])
            case Interrupt():
                self._ask(word)
            case Done() | Failed():
                raise AssertionError("nothing is heard behind these")
            case _:
                await self._tell(self._narration.tell(word))

    async def _tell(self, events: list[e.Event]) -> None:
        """Write what was said; a round that is complete is told to the hooks."""
        self._scope.log.emit(events)
        if self._hooks.any_at(AFTER_ROUND) and any(isinstance(event, e.RoundCompleted) for event in events):
            await self._scope.log.flush()  # what a hook acts upon is a fact
            await self._hooks.after_commit(events)

    async def _artifact(self, word: Artifact) -> None:
        data = word.content.encode("utf-8", "replace") if isinstance(word.content, str) else bytes(word.content)
        try:
            made = await self._scope.shelf.make(self._scope.run, word.name, word.media_type, data)
        except (StoreError, InvalidInput) as error:
            raise ExecutorError(f"The artifact {word.name!r} could not be stored. {error.message}") from error
        self._scope.log.emit([e.ArtifactCreated(made.artifact_id, made.name, made.media_type, made.size, made.digest)])

    def _ask(self, word: Interrupt) -> None:
        question = Question(
            word.reason, word.message, clean(word.response_schema), word.expires_in, clean(word.metadata)
        )
        try:
            question.check()
        except ValueError as error:
            raise ExecutorError(f"The agent asked something that cannot be asked: {error}") from error
        if any(ask.key == word.key for ask in self._raised):
            raise ExecutorError(f"The agent asked two things under the key {word.key!r}.")
        id_, now, number = self._scope.mint("int"), self._scope.clock.now(), len(self._raised) + 1
        self._raised.append(raised(question, number, interrupt_id=id_, now=now, key=word.key))

    async def _conclude(self, result: Json) -> None:
        """What is open is committed; the run ends, unless calls are to be run."""
        sampling = self._scope.sampling
        self._settle()
        if isinstance(sampling.next(), Fail | Stop):
            return
        await self._tell(self._narration.close(goes_on=bool(self._raised)))
        if isinstance(sampling.next(), Fail | Stop):
            return
        if self._raised:
            sampling.end(Suspend(self._raised))
        else:
            self._scope.log.emit(sampling.conclude(result))

    # --- the state ------------------------------------------------------------------------------------------------

    def _settle(self) -> None:
        """What the executor has made of the state by now is told."""
        try:
            after = self._context.shared_state.settled()
        except (StateMisfit, RecursionError) as error:
            raise ExecutorError("What the agent made of the state is no JSON, or does not fit its type.") from error
        self._change_to(after)

    def _change_to(self, after: Json) -> None:
        try:
            facts = changes(self._scope.thread.state, self._before, after)
        except (PatchConflict, RecursionError) as error:
            raise ExecutorError("What the agent made of the state does not fit into it.") from error
        self._scope.log.emit(facts)
        self._before = after


async def _next(words: AsyncGenerator[Word, None]) -> Word | None:
    """The next word, None behind the last. Raises ExecutorError for whatever goes wrong in saying it."""
    try:
        return await anext(words)
    except StopAsyncIteration:
        return None
    except AguiBridgeError as error:
        raise ExecutorError(error.message, code=error.code) from error
    except Exception as error:
        log.exception("an executor failed")
        raise ExecutorError from error


async def _close(words: AsyncGenerator[Word, None]) -> None:
    """That it could not be closed well changes nothing for the run."""
    try:
        await words.aclose()
    except Exception:
        log.exception("an executor could not be closed")
