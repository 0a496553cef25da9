"""A server as a child process on a core of its own, and what it costs: CPU time and resident memory.

Reads the kernel's own accounts, so it works on Linux alone.
"""

from __future__ import annotations

import os
import subprocess
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

STARTS_WITHIN_S = 60


class ServerFailed(Exception):
    """The server ended, or did not answer in time; the message holds what it said."""


def cores() -> tuple[set[int], set[int]]:
    """The core of the server and the core of the load; the same ones where there is only one."""
    own = sorted(os.sched_getaffinity(0))
    return ({own[0]}, {own[1]}) if len(own) > 1 else ({own[0]}, {own[0]})


class Server:
    """A running server; a context manager that ends it."""

    def __init__(self, name: str, command: Sequence[str], port: int, folder: Path) -> None:
        self.name = name
        self.port = port
        self._log = folder / f"{name}.log"
        before = os.sched_getaffinity(0)
        # The child inherits the core, and so does each thread that it starts later.
        os.sched_setaffinity(0, cores()[0])
        try:
            with self._log.open("wb") as said:
                self._process = subprocess.Popen(command, stdout=said, stderr=subprocess.STDOUT)
        finally:
            os.sched_setaffinity(0, before)

    def __enter__(self) -> Server:
        try:
            self._wait_until_healthy()
        except BaseException:
            self._end()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._end()

    def cpu_s(self) -> float:
        """CPU seconds, user and system, of all its threads since it started."""
        # The clock that clock_getcpuclockid() answers for a process; /proc counts in steps of 10 ms.
        clock = (~self._process.pid << 3) | 2
        return time.clock_gettime(clock)

    def rss_mib(self) -> float:
        """Resident memory in MiB."""
        pages = int(Path(f"/proc/{self._process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20

    def _wait_until_healthy(self) -> None:
        deadline = time.monotonic() + STARTS_WITHIN_S
        while time.monotonic() < deadline and self._process.poll() is None:
            try:
                with urllib.request.urlopen(f"http://127.0.0.1:{self.port}/health", timeout=5):
                    return
            except OSError:
                time.sleep(0.05)
        raise ServerFailed(f"{self.name} does not answer:\n{self._log.read_text(errors='replace')[-3000:]}")

    def _end(self) -> None:
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
