"""Media that the server fetches itself: only from origins that somebody has allowed, without redirects, up to a size.

Any other URL is handed to the provider as it is, if its format has a place for one, and is never asked for here.
"""

from __future__ import annotations

import logging
from collections.abc import Collection
from typing import Final
from urllib.parse import urlsplit

import httpx2

from runtime.media import Inline

log = logging.getLogger("agui_bridge.media")

TIMEOUT_S: Final = 20.0


def is_allowed(url: str, origins: Collection[str]) -> bool:
    """Whether the URL is of one of these origins (`https://files.example`, with a port if it is not the usual one)."""
    try:
        parts = urlsplit(url)
        port = f":{parts.port}" if parts.port is not None else ""
    except ValueError:
        return False
    host = parts.hostname or ""
    origin = f"{parts.scheme}://{f'[{host}]' if ':' in host else host}{port}".lower()
    return parts.scheme in ("http", "https") and parts.username is None and origin in origins


async def fetch(url: str, most_bytes: int) -> Inline | None:
    """What is there; None, and a line in the log, if it cannot be had."""
    try:
        async with (
            httpx2.AsyncClient(follow_redirects=False, timeout=TIMEOUT_S) as client,
            client.stream("GET", url) as answer,
        ):
            if answer.status_code != 200:
                log.warning("media could not be fetched: %s answered %s", urlsplit(url).hostname, answer.status_code)
                return None
            data = bytearray()
            async for piece in answer.aiter_bytes():
                data += piece
                if len(data) > most_bytes:
                    log.warning("media could not be fetched: more than %s bytes came", most_bytes)
                    return None
            return Inline(bytes(data), answer.headers.get("content-type", ""))
    except (httpx2.HTTPError, httpx2.InvalidURL) as error:
        log.warning("media could not be fetched: %s", type(error).__name__)
        return None
