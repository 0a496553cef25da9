"""A model behind the Responses API: OpenAI's, or any server that speaks it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from typing import TYPE_CHECKING

from runtime.canonical import JsonObject
from runtime.dialects import Dialect
from runtime.dialects.openai_media import usual_media
from runtime.dialects.openai_responses import OpenAIResponses, is_last
from runtime.openai_client import openai_client, streamed
from runtime.output import usual_mode
from runtime.timeouts import CONNECT_TIMEOUT_S, SILENCE_TIMEOUT_S

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_NAMED = frozenset({"model", "input"})


class OpenAIResponsesModel:
    """A model behind the Responses API.

    Without a `client`, one is made from the SDK's own variables (`OPENAI_API_KEY`, `OPENAI_BASE_URL`);
    ConfigurationError if there is no key. A given client keeps its address, key and connections; retries are switched
    off and the timeouts given here hold. `provider` names who issued encrypted reasoning: give servers names of their
    own. `output_mode` is how it is asked for an agent's output type; a server of another name than `openai` gets
    `tool`. `input_media` as in `Agent`.
    """

    def __init__(
        self,
        name: str,
        *,
        client: AsyncOpenAI | None = None,
        provider: str = "openai",
        think_tags: bool = True,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        silence_timeout_s: float = SILENCE_TIMEOUT_S,
        output_mode: str | None = None,
        input_media: Collection[str] | None = None,
    ) -> None:
        self.name = name
        self.provider = provider
        self.output_mode = output_mode or usual_mode(provider, name)
        self.input_media = usual_media(provider, name) if input_media is None else input_media
        self.dialect: Dialect = OpenAIResponses(provider, think_tags=think_tags)
        self._client = openai_client(client)
        self._connect_timeout_s = connect_timeout_s
        self._silence_timeout_s = silence_timeout_s

    def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """One attempt: see `models.Model.stream`. Nothing is read behind the event that ends a response."""
        return streamed(
            self._client.open.responses.with_streaming_response.create,
            request,
            _NAMED,
            connect_timeout_s=self._connect_timeout_s,
            silence_timeout_s=self._silence_timeout_s,
            last=is_last,
        )

    async def aclose(self) -> None:
        """See `models.Closable.aclose`."""
        await self._client.aclose()
