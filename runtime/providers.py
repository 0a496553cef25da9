"""The models that a name names, and the model behind the Chat Completions API.

A request goes out through the provider's SDK, raw chunks come back as dicts; each SDK has a file of its own, what
they share is in `provider_stream`.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, Collection
from typing import TYPE_CHECKING, Protocol

from runtime.anthropic_model import AnthropicModel
from runtime.canonical import JsonObject
from runtime.dialects import Dialect
from runtime.dialects.openai_chat import OpenAIChat
from runtime.dialects.openai_media import usual_media
from runtime.errors import ConfigurationError
from runtime.models import Model
from runtime.openai_client import openai_client, streamed
from runtime.openai_responses_model import OpenAIResponsesModel
from runtime.output import usual_mode
from runtime.timeouts import CONNECT_TIMEOUT_S, SILENCE_TIMEOUT_S, Timeouts

if TYPE_CHECKING:
    from openai import AsyncOpenAI

_NAMED = frozenset({"model", "messages"})


class OpenAIChatModel:
    """A model behind a Chat Completions endpoint: OpenAI's, or any server that speaks it.

    Without a `client`, one is made from the SDK's own variables (`OPENAI_API_KEY`, `OPENAI_BASE_URL`);
    ConfigurationError if there is no key. A given client keeps its address, key and connections; retries are switched
    off and the timeouts given here hold. `provider` names who issues signatures: give servers names of their own.
    `output_mode` is how it is asked for an agent's output type; a server of another name than `openai` gets `tool`.
    `input_media` as in `Agent`.
    """

    def __init__(
        self,
        name: str,
        *,
        client: AsyncOpenAI | None = None,
        provider: str = "openai",
        think_tags: bool = True,
        starts_in_thinking: bool = False,
        connect_timeout_s: float = CONNECT_TIMEOUT_S,
        silence_timeout_s: float = SILENCE_TIMEOUT_S,
        output_mode: str | None = None,
        input_media: Collection[str] | None = None,
    ) -> None:
        self.name = name
        self.provider = provider
        self.output_mode = output_mode or usual_mode(provider, name)
        self.input_media = usual_media(provider, name) if input_media is None else input_media
        self.dialect: Dialect = OpenAIChat(provider, think_tags=think_tags, starts_in_thinking=starts_in_thinking)
        self._client = openai_client(client)
        self._connect_timeout_s = connect_timeout_s
        self._silence_timeout_s = silence_timeout_s

    def stream(self, request: JsonObject) -> AsyncGenerator[JsonObject, None]:
        """One attempt: see `models.Model.stream`."""
        return streamed(
            self._client.open.chat.completions.with_streaming_response.create,
            request,
            _NAMED,
            connect_timeout_s=self._connect_timeout_s,
            silence_timeout_s=self._silence_timeout_s,
        )

    async def aclose(self) -> None:
        """See `models.Closable.aclose`."""
        await self._client.aclose()


class _Maker(Protocol):
    """What makes a model of a name."""

    def __call__(self, name: str, /, *, connect_timeout_s: float, silence_timeout_s: float) -> Model: ...


def model_from_string(text: str, timeouts: Timeouts | None = None) -> Model:
    """The model that `KIND:NAME` names. Raises ConfigurationError, which lists the kinds that exist.

    How long it may take to connect and how long it may fall silent is the model's own business, so it is said here.
    """
    kind, _, name = text.partition(":")
    make = _KINDS.get(kind)
    if make is None or not name.strip():
        known = ", ".join(named_models())
        raise ConfigurationError(f"There is no model {text!r}. A model is named as one of: {known}.")
    timeouts = timeouts or Timeouts()
    return make(name.strip(), connect_timeout_s=timeouts.connect_s, silence_timeout_s=timeouts.silence_s)


def named_models() -> list[str]:
    """How models are named here: `KIND:NAME` for each kind."""
    return [f"{kind}:NAME" for kind in _KINDS]


def keys() -> dict[str, list[str]]:
    """The variables in which the SDKs look for a key, each with the names of the models that it opens."""
    found: dict[str, list[str]] = {}
    for kind in _KINDS:
        found.setdefault(_KEYS[kind], []).append(f"{kind}:NAME")
    return found


_KINDS: dict[str, _Maker] = {
    "openai": OpenAIResponsesModel,
    "openai-chat": OpenAIChatModel,
    "anthropic": AnthropicModel,
}

_KEYS = {"openai": "OPENAI_API_KEY", "openai-chat": "OPENAI_API_KEY", "anthropic": "ANTHROPIC_API_KEY"}
