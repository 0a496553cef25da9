"""A little AG-UI server that does everything rightly, and one fault if it is told so: what a checker must find.

It speaks enough of `/script`, `/tokens` and `/fail` to be provoked, and asks before `send_email`.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any
from uuid import uuid4

from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from agui_bridge.run_input import MalformedInput, parse

Event = dict[str, Any]
SEND_EMAIL = {"name": "send_email", "description": "Send an e-mail", "parameters": {"type": "object"}}
SCHEMA = {"type": "object", "properties": {"approved": {"type": "boolean"}}, "required": ["approved"]}


@dataclass
class Little:
    """The server. Each member is a place where a test puts a fault."""

    events: Callable[[list[Event], Event], list[Event]] = lambda events, asked: events
    frame: Callable[[str], str] = lambda document: f"data: {document}\n\n"
    refuse: Callable[[Event, Request], Response | None] = lambda asked, request: None
    validates: bool = True
    trusts_ids: bool = False
    trusts_payloads: bool = False
    forgets_interrupts: bool = False
    executes_again: bool = False
    declares: Callable[[Event], Any] = lambda declared: declared
    lists_tools_of_pages: bool = False
    tools: list[Event] = field(default_factory=list[Event])
    open: dict[str, dict[str, str]] = field(default_factory=dict[str, dict[str, str]])
    done: set[str] = field(default_factory=set[str])

    @property
    def app(self) -> Starlette:
        return Starlette(routes=[Route("/", self._run, methods=["POST"]), Route("/capabilities", self._capabilities)])

    async def _capabilities(self, request: Request) -> Response:
        tools = {"items": [SEND_EMAIL, *self.tools], "clientProvided": True}
        asks = {"interrupts": True, "approvals": True}
        transport = {"streaming": True, "httpBinary": False}
        return JSONResponse(self.declares({"transport": transport, "tools": tools, "humanInTheLoop": asks}))

    async def _run(self, request: Request) -> Response:
        body = await request.body()
        try:
            asked: Any = json.loads(body)
            if self.validates:
                parse(asked)
        except (ValueError, MalformedInput) as error:
            return JSONResponse({"code": str(error)}, 422)
        if (refusal := self.refuse(asked, request)) is not None:
            return refusal
        if self.lists_tools_of_pages:
            self.tools += asked.get("tools") or []
        ids = {"threadId": asked["threadId"], "runId": asked["runId"]}
        events = [{"type": "RUN_STARTED", **ids, "protocolVersion": "1.0"}, *self._answer(asked, ids)]
        frames = "".join(self.frame(json.dumps(event)) for event in self.events(events, asked))
        return Response(frames, media_type="text/event-stream")

    def _answer(self, asked: Event, ids: Event) -> Iterator[Event]:
        waiting = self.open.get(asked["threadId"], {})
        answers = {entry["interruptId"]: entry for entry in asked.get("resume") or []}
        if waiting and not (answers or self.forgets_interrupts):
            yield _interrupted(ids, waiting)
            return
        if answers and (waiting or self.executes_again):
            yield from self._resumed(ids, waiting, answers)
            return
        words, round_ = _words(asked)
        yield from self._said(asked, ids, words, round_)

    def _resumed(self, ids: Event, waiting: dict[str, str], answers: dict[str, Event]) -> Iterator[Event]:
        if self.trusts_ids:
            answers = dict.fromkeys(waiting, next(iter(answers.values())))
        for id_, call_id in list(waiting.items()):
            entry = answers.get(id_)
            if entry is None or not (self.trusts_payloads or _fits(entry)):
                continue
            content = "sent" if entry["status"] == "resolved" else "declined by the user"
            yield {"type": "TOOL_CALL_RESULT", "messageId": new(), "toolCallId": call_id, "content": content}
            if not self.executes_again:
                del waiting[id_]
        yield _interrupted(ids, waiting) if waiting and not self.executes_again else _finished(ids)

    def _said(self, asked: Event, ids: Event, words: str, round_: int) -> Iterator[Event]:
        if words.startswith("/tokens"):
            yield from _text("tok " * int(words.split()[1]))
        elif words.startswith("/fail"):
            yield from _text("half a sentence")
            yield {"type": "RUN_ERROR", "message": "The provider is away.", "code": "provider_unavailable"}
            return
        elif words.startswith("/script"):
            rounds = json.loads(words.removeprefix("/script"))["rounds"]
            entry = rounds[round_] if round_ < len(rounds) else {"text": "done"}
            yield from _text(entry.get("text", ""))
            if "fail" in entry:
                yield {"type": "RUN_ERROR", "message": "The provider is away."}
                return
            calls = list(_calls(entry))
            yield from (event for events in calls for event in events)
            started = [events[0] for events in calls]
            gated = {new(): each["toolCallId"] for each in started if each["toolCallName"] == "send_email"}
            page = {each["name"] for each in asked.get("tools") or []}
            left = [each["toolCallId"] for each in started if each["toolCallName"] in page]
            for each in started:
                if each["toolCallId"] not in {*gated.values(), *left}:
                    answer = {"messageId": new(), "toolCallId": each["toolCallId"], "content": "There is no such tool."}
                    yield {"type": "TOOL_CALL_RESULT", **answer}
            if gated:
                self.open[asked["threadId"]] = gated
                yield _interrupted(ids, gated)
                return
            yield _finished(ids, {"type": "success", "pendingToolCallIds": left} if left else {"type": "success"})
            return
        else:
            yield from _text(f"You said: {words}")
        yield _finished(ids)


def new() -> str:
    return uuid4().hex


def _words(asked: Event) -> tuple[str, int]:
    """The last user's words, and how many rounds the page has answered since."""
    words, answered = "", 0
    for message in asked["messages"]:
        if message["role"] == "user":
            content = message["content"]
            words = content if isinstance(content, str) else " ".join(part.get("text", "") for part in content)
            answered = 0
        elif message["role"] == "tool":
            answered = 1
    return words, answered


def _text(words: str) -> Iterator[Event]:
    if words:
        id_ = new()
        yield {"type": "TEXT_MESSAGE_START", "messageId": id_}
        yield {"type": "TEXT_MESSAGE_CONTENT", "messageId": id_, "delta": words}
        yield {"type": "TEXT_MESSAGE_END", "messageId": id_}


def _calls(entry: Event) -> Iterator[list[Event]]:
    for call in entry.get("tool_calls", []):
        id_, arguments = {"toolCallId": new()}, call["arguments"]
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        yield [
            {"type": "TOOL_CALL_START", **id_, "toolCallName": call["name"]},
            {"type": "TOOL_CALL_ARGS", **id_, "delta": text},
            {"type": "TOOL_CALL_END", **id_},
        ]


def _finished(ids: Event, outcome: Event | None = None) -> Event:
    return {"type": "RUN_FINISHED", **ids, **({"outcome": outcome} if outcome else {})}


def _interrupted(ids: Event, waiting: dict[str, str]) -> Event:
    interrupts = [
        {"id": id_, "reason": "tool_call", "toolCallId": call_id, "responseSchema": SCHEMA}
        for id_, call_id in waiting.items()
    ]
    return _finished(ids, {"type": "interrupt", "interrupts": interrupts})


def _fits(entry: Event) -> bool:
    payload = entry.get("payload")
    return entry["status"] == "cancelled" or (isinstance(payload, dict) and isinstance(payload.get("approved"), bool))
