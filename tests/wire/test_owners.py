"""Who is asking decides what there is: what is another's is answered exactly as what is not there."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from starlette.requests import Request

from agui_bridge import AguiBridgeError, Bridge, Principal, Settings
from agui_bridge.demo import demo_agent
from runtime.journal.memory import MemoryJournal
from tests.serving import Answer, Served, ask, listening

OPERATOR = "olga"


class Stranger(AguiBridgeError):
    """Say who you are."""

    code = "who_are_you"
    status = 401


async def by_name(request: Request) -> Principal:
    """The principal that a header names; a tenant may stand before it."""
    name = request.headers.get("x-user")
    if name is None:
        raise Stranger
    tenant, _, user = name.rpartition("/")
    return Principal(user, tenant or "-", operator=user == OPERATOR)


@asynccontextmanager
async def owned() -> AsyncGenerator[Served, None]:
    settings = Settings.model_validate({"drain_s": 0})
    bridge = Bridge(demo_agent(), store=MemoryJournal(), settings=settings, authenticate=by_name)
    async with listening(bridge.app) as url:
        served = Served(bridge, url)
        async with served.http:
            yield served


def same(one: Answer, other: Answer) -> bool:
    """Whether a client could tell the two answers apart by nothing but the time."""
    heads = [{name: value for name, value in each.headers.items() if name != "date"} for each in (one, other)]
    return (one.status, one.body, heads[0]) == (other.status, other.body, heads[1])


async def test_a_page_that_comes_back_to_another_owners_thread_finds_none():
    async with owned() as served:
        await served.run(ask("hello"), x_user="ann")
        back = ask("", run="back", messages=[])
        mine = await served.run(back, path="/connect", x_user="ann")
        assert mine.types == ["RUN_STARTED", "MESSAGES_SNAPSHOT", "STATE_SNAPSHOT", "RUN_FINISHED"]
        nothing = await served.run(ask("", thread="t1", run="back", messages=[]), path="/connect", x_user="carl")
        for other in ("ben", "other-tenant/ann", OPERATOR):
            answer = await served.run(back, path="/connect", x_user=other)
            assert answer.types == ["RUN_STARTED", "RUN_FINISHED"]
            assert same(answer, nothing)


async def test_another_owners_run_looks_exactly_like_none():
    async with owned() as served:
        ran = await served.run(ask("hello"), x_user="ann")
        mine = ran.headers["location"]
        assert (await served.get(mine, x_user="ann")).document["owner_id"] == "ann"
        for path in ("", "/events", "/events?after_seq=1", "/events?after_seq=999999", "/events?format=agui"):
            nothing = await served.get(f"/api/agent-runs/run_nothing{path}", x_user="ben")
            assert nothing.status == 404
            for other in ("ben", "other-tenant/ann", OPERATOR):
                assert same(await served.get(mine + path, x_user=other), nothing)


async def test_the_same_thread_id_of_two_owners_is_two_threads():
    async with owned() as served:
        told = await served.run(ask("hello"), x_user="ann")
        await served.run(ask("hello", message="u9"), x_user="ben")
        again = await served.run(ask("", run="r2", messages=[]), x_user="ben")
        snapshot = next(event for event in again.events if event["type"] == "MESSAGES_SNAPSHOT")
        assert [message["id"] for message in snapshot["messages"] if message["role"] == "user"] == ["u9"]
        threads = set[str]()
        for user in ("ann", "ben", "other-tenant/ann"):
            ran = await served.run(ask("more", run="r3", message=f"more of {user}"), x_user=user)
            threads.add((await served.get(ran.headers["location"], x_user=user)).document["thread_id"])
        assert len(threads) == 3
        repeated = await served.run(ask("hello"), x_user="ann")
        assert repeated.headers["x-run-id"] == told.headers["x-run-id"]


async def test_the_whole_envelope_is_for_operators():
    async with owned() as served:
        for user, status in (("ann", 404), (OPERATOR, 200)):
            ran = await served.run(ask("hello"), x_user=user)
            assert (await served.get(ran.headers["location"] + "/events", x_user=user)).status == 200
            assert (await served.get(ran.headers["location"] + "/events?full=1", x_user=user)).status == status


async def test_nobody_is_served_without_a_name_except_with_the_news_that_the_server_lives():
    async with owned() as served:
        agents = ("/agents", "/capabilities", "/agents/demo/capabilities", "/agents/nobody/capabilities")
        for path in ("/api/agent-runs/run_1", "/api/agent-runs/run_1/events", *agents):
            assert (await served.get(path)).status == 401
        assert (await served.run(ask("hello"))).document["code"] == "who_are_you"
        assert (await served.get("/health")).status == 200
        assert (await served.get("/ready")).status == 200
