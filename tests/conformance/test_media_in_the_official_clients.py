"""Pages on the official clients that send images: their next requests hold links, and everybody holds the same."""

from __future__ import annotations

import pytest

from runtime.agent import Agent
from runtime.testing import ScriptedProvider, says
from tests.official_client import NEWEST, OLDER, OfficialClient
from tests.pictures import inline, png, text
from tests.serving import serving


@pytest.mark.parametrize("client", [NEWEST, *OLDER])
async def test_a_page_that_sent_an_image_goes_on_with_its_link(client: str, official_client: OfficialClient) -> None:
    provider = ScriptedProvider(says("A cat"), says("A tabby"))
    cat = inline(png(1), metadata={"filename": "cat.png"})
    async with serving(Agent("a", model=provider), max_body_mib=0.15) as served:
        for turn, content in enumerate([[text("What is it?"), cat], "Which one?", "Sure?"]):
            verdict = await official_client.run(
                served.url + "/",
                agent=f"media-{client}",
                client=client,
                thread_id="t1",
                run_id=f"r{turn}",
                add_messages=[{"id": f"u{turn}", "role": "user", "content": content}],
            )
            verdict.assert_clean()
            assert verdict.terminal is not None
            assert verdict.terminal["type"] == "RUN_FINISHED"
            source = verdict.messages[0]["content"][1]["source"]
            assert source["type"] == "url"
            assert source["value"].startswith(f"{served.url}/api/artifacts/med_")
            assert [message["role"] for message in verdict.messages] == ["user", "assistant"] * (turn + 1)
        assert len(provider.requests) == 3
