"""An SDK's client as a model holds it: one that was given belongs to its giver, one of its own is closed with it.

Connections belong to an event loop. A model may outlive its loop (a server that is stopped and started again, a test),
so a closed client is opened anew when it is needed next.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Generic, Protocol, TypeVar


class _Client(Protocol):
    """What every SDK's client can do."""

    def is_closed(self) -> bool: ...
    async def close(self) -> None: ...


C = TypeVar("C", bound=_Client)


class SdkClient(Generic[C]):
    """`reopen` makes an open client of a closed one; None for a client that was given."""

    def __init__(self, client: C, reopen: Callable[[C], C] | None) -> None:
        self._client = client
        self._reopen = reopen

    @property
    def open(self) -> C:
        """The client; one of our own is open."""
        if self._reopen is not None and self._client.is_closed():
            self._client = self._reopen(self._client)
        return self._client

    async def aclose(self) -> None:
        """Let go of the connections of a client of our own."""
        if self._reopen is not None:
            await self._client.close()
