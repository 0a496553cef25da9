"""A mock provider that gives one answer to every request, and the OpenAI SDK's real client of it."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

import httpx2
from openai import AsyncOpenAI

from runtime.testing import HttpAnswer as Answer
from runtime.testing import MockProvider

__all__ = ["Answer", "openai_client", "playing"]


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
