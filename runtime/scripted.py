"""The scripted model: offline, deterministic, driven by the last user message (see `script`).

It speaks the Chat Completions dialect, so that everything behind a real model is behind it too.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, Collection

from runtime.canonical import JsonObject
from runtime.dialects import DONE, Dialect
from runtime.dialects.openai_chat import OpenAIChat
from runtime.errors import ProviderError
from runtime.script import Break, Phrases, script


class ScriptedModel:
    """A model without a provider. `phrases` answers what is no command."""

    def __init__(self, phrases: Phrases | None = None) -> None:
        self.name = "scripted"
        self.provider = "scripted"
        self.shows_reasoning = True
        self.input_media: Collection[str] | None = ()
        """It reads text alone."""
        self.dialect: Dialect = OpenAIChat(self.provider)
        self._phrases = phrases

    async def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """Play the script."""
        for step in script(request, self._phrases):
            if isinstance(step, Break):
                raise ProviderError(f"The scripted model failed after {step.after} deltas, as it was told to.")
            if step.delay_ms:
                await asyncio.sleep(step.delay_ms / 1000)
            yield step.chunk
        yield DONE
