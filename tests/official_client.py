"""The official AG-UI client as judge of what the server sends: `OfficialClient`, `Verdict`, fixture `official_client`.

Drives tests/node/judge.mjs, whose head comment is the contract; knows nothing of the server. The judge belongs to no
event loop, so one process serves every test of a worker.
"""

from __future__ import annotations

import asyncio
import base64
import itertools
import json
import subprocess
import threading
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, Self

import pytest

from tests.toolchain import NODE_DIR, node

JsonObject = Mapping[str, Any]

NEWEST = "1.0.0"
OLDER = ("0.0.57", "0.0.59")
"""The versions of the official client that the judge knows."""


class JudgeFailed(Exception):
    """The judge itself broke: it ended, or it could not carry out a command."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """What one run was for the official client.

    `ok`: runAgent's promise resolved, which it also does after a RUN_ERROR, a cut or an abort by the client itself.
    `status` and `payload` are those of an HTTP refusal. `events` are the ones applied, chunks already expanded.
    """

    ok: bool
    error: str | None
    status: int | None
    payload: Any
    events: list[dict[str, Any]]
    warnings: list[str]
    messages: list[dict[str, Any]]
    state: Any
    pending_interrupts: list[dict[str, Any]]
    result: Any

    @property
    def types(self) -> list[str]:
        """The types of `events`."""
        return [event["type"] for event in self.events]

    @property
    def terminal(self) -> dict[str, Any] | None:
        """The last event if it ends a run, else None."""
        last = self.events[-1] if self.events else None
        return last if last and last["type"] in ("RUN_FINISHED", "RUN_ERROR") else None

    def assert_clean(self) -> None:
        """Fail the test if the client refused the stream or had anything to say about it."""
        if self.ok and not self.warnings:
            return
        lines = ["the official client is not content:"]
        if not self.ok:
            lines.append(f"  it refused: {self.error}")
        lines += [f"  it warned: {warning}" for warning in self.warnings]
        lines.append(f"  after {len(self.events)} events, the last of them:")
        lines += [f"    {json.dumps(event, ensure_ascii=False)[:300]}" for event in self.events[-5:]]
        pytest.fail("\n".join(lines), pytrace=False)


class Judge:
    """A Node process that answers JSON commands, and the thread that hands its answers to whoever asked."""

    def __init__(self, script: str = "judge.mjs") -> None:
        runtime = node()
        if runtime is None:
            raise JudgeFailed("no Node.js found")
        pipe = subprocess.PIPE
        self._process = subprocess.Popen([runtime, script], cwd=NODE_DIR, stdin=pipe, stdout=pipe, stderr=pipe)
        self._ids = itertools.count(1)
        self._lock = threading.Lock()
        self._asked: dict[int, Future[dict[str, Any]]] = {}
        self._said: deque[bytes] = deque(maxlen=40)
        self._readers = [threading.Thread(target=read, daemon=True) for read in (self._listen, self._read)]
        for reader in self._readers:
            reader.start()

    def ask(self, command: JsonObject) -> Future[dict[str, Any]]:
        answer: Future[dict[str, Any]] = Future()
        stdin = self._process.stdin
        assert stdin is not None
        with self._lock:
            number = next(self._ids)
            self._asked[number] = answer
            try:
                stdin.write(json.dumps({"id": number, **command}).encode() + b"\n")
                stdin.flush()
            except (OSError, ValueError) as error:
                self._asked.pop(number, None)
                raise JudgeFailed(f"the judge is gone: {self._last_words()}") from error
        return answer

    def close(self) -> None:
        stdin = self._process.stdin
        assert stdin is not None
        with suppress(OSError):
            stdin.close()
        try:
            self._process.wait(5)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        for reader in self._readers:
            reader.join()

    def _read(self) -> None:
        stdout = self._process.stdout
        assert stdout is not None
        with stdout:
            for line in stdout:
                self._hand_over(json.loads(line))
        self._readers[0].join()
        for asker in list(self._asked.values()):
            if asker.set_running_or_notify_cancel():
                asker.set_exception(JudgeFailed(f"the judge ended: {self._last_words()}"))

    def _hand_over(self, said: dict[str, Any]) -> None:
        asker = self._asked.pop(said["id"], None)
        if asker is None or not asker.set_running_or_notify_cancel():
            return
        if "fault" in said:
            asker.set_exception(JudgeFailed(said["fault"]))
        else:
            asker.set_result(said)

    def _listen(self) -> None:
        stderr = self._process.stderr
        assert stderr is not None
        with stderr:
            self._said.extend(stderr)

    def _last_words(self) -> str:
        return b"".join(self._said).decode(errors="replace") or "it said nothing"


class OfficialClient:
    """Asks the official client for its verdict; may be asked from any event loop, and for several at once."""

    def __init__(self, *, timeout_s: float = 30) -> None:
        self._timeout_s = timeout_s
        self._judge: Judge | None = None

    def start(self) -> Self:
        """Start the judge. Raises JudgeFailed without Node.js."""
        self._judge = Judge()
        return self

    def close(self) -> None:
        """End the judge and wait for it."""
        if self._judge is not None:
            self._judge.close()
            self._judge = None

    async def __aenter__(self) -> Self:
        return self.start()

    async def __aexit__(self, *_: object) -> None:
        self.close()

    async def replay(
        self,
        body: bytes,
        run_input: JsonObject | None = None,
        *,
        content_type: str = "text/event-stream",
        cut: bool = False,
        client: str = NEWEST,
    ) -> Verdict:
        """The verdict on a response body, byte for byte as a server would send it.

        `run_input` holds members of RunAgentInput; `cut` breaks the connection after the body instead of ending it.
        `client` is the version that judges.
        """
        return await self._ask(
            {
                "op": "replay",
                "bodyBase64": base64.b64encode(body).decode(),
                "contentType": content_type,
                "cut": cut,
                "input": {
                    "client": client,
                    **({"threadId": "thread-1", "runId": "run-1"} if run_input is None else run_input),
                },
            }
        )

    async def run(
        self,
        url: str,
        *,
        thread_id: str | None = None,
        run_id: str | None = None,
        messages: Sequence[JsonObject] | None = None,
        add_messages: Sequence[JsonObject] | None = None,
        state: Any = None,
        tools: Sequence[JsonObject] | None = None,
        context: Sequence[JsonObject] | None = None,
        forwarded_props: Any = None,
        resume: Sequence[JsonObject] | None = None,
        headers: Mapping[str, str] | None = None,
        accept: str | None = None,
        abort_after: int | None = None,
        agent: str | None = None,
        client: str = NEWEST,
    ) -> Verdict:
        """Run the client of this version against a live server.

        Runs that name the same `agent` share one client object: messages, state and open interrupts carry over, and
        `thread_id` is needed only once. `abort_after` presses Stop when that many events have been applied.
        """
        asked = {
            "url": url,
            "threadId": thread_id,
            "runId": run_id,
            "messages": messages,
            "addMessages": add_messages,
            "state": state,
            "tools": tools,
            "context": context,
            "forwardedProps": forwarded_props,
            "resume": resume,
            "headers": headers,
            "accept": accept,
            "abortAfter": abort_after,
            "agent": agent,
            "client": client,
        }
        return await self._ask({"op": "run", **{name: value for name, value in asked.items() if value is not None}})

    async def decode(self, body: bytes) -> list[dict[str, Any]]:
        """The events of a protobuf body, as the official package reads them. Raises JudgeFailed if it cannot."""
        said = await self._said({"op": "decode", "bodyBase64": base64.b64encode(body).decode()})
        return said["decoded"]

    async def compact(self, events: Sequence[JsonObject], *, client: str = NEWEST) -> list[dict[str, Any]]:
        """What CopilotKit's runner keeps of a run, by this version of the client. Raises JudgeFailed if it cannot."""
        said = await self._said({"op": "compact", "events": events, "client": client})
        return said["compacted"]

    async def _said(self, command: JsonObject) -> dict[str, Any]:
        if self._judge is None:
            raise JudgeFailed("the judge was not started")
        return await asyncio.wait_for(asyncio.wrap_future(self._judge.ask(command)), self._timeout_s)

    async def _ask(self, command: JsonObject) -> Verdict:
        said = await self._said(command)
        return Verdict(
            ok=said["ok"],
            error=said["error"],
            status=said["status"],
            payload=said["payload"],
            events=said["events"],
            warnings=said["warnings"],
            messages=said["messages"],
            state=said.get("state"),
            pending_interrupts=said["pendingInterrupts"],
            result=said["result"],
        )


@pytest.fixture(scope="session")
def official_client() -> Iterator[OfficialClient]:
    """One judge for all tests of this worker. Agents live in it by name, so name them after the test."""
    client = OfficialClient().start()
    try:
        yield client
    finally:
        client.close()
