"""What one run may use, and how patient it is: a value. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from runtime.timeouts import FIRST_TOKEN_TIMEOUT_S


@dataclass(frozen=True, slots=True)
class Limits:
    """Limits that hold for every run where its agent says nothing else. Times in seconds."""

    max_rounds: int = 50
    model_retries: int = 2
    retry_backoff_s: float = 0.5
    first_token_timeout_s: float | None = FIRST_TOKEN_TIMEOUT_S
    stop_grace_s: float = 5.0
    max_uncommitted: int = 64
    progress_interval_s: float = 0.2
    """How often a tool that streams tells of its progress at most: what no eye can follow only fills the journal."""
    fetch_media_from: frozenset[str] = frozenset()
    """The origins from which the server fetches media itself; any other URL is the provider's to fetch."""
    most_media_bytes: int = 64 * 2**20
    """The largest media that are fetched."""
    max_depth: int = 4
    """How deep below its root a child run may be."""
