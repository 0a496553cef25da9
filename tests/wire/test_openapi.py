"""The API's description against the app and against a real server: what is described is there, and behaves so."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any

import orjson
import pytest
import schemathesis
from hypothesis import HealthCheck, Phase, settings
from schemathesis import GenerationMode

from agui_bridge.bridge import AGENT_PATH, Bridge
from agui_bridge.demo import demo_agent
from agui_bridge.web.openapi import openapi
from tests.routes import routes
from tests.serving import ask, serving

DOCUMENT = openapi(AGENT_PATH)
SCHEMA = schemathesis.openapi.from_dict(DOCUMENT)
NATIVE = SCHEMA.include(path_regex="^/(api|health|ready|openapi|capabilities|agents$|.*/capabilities$)")
EXAMPLES = 10


def test_every_route_of_the_app_is_described_and_nothing_else():
    described = {
        path: {name.upper() for name in operations if name != "parameters"}
        for path, operations in DOCUMENT["paths"].items()
    }
    assert described == routes(Bridge(demo_agent(), store="memory:").app)


def test_the_document_is_valid_and_its_operations_have_names_of_their_own():
    SCHEMA.validate()
    operations = [
        operation for path in DOCUMENT["paths"].values() for name, operation in path.items() if name != "parameters"
    ]
    names = [operation["operationId"] for operation in operations]
    assert len(set(names)) == len(names)


async def test_the_server_gives_its_description_with_its_own_path_of_agents():
    async with serving(demo_agent()) as served:
        answer = await served.get("/openapi.json")
        assert answer.document == orjson.loads(orjson.dumps(DOCUMENT))
    moved = openapi("/bots/{agent}")
    assert {"/bots/{agent}", "/bots/{agent}/connect"} <= moved["paths"].keys()


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    """A server in a thread of its own, with a session and a run in it: the checks of schemathesis block."""
    ready: Future[str] = Future()
    loop = asyncio.new_event_loop()
    done = asyncio.Event()

    async def serve() -> None:
        async with serving(demo_agent(), disconnect_grace_s=0) as served:
            ready.set_result(served.url)
            await done.wait()

    thread = threading.Thread(target=loop.run_until_complete, args=(serve(),), daemon=True)
    thread.start()
    yield ready.result(timeout=20)
    loop.call_soon_threadsafe(done.set)
    thread.join(timeout=20)
    loop.close()


@NATIVE.parametrize()  # pyright: ignore[reportUntypedFunctionDecorator]
@settings(
    max_examples=EXAMPLES,
    derandomize=True,
    deadline=None,
    phases=[Phase.explicit, Phase.generate],
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much, HealthCheck.data_too_large],
    database=None,
)
def test_a_real_server_answers_as_is_described(case: schemathesis.Case[Any], url: str):
    if case.meta is not None and case.meta.generation.mode is GenerationMode.POSITIVE:
        case.query.pop("cursor", None)  # only the server makes one
    case.call_and_validate(base_url=url, timeout=20)


@pytest.mark.parametrize("path", ["/", "/connect", "/agents/{agent}", "/agents/{agent}/connect"])
def test_the_routes_of_pages_answer_as_is_described(path: str, url: str):
    # What else may be sent there is tried in tests/pure/test_run_input.py: making requests from the schema of
    # RunAgentInput alone takes half a minute.
    agent = {"agent": "demo"} if "{agent}" in path else {}
    operation = SCHEMA[path]["POST"]
    bodies: list[Any] = [ask("hello", thread=f"of {path}"), {"threadId": "t"}]
    for body in bodies:
        operation.Case(path_parameters=agent, body=body, media_type="application/json").call_and_validate(base_url=url)
