"""The examples in docs/frontends.md are pages that work, and the page says what the server does."""

from __future__ import annotations

import asyncio

import pytest

from agui_bridge.demo import demo_agent
from agui_bridge.settings import Settings
from tests.docs.pages import blocks, text_of
from tests.serving import serving
from tests.toolchain import NODE_DIR, node

BROWSER = "globalThis.window = globalThis;\n"
"""CopilotKit's core connects only in a browser, which it knows by this."""


def block_in(language: str) -> str:
    (block,) = (one for one in blocks(language) if one.page == "docs/frontends.md")
    return block.text


@pytest.mark.needs_node
async def test_the_example_of_a_page_without_react_runs() -> None:
    here = "http://127.0.0.1:8000"
    assert here in block_in("js")
    imported, _, rest = block_in("js").partition("\n\n")
    script = (
        f"{BROWSER}{imported.replace('import {', 'const {').replace('} from ', '} = await import(').rstrip(';')});\n"
    )
    async with serving(demo_agent()) as served:
        process = await asyncio.create_subprocess_exec(
            str(node()),
            *("--input-type=module", "--eval", script + rest.replace(here, served.url) + "\nprocess.exit(0);"),
            cwd=NODE_DIR,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
        )
        said, complained = await asyncio.wait_for(process.communicate(), 30)
    assert process.returncode == 0, complained.decode()
    assert "milk" in said.decode().splitlines()[-1]


async def test_the_address_of_the_examples_is_where_the_routes_are() -> None:
    prefix = Settings.model_validate({}).copilotkit_prefix
    assert f'runtimeUrl="http://127.0.0.1:8000{prefix}"' in block_in("jsx")
    async with serving(demo_agent()) as served:
        info = (await served.get(f"{prefix}/info")).document
    assert 'agentId="demo"' in block_in("jsx")
    assert list(info["agents"]) == ["demo"]


async def test_info_advertises_what_the_page_says() -> None:
    async with serving(demo_agent()) as served:
        info = (await served.get("/copilotkit/info")).document
    assert "`realtimeMetadata: false`" in text_of("docs/frontends.md")
    assert info["threadEndpoints"]["realtimeMetadata"] is False
    assert not info["audioFileTranscriptionEnabled"]
    assert not info["a2uiEnabled"]
    assert "inspectorMetadata" not in info
