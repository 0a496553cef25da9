"""Time and chance: the only place where this package asks the machine for them. Everything else is given a `Clock`
and a `Mint`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Protocol, TypeAlias

Mint: TypeAlias = Callable[[str], str]
"""Makes a new id with the given prefix: `mint("run")` → `run_…`. Ids of later milliseconds sort later."""


class Clock(Protocol):
    """What time it is, and waiting for a later one."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        ...

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        ...


class SystemClock:
    """The machine's clock."""

    def now(self) -> int:
        """Milliseconds since the epoch."""
        return time.time_ns() // 1_000_000

    async def sleep(self, seconds: float) -> None:
        """Return after so many seconds."""
        await asyncio.sleep(seconds)


def mint_uuid7(prefix: str) -> str:
    """`prefix_` and a UUID version 7 (RFC 9562) as 32 hex digits: 48 bits of time, 74 of chance."""
    ms = time.time_ns() // 1_000_000
    chance = int.from_bytes(os.urandom(10), "big")
    value = (ms << 80) | (0x7 << 76) | ((chance >> 68 & 0xFFF) << 64) | (0b10 << 62) | (chance & (1 << 62) - 1)
    return f"{prefix}_{value:032x}"
