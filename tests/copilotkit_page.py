"""Pages on CopilotKit's own core: `CopilotKit`, `CopilotKitPage`, fixture `copilotkit`.

Drives tests/node/copilotkit.mjs, whose head comment is the contract; knows nothing of the server.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.official_client import Judge

JsonObject = dict[str, Any]
NAMES = itertools.count(1)
TIMEOUT_S = 30


@dataclass(frozen=True, slots=True)
class Shown:
    """What a page shows after a turn. `asked` are the calls that its tools were given, `errors` what its onError was
    told."""

    messages: list[JsonObject]
    state: Any
    interrupts: list[JsonObject]
    errors: list[JsonObject]
    asked: list[JsonObject]
    is_running: bool

    @property
    def words(self) -> list[Any]:
        """The contents of the messages, in order."""
        return [message.get("content") for message in self.messages]

    def assert_content(self) -> None:
        """Fail the test if the page was told of an error, or still runs."""
        assert self.errors == []
        assert not self.is_running


class CopilotKitPage:
    """One page: everything in it is CopilotKit's own but who presses its buttons."""

    def __init__(self, process: Judge, name: str, agent: str) -> None:
        self._process = process
        self._name = name
        self._agent = agent

    async def say(self, thread: str, text: str) -> Shown:
        """A turn, with all that the page's tools make of it."""
        return await self._shown("say", thread=thread, text=text)

    async def begin(self, thread: str, text: str | None, until: str) -> Shown:
        """Begin a turn, without a text come back to the thread; returns when the page shows `until`."""
        said: JsonObject = {} if text is None else {"text": text}
        return await self._shown("begin", thread=thread, until=until, **said)

    async def settle(self) -> Shown:
        """Wait for what was begun."""
        return await self._shown("settle")

    async def stop(self) -> None:
        """Press Stop."""
        await self.ask("stop")

    async def connect(self, thread: str) -> Shown:
        """What a page does when it is loaded."""
        return await self._shown("connect", thread=thread)

    async def answer(self, payload: Any = None, *, cancel: bool = False) -> Shown:
        """Answer everything that is asked."""
        return await self._shown("answer", payload=payload, cancel=cancel)

    async def suggestions(self) -> list[JsonObject]:
        """What the user might say next."""
        return (await self.ask("suggestions"))["suggestions"]

    async def threads(self, do: str = "list", thread: str | None = None, **more: Any) -> JsonObject:
        """What `useThreads` holds after one of its methods: `{threads, error, hasMore, refused}`."""
        return await self.ask("threads", do=do, thread=thread, **more)

    async def ask(self, op: str, **members: Any) -> JsonObject:
        """The answer to a command. Raises JudgeFailed."""
        given = {name: value for name, value in members.items() if value is not None}
        command = {"op": op, "page": self._name, "agent": self._agent, **given}
        return await asyncio.wait_for(asyncio.wrap_future(self._process.ask(command)), TIMEOUT_S)

    async def _shown(self, op: str, **members: Any) -> Shown:
        said = await self.ask(op, **members)
        return Shown(
            messages=said["messages"],
            state=said["state"],
            interrupts=said["interrupts"],
            errors=said["errors"],
            asked=said["asked"],
            is_running=said["isRunning"],
        )


class CopilotKit:
    """Opens pages."""

    def __init__(self) -> None:
        self._process = Judge("copilotkit.mjs")

    def close(self) -> None:
        """End the process and wait for it."""
        self._process.close()

    async def open(
        self,
        url: str,
        agent: str = "a",
        *,
        transport: str = "rest",
        tools: Mapping[str, str] | None = None,
        suggest: str | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> tuple[CopilotKitPage, JsonObject]:
        """A page with this `runtimeUrl`, and what it knows of the runtime. `tools` are those of the page, each with its
        result; `suggest` are the instructions for suggestions."""
        page = CopilotKitPage(self._process, f"page-{next(NAMES)}", agent)
        offered = [{"name": name, "result": result} for name, result in (tools or {}).items()]
        given = {"url": url, "transport": transport, "tools": offered, "suggest": suggest, "headers": headers}
        return page, await page.ask("open", **given)


@pytest.fixture(scope="session")
def copilotkit() -> Iterator[CopilotKit]:
    """CopilotKit's core, for all tests of this worker."""
    pages = CopilotKit()
    try:
        yield pages
    finally:
        pages.close()
