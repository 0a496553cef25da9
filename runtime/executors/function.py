"""An executor that is a function of the author's: an agent without any model."""

from __future__ import annotations

import inspect
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import aclosing
from typing import Any, TypeAlias, cast

from runtime.canonical import clean
from runtime.errors import ConfigurationError
from runtime.executors.context import RunContext
from runtime.executors.words import Done, Text, Word

AgentFunction: TypeAlias = "Callable[[RunContext], AsyncGenerator[Word | str, None] | Awaitable[Any]]"
"""An async generator function that yields words, or an async function that returns the answer: text, or a value."""


class FunctionExecutor:
    """Performs a round by calling a function. Raises ConfigurationError for one that is not async."""

    kind = "function"

    def __init__(self, function: AgentFunction) -> None:
        if not (inspect.isasyncgenfunction(function) or inspect.iscoroutinefunction(function)):
            name = getattr(function, "__name__", repr(function))
            raise ConfigurationError(f"An agent's function is declared with `async def`; {name} is not.")
        self.function = function

    async def perform(self, context: RunContext) -> AsyncGenerator[Word, None]:
        """See the port."""
        made = self.function(context)
        if isinstance(made, AsyncGenerator):
            async with aclosing(cast("AsyncGenerator[Word | str, None]", made)) as words:
                async for word in words:
                    yield Text(word) if isinstance(word, str) else word
            return
        value = clean(await made)
        if isinstance(value, str):
            yield Text(value)
        else:
            yield Done(value)
