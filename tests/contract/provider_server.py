"""The mock provider as the tests use it: with one answer to every request, and the real SDKs' clients of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import pytest
from openai import AsyncOpenAI

from runtime.models import Model
from runtime.providers import _KINDS, model_from_string
from runtime.testing import HttpAnswer as Answer
from runtime.testing import MockProvider

__all__ = ["KINDS", "PATHS", "Answer", "model_of", "openai_client", "playing"]

KINDS = sorted(_KINDS)
"""Every kind of model that a name can name."""

PATHS = {"openai": "/v1/responses", "openai-chat": "/v1/chat/completions", "anthropic": "/v1/messages"}
"""Where each kind asks."""


@asynccontextmanager
async def openai_client(provider: MockProvider) -> AsyncGenerator[AsyncOpenAI, None]:
    """The SDK's real client, pointed there."""
    async with httpx2.AsyncClient(trust_env=False, verify=False) as http_client:
        yield AsyncOpenAI(api_key="sk-test-0123456789abcdef", base_url=provider.base_url, http_client=http_client)


@asynccontextmanager
async def playing(answer: Answer) -> AsyncGenerator[tuple[MockProvider, AsyncOpenAI], None]:
    """A provider with this answer, and a client of it."""
    async with MockProvider(answer, repeat=True) as provider, openai_client(provider) as client:
        yield provider, client


@asynccontextmanager
async def model_of(kind: str, environ: Mapping[str, str]) -> AsyncGenerator[Model, None]:
    """The model as `--model KIND:NAME` makes it, led to a provider by its SDK's own variables."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in environ.items():
            patch.setenv(name, value)
        model: Any = model_from_string(f"{kind}:m-1")
    try:
        yield model
    finally:
        await model.aclose()
