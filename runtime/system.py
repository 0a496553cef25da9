"""Time and chance: the only place where this package asks the machine for them. Everything else is given a `Clock`
and a `Mint`."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Callable
from typing import Protocol, TypeAlias

Mint: TypeAlias = Callable[[str], str]
"""Makes a new id with the given prefix: `mint("run")` → `run_…`. Later ids sort later, as far as the clock tells
them apart."""


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
    """`prefix_` and a UUID version 7 (RFC 9562, method 3) as 32 hex digits: 48 bits of milliseconds, 12 of the fraction
    of one, 62 of chance."""
    ms, ns = divmod(time.time_ns(), 1_000_000)
    chance = int.from_bytes(os.urandom(8), "big") & (1 << 62) - 1
    value = (ms << 80) | (0x7 << 76) | ((ns * 4096 // 1_000_000) << 64) | (0b10 << 62) | chance
    return f"{prefix}_{value:032x}"
