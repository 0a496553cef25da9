"""Load on a streaming server from plain sockets, far cheaper than any server that it loads.

Knows HTTP/1.1 only as far as a benchmark must: one request a connection, and frames told by their bytes.
"""

from __future__ import annotations

import selectors
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass

FRAME = b"\ndata:"
DELTA = b'"TEXT_MESSAGE_CONTENT"'
FINISH = b'"RUN_FINISHED"'
_TAIL = max(len(FRAME), len(DELTA), len(FINISH)) - 1
_STALLED_S = 30


class LoadFailed(Exception):
    """A response that is not a whole run: the numbers would mean nothing."""


@dataclass(frozen=True, slots=True)
class Target:
    """Where requests go; `body` makes the one with a given number, and each number is used once."""

    port: int
    method: str
    path: str
    body: Callable[[int], bytes]

    def request(self, number: int) -> bytes:
        body = self.body(number)
        head = (
            f"{self.method} {self.path} HTTP/1.1\r\nHost: 127.0.0.1:{self.port}\r\nConnection: close\r\n"
            f"Accept: text/event-stream\r\nContent-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
        )
        return head.encode() + body


@dataclass(frozen=True, slots=True)
class Sample:
    """One response; seconds count from the moment its connection was begun."""

    first_byte_s: float
    first_delta_s: float
    wall_s: float
    frames: int
    deltas: int


@dataclass(frozen=True, slots=True)
class Load:
    """All responses of one run of the load, and how long it took."""

    samples: list[Sample]
    wall_s: float


class _Stream:
    """One connection, from its request to the end of its response."""

    def __init__(self, target: Target, number: int) -> None:
        self.begun = time.perf_counter()
        self.socket = socket.create_connection(("127.0.0.1", target.port))
        self.socket.sendall(target.request(number))
        self.socket.setblocking(False)
        self._head: bytes | None = b""
        self._tail = b""
        self._first_byte_s = self._first_delta_s = 0.0
        self._frames = self._deltas = self._finishes = 0

    def receive(self) -> bool:
        """Take what has come; True at the end of the response. Raises LoadFailed on anything but a whole run."""
        received = self.socket.recv(262_144)
        if not received:
            return True
        if self._head is not None:
            self._head += received
            head, parted, received = self._head.partition(b"\r\n\r\n")
            if not parted:
                return False
            if not head.startswith(b"HTTP/1.1 200"):
                raise LoadFailed((head + parted + received)[:1000].decode(errors="replace"))
            self._head = None
            # The head's last line end belongs to the first frame's mark where no chunk size stands between.
            self._tail = b"\n"
        if received:
            self._count(received)
        return False

    def _count(self, received: bytes) -> None:
        now = time.perf_counter() - self.begun
        self._first_byte_s = self._first_byte_s or now
        joined = self._tail + received
        # A mark lies across two pieces, or in one of them; those wholly in the tail were counted with it.
        self._frames += joined.count(FRAME) - self._tail.count(FRAME)
        self._deltas += joined.count(DELTA) - self._tail.count(DELTA)
        self._finishes += joined.count(FINISH) - self._tail.count(FINISH)
        if self._deltas and not self._first_delta_s:
            self._first_delta_s = now
        self._tail = joined[-_TAIL:]

    def sample(self) -> Sample:
        wall_s = time.perf_counter() - self.begun
        self.socket.close()
        if self._finishes != 1:
            raise LoadFailed(f"a response with {self._finishes} RUN_FINISHED in {self._frames} frames")
        return Sample(self._first_byte_s, self._first_delta_s, wall_s, self._frames, self._deltas)


def run(target: Target, *, requests: int, concurrency: int, first: int = 0) -> Load:
    """Send `requests` requests, numbered from `first`, `concurrency` at a time.

    Raises LoadFailed on a response that is not a whole run, or when nothing comes for half a minute.
    """
    samples: list[Sample] = []
    numbers = iter(range(first, first + requests))
    begun = time.perf_counter()
    with selectors.DefaultSelector() as ready:

        def start_next() -> None:
            number = next(numbers, None)
            if number is not None:
                stream = _Stream(target, number)
                ready.register(stream.socket, selectors.EVENT_READ, stream)

        for _ in range(concurrency):
            start_next()
        while ready.get_map():
            events = ready.select(_STALLED_S)
            if not events:
                raise LoadFailed(f"nothing came for {_STALLED_S} s")
            for key, _ in events:
                stream: _Stream = key.data
                if stream.receive():
                    ready.unregister(stream.socket)
                    samples.append(stream.sample())
                    start_next()
    return Load(samples, time.perf_counter() - begun)
