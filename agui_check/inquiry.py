"""What a probe works with: it asks the endpoint, every answer is verified, and what it finds is written down."""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any, Final, TypeAlias
from uuid import uuid4

from agui_check.findings import Finding, JsonObject, as_object
from agui_check.report import Ledger
from agui_check.schema import SPEC_VERSION
from agui_check.target import Exchange, Target
from agui_check.verifier import verify

SCRIPT: Final = "/script"
TOKENS: Final = "/tokens"
FAIL: Final = "/fail"
CANCEL: Final = "cancel"
BRIDGE: Final = "agui-bridge"

LACKS: Final[dict[str, str]] = {
    SCRIPT: "the server has no scripted model that could be told to do it",
    TOKENS: "the server does not understand `/tokens`",
    FAIL: "the server does not understand `/fail`",
    CANCEL: "the server has no known route to cancel a run",
    BRIDGE: "the server has no known route to come back to a run",
}
"""Why a probe that needs a facility was left out."""


@dataclass(slots=True)
class Inquiry:
    """One check of one endpoint. `facilities` are what it can be provoked with; `probe` is the one at work."""

    target: Target
    ledger: Ledger = field(default_factory=Ledger)
    facilities: set[str] = field(default_factory=set[str])
    extensions: set[str] = field(default_factory=set[str])
    probe: str = ""
    streams: int = 0
    first: Exchange | None = None

    # --- asking -------------------------------------------------------------------------------------------------------

    def body(self, text: str | None = "Hello", **members: Any) -> JsonObject:
        """A run input of its own thread and run, with one user message unless `text` is None."""
        said = [] if text is None else [user(text)]
        input_ = {"threadId": new("thread"), "runId": new("run"), "protocolVersion": SPEC_VERSION, "messages": said}
        return input_ | members

    async def say(self, text: str | None = "Hello", **members: Any) -> Exchange:
        """Run `body(text, **members)`."""
        return await self.run(self.body(text, **members))

    async def script(self, *rounds: JsonObject, **members: Any) -> Exchange:
        """Run with a script for the scripted model."""
        return await self.say(scripted(*rounds), **members)

    async def run(self, body: Any, on_events: Callable[[Exchange], bool] | None = None, **headers: str) -> Exchange:
        """POST a run and verify its answer. With `on_events` the answer may be left before its end."""
        exchange = await self.target.post(body, on_events=on_events, **headers)
        if exchange.streams:
            self._judge(exchange, as_object(body) or None, whole=on_events is None)
        return exchange

    def _judge(self, exchange: Exchange, asked: JsonObject | None, *, whole: bool) -> None:
        self.streams += 1
        stream, verdict = exchange.stream, verify(exchange.events, asked)
        for requirement in verdict.exercised | {"R-004", "R-005", "R-031"}:
            self.ledger.tested(requirement, self.probe)
        for finding in (*stream.findings, *verdict.findings):
            if whole or finding.requirement != "R-013":
                self.ledger.found(finding, self.probe)
        if whole:
            self._judge_end(exchange)
        if stream.ids:
            self.extensions.add("id")
            self.ledger.tested("R-007", self.probe)
        if stream.comments:
            self.extensions.add("comments")
            self.ledger.tested("R-006", self.probe)

    def _judge_end(self, exchange: Exchange) -> None:
        self.ledger.tested("R-013", self.probe)
        self.ledger.tested("R-008", self.probe)
        if exchange.late and exchange.outcome != "nothing":
            self.fault("R-008", "The body stays open behind the terminal event.")
        elif exchange.idle_s > 2 and exchange.outcome != "nothing":
            self.fault("R-008", "The body is closed late behind the terminal event, by more than two seconds.")
        if exchange.late and exchange.outcome == "nothing":
            self.fault("R-013", "The run does not end in the given time.")

    # --- writing down -------------------------------------------------------------------------------------------------

    def fault(self, requirement: str, message: str, **more: bool) -> None:
        """A requirement that was put to the test and offended."""
        self.ledger.tested(requirement, self.probe)
        self.ledger.found(Finding(requirement, message, **more), self.probe)

    def passed(self, *requirements: str) -> None:
        """Requirements that were put to the test."""
        for requirement in requirements:
            self.ledger.tested(requirement, self.probe)

    def expect(self, requirement: str, holds: bool, message: str) -> bool:
        """Put a requirement to the test; `message` is told if it does not hold."""
        if holds:
            self.passed(requirement)
        else:
            self.fault(requirement, message)
        return holds

    def skip(self, reason: str, *requirements: str) -> None:
        """Requirements that could not be put to the test."""
        for requirement in requirements:
            self.ledger.skip(requirement, reason)


Work: TypeAlias = Callable[[Inquiry], Awaitable[None]]


@dataclass(frozen=True, slots=True)
class Probe:
    """A black-box check of some requirements. `needs` are the facilities without which it is left out."""

    name: str
    requirements: tuple[str, ...]
    needs: tuple[str, ...]
    work: Work


def probe(*requirements: str, needs: tuple[str, ...] = ()) -> Callable[[Work], Probe]:
    """Make a probe of a function; its name is what the probe does."""

    def made(work: Work) -> Probe:
        name = getattr(work, "__name__", "probe").replace("_", " ")
        return Probe(name, requirements, needs, work)

    return made


def new(prefix: str) -> str:
    """A fresh id."""
    return f"{prefix}-{uuid4().hex[:12]}"


def user(text: Any, **members: Any) -> JsonObject:
    """A user message."""
    return {"id": new("user"), "role": "user", "content": text, **members}


def scripted(*rounds: JsonObject) -> str:
    """The words that tell the scripted model what to do round by round."""
    return "/script " + json.dumps({"rounds": list(rounds)})


def call(name: str, arguments: Any = None) -> JsonObject:
    """A tool call in a script."""
    return {"name": name, "arguments": {} if arguments is None else arguments}


def tool(name: str, **members: Any) -> JsonObject:
    """A tool of the page."""
    return {"name": name, "description": "A tool of the page", "parameters": {"type": "object"}} | members
