"""The judge as a page before a live server: it remembers, presses Stop, and tells what a refusal said."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Generator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from tests.official_client import OfficialClient

Frames = list[dict[str, Any]]
Reply = tuple[int, str, bytes, bool]
Answer = Callable[[dict[str, str], dict[str, Any]], Reply]


def sse(events: Frames) -> bytes:
    return b"".join(b"data: " + json.dumps(event).encode() + b"\n\n" for event in events)


@contextmanager
def served(answer: Answer) -> Generator[str]:
    """A server that answers each POST with status, content type, body, and whether it then waits for the client."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["content-length"])))
            status, content_type, body, waits = answer(dict(self.headers), asked)
            self.send_response(status)
            self.send_header("content-type", content_type)
            self.end_headers()
            self.wfile.write(body)
            if waits:
                self.rfile.read(1)

        def log_message(self, format: str, *args: object) -> None:
            """Keep quiet."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        serving = threading.Thread(target=server.serve_forever, args=(0.01,))
        serving.start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()
        serving.join()


STREAM = "text/event-stream"


def echo(_: dict[str, str], asked: dict[str, Any]) -> Reply:
    """One run whose message counts the user messages that the page has sent."""
    ids = {"threadId": asked["threadId"], "runId": asked["runId"]}
    said = {"messageId": f"answer-{asked['runId']}"}
    users = sum(message["role"] == "user" for message in asked["messages"])
    events: Frames = [
        {"type": "RUN_STARTED", **ids},
        {"type": "TEXT_MESSAGE_START", **said, "role": "assistant"},
        {"type": "TEXT_MESSAGE_CONTENT", **said, "delta": str(users)},
        {"type": "TEXT_MESSAGE_END", **said},
        {"type": "STATE_SNAPSHOT", "snapshot": {"before": asked["state"]}},
        {"type": "RUN_FINISHED", **ids},
    ]
    return 200, STREAM, sse(events), False


def user(number: int) -> dict[str, Any]:
    return {"id": f"user-{number}", "role": "user", "content": f"message {number}"}


async def test_one_agent_keeps_its_messages_and_state_over_runs(official_client: OfficialClient) -> None:
    with served(echo) as url:
        first = await official_client.run(url, agent="kept", thread_id="t", run_id="r1", add_messages=[user(1)])
        second = await official_client.run(url, agent="kept", run_id="r2", add_messages=[user(2)])
        other = await official_client.run(url, thread_id="t", run_id="r3", messages=[user(3)], state={"own": 1})
    first.assert_clean()
    second.assert_clean()
    assert [message["content"] for message in second.messages] == ["message 1", "1", "message 2", "2"]
    assert second.state == {"before": {"before": {}}}
    assert [message["content"] for message in other.messages] == ["message 3", "1"]
    assert other.state == {"before": {"own": 1}}


async def test_stop_leaves_an_unfinished_stream(official_client: OfficialClient) -> None:
    def unfinished(_: dict[str, str], asked: dict[str, Any]) -> Reply:
        started = {"type": "RUN_STARTED", "threadId": asked["threadId"], "runId": asked["runId"]}
        return 200, STREAM, sse([started]), True

    with served(unfinished) as url:
        verdict = await official_client.run(url, thread_id="t", run_id="r", abort_after=1)
    assert verdict.ok
    assert verdict.terminal is not None
    assert verdict.terminal["code"] == "abort"


async def test_a_refusal_before_the_stream_shows_its_status_and_payload(official_client: OfficialClient) -> None:
    told: list[dict[str, str]] = []

    def refuse(headers: dict[str, str], _: dict[str, Any]) -> Reply:
        told.append(headers)
        return 409, "application/json", b'{"code": "thread_busy"}', False

    with served(refuse) as url:
        verdict = await official_client.run(
            url, thread_id="t", run_id="r", headers={"X-Own": "1"}, accept="application/vnd.ag-ui.event+proto"
        )
    assert (verdict.ok, verdict.status, verdict.payload) == (False, 409, {"code": "thread_busy"})
    assert told[0]["X-Own"] == "1"
    assert told[0]["Accept"] == "application/vnd.ag-ui.event+proto"
