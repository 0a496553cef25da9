"""Worker processes: one address, many servers behind it, and a process above them that keeps them there.

The parent takes the address and starts each worker with it. A worker that dies is replaced. SIGTERM or SIGINT ends all
of them, each as a server ends; SIGHUP exchanges one after the other: the next has to listen before the last one drains,
so that what it hands over is taken. If the parent dies, its workers end as well.
"""

from __future__ import annotations

import logging
import os
import signal
import socket
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from multiprocessing import get_context
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from types import FrameType
from typing import Any, TypeAlias, cast

log = logging.getLogger("agui_bridge")

PAUSE_S = 1.0
"""How often it is looked whether there is anything to do, at least, in seconds."""

START_S = 60.0
"""How long a new worker may take until it listens, before it is given up in an exchange."""

Work: TypeAlias = Callable[[list[socket.socket], Callable[[], None]], None]
"""What a worker does with the sockets; it says when it listens. It is to be picklable."""


@dataclass(eq=False, slots=True)
class _Worker:
    """A worker process, and the parent's end of what the two hold between them."""

    process: SpawnProcess
    line: Connection[Any, Any]
    listens: bool = False
    told: int = 0
    """How often it was told to end."""


@dataclass(slots=True)
class Workers:
    """Runs `count` processes that all do `work` on the same sockets."""

    count: int
    work: Work
    sockets: list[socket.socket]
    on_listening: Callable[[], None] = lambda: None
    _workers: list[_Worker] = field(default_factory=list[_Worker])
    _ending: int = 0
    _exchange: bool = False
    _told: bool = False

    def run(self) -> None:
        """Start the workers; return when all have ended because they were told to."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._end)
        if hasattr(signal, "SIGHUP"):
            signal.signal(signal.SIGHUP, self._asked_to_exchange)
        self._workers = [self._start() for _ in range(self.count)]
        while self._workers:
            wait([each.process.sentinel for each in self._workers], PAUSE_S)
            self._pass_on()
            self._listen()
            self._bury()
            if self._exchange and not self._ending:
                self._exchange = False
                self._exchange_all()

    def _start(self) -> _Worker:
        context = get_context("spawn")
        ours, theirs = context.Pipe()
        process = context.Process(target=_run, args=(self.work, self.sockets, theirs), name="agui-bridge worker")
        process.start()
        theirs.close()
        return _Worker(process, cast("Connection[Any, Any]", ours))  # on Windows a class of its own

    def _listen(self, worker: _Worker | None = None, patience_s: float = 0.0) -> None:
        """Hear which workers listen by now."""
        for each in [worker] if worker is not None else self._workers:
            try:
                while each.line.poll(patience_s):
                    each.listens, patience_s = each.line.recv(), 0.0
            except (EOFError, OSError):
                continue
            if each.listens and not self._told:
                self._told = True
                self.on_listening()

    def _bury(self) -> None:
        """Let go of workers that have ended, and replace those that nobody told to."""
        for each in [each for each in self._workers if not each.process.is_alive()]:
            self._workers.remove(each)
            each.process.join()
            if not self._ending and not each.listens:
                log.error("a worker did not start (exit status %s); the others are ended", each.process.exitcode)
                self._end(signal.SIGTERM, None)
            elif not self._ending:
                log.error("a worker has died (exit status %s) and is replaced", each.process.exitcode)
                self._workers.append(self._start())

    def _exchange_all(self) -> None:
        """Replace each worker by a new one, one after the other."""
        for old in list(self._workers):
            new = self._start()
            self._workers.append(new)
            self._wait_for(new)
            if self._ending:
                return
            if not new.listens:
                log.error("a new worker does not listen: the old ones stay")
                self._let_go(new)
                return
            self._let_go(old)
            if self._ending:
                return
        log.info("all workers were exchanged")

    def _wait_for(self, worker: _Worker) -> None:
        """Return when the worker listens, has ended, took too long, or everything is to end."""
        deadline = time.monotonic() + START_S
        while not worker.listens and worker.process.is_alive() and time.monotonic() < deadline and not self._ending:
            self._listen(worker, PAUSE_S)

    def _let_go(self, worker: _Worker) -> None:
        """End one worker and wait for it."""
        worker.process.terminate()
        worker.told += 1
        while worker.process.is_alive():
            wait([worker.process.sentinel], PAUSE_S)
            self._pass_on()
        worker.process.join()
        self._workers.remove(worker)

    def _end(self, number: int, frame: FrameType | None) -> None:
        """A second signal is passed on, too: it ends them at once."""
        self._ending += 1
        self._pass_on()

    def _pass_on(self) -> None:
        for each in self._workers:
            while each.told < self._ending and each.process.is_alive():
                each.told += 1
                each.process.terminate()

    def _asked_to_exchange(self, number: int, frame: FrameType | None) -> None:
        self._exchange = True


def _run(work: Work, sockets: list[socket.socket], line: Connection) -> None:
    """A worker's life."""
    threading.Thread(target=_watch, args=(line,), daemon=True).start()
    work(sockets, lambda: line.send(True))


def _watch(line: Connection) -> None:
    """End this process as the parent would, once that is gone."""
    try:
        line.recv()
    except (EOFError, OSError):
        os.kill(os.getpid(), signal.SIGTERM)
