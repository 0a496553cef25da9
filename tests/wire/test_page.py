"""What a browser finds at `/`: the demo's page under its policy, or how to build it."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import httpx2
import pytest

from agui_bridge.bridge import Bridge
from agui_bridge.demo import demo_agent
from agui_bridge.settings import Settings
from agui_bridge.web.page import Page
from tests.serving import ask, listening

pytestmark = pytest.mark.anyio


def serving_page(page: Page | None) -> AbstractAsyncContextManager[str]:
    settings = Settings.model_validate({"drain_s": 0})
    return listening(Bridge(demo_agent(), store="memory:", settings=settings, page=page).app)


@pytest.fixture
def built(tmp_path: Path) -> Path:
    (tmp_path / "assets").mkdir()
    (tmp_path / "index.html").write_text("<!doctype html><title>page</title>")
    (tmp_path / "assets" / "index-1.js").write_text("void 0;")
    (tmp_path / "secret").write_text("not an asset")
    return tmp_path


async def test_the_page_comes_with_a_policy_that_allows_no_inline_script_and_no_other_host(built: Path) -> None:
    async with serving_page(Page(built)) as url, httpx2.AsyncClient(base_url=url) as http:
        answer = await http.get("/")
    policy = dict(part.split(" ", 1) for part in answer.headers["content-security-policy"].split("; "))
    assert answer.status_code == 200
    assert answer.headers["content-type"].startswith("text/html")
    assert policy["default-src"] == "'none'"
    assert policy["script-src"] == policy["connect-src"] == "'self'"
    assert answer.headers["cache-control"] == "no-cache"


async def test_an_asset_is_kept_for_ever_and_has_the_type_of_its_name(built: Path) -> None:
    async with serving_page(Page(built)) as url, httpx2.AsyncClient(base_url=url) as http:
        answer = await http.get("/assets/index-1.js")
    assert answer.text == "void 0;"
    assert "javascript" in answer.headers["content-type"]
    assert "immutable" in answer.headers["cache-control"]


@pytest.mark.parametrize("name", ["none.js", "..%2Fsecret", "%2E%2E", "%2e%2e%2fsecret", ".", "a/b.js"])
async def test_what_is_no_asset_is_not_found(built: Path, name: str) -> None:
    async with serving_page(Page(built)) as url, httpx2.AsyncClient(base_url=url) as http:
        answer = await http.get(f"/assets/{name}")
    assert answer.status_code == 404
    assert "not an asset" not in answer.text


async def test_where_the_page_is_not_built_a_page_says_how_and_runs_are_answered(tmp_path: Path) -> None:
    async with serving_page(Page(tmp_path)) as url, httpx2.AsyncClient(base_url=url) as http:
        answer = await http.get("/")
        run = await http.post("/", json=ask("/tokens 2"))
    assert answer.status_code == 503
    assert "make page" in answer.text
    assert '"RUN_FINISHED"' in run.text


async def test_a_server_without_a_page_has_nothing_for_browsers() -> None:
    async with serving_page(None) as url, httpx2.AsyncClient(base_url=url) as http:
        answer = await http.get("/")
    assert answer.status_code == 405
    assert answer.json()["code"] == "method_not_allowed"
