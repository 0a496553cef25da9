"""The inspector beside the agents: served where it is wanted, and pointed at them wherever the app is mounted."""

from __future__ import annotations

from urllib.parse import urljoin

import pytest
from starlette.applications import Starlette
from starlette.routing import Mount

from agui_bridge import Agent, Bridge, Settings
from runtime.testing import ScriptedProvider, says
from tests.serving import Served, ask, listening, serving


async def test_without_the_setting_there_is_no_inspector():
    async with serving(Agent("a", model=ScriptedProvider())) as served:
        assert (await served.get("/inspector/")).status == 404


@pytest.mark.parametrize("prefix", ["", "/below"])
async def test_the_page_finds_the_agents_wherever_it_is_mounted(prefix: str):
    agents = {
        "a": Agent("a", model=ScriptedProvider(says("Hi"))),
        "b/c d": Agent("b", model=ScriptedProvider(says("Hi"))),
    }
    settings = Settings.model_validate({"drain_s": 0, "inspector": True})
    bridge = Bridge(agents, store="memory:", settings=settings)
    app = Starlette(routes=[Mount(prefix, bridge.app)], lifespan=bridge.lifespan) if prefix else bridge.app
    async with listening(app) as url:
        served = Served(bridge, url)
        async with served.http:
            page = f"{prefix}/inspector/"
            moved = await served.get(page.rstrip("/"))
            assert (moved.status, moved.headers["location"]) == (307, page)
            shown = await served.get(page)
            assert shown.headers["content-type"].startswith("text/html")
            told = (await served.get(f"{page}config.json")).document["agents"]
            assert [agent["id"] for agent in told] == ["a", "b/c d"]
            for agent in told:
                ran = await served.run(
                    ask("Hello", thread=agent["id"], protocolVersion="1.0"), urljoin(page, agent["url"])
                )
                assert ran.types[-1] == "RUN_FINISHED"
                assert (await served.get(urljoin(page, agent["capabilities"]))).document["identity"]
