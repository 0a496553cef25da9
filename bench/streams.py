"""What one streamed delta costs, told as a ratio to the least that any server of this kind costs.

The floor (bench/floor.py) and the server run in turn on the same core under the same load, so that a slow or busy
machine changes both alike. `python -m bench.streams --help` shows how to name another server.
"""

from __future__ import annotations

import argparse
import os
import shlex
import socket
import statistics
import sys
import tempfile
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from string import Template

from bench.load import Load, LoadFailed, Sample, Target, run
from bench.process import Server, ServerFailed, cores

PYTHON = shlex.quote(sys.executable)
FLOOR_COMMAND = (
    f"{PYTHON} -m uvicorn bench.floor:app --port $port --loop uvloop --http httptools"
    " --no-access-log --log-level warning"
)
FLOOR_PATH = "/?n=$tokens"
SERVER_COMMAND = f"{PYTHON} -m agui_bridge.cli demo --port $port --store sqlite:///$tmp/bench.db"
SERVER_BODY = (
    '{"threadId":"bench-$number","runId":"bench-run-$number","state":{},"tools":[],"context":[],"forwardedProps":{},'
    '"messages":[{"id":"bench-user-$number","role":"user","content":"/tokens $tokens"}]}'
)


@dataclass(frozen=True, slots=True)
class Contender:
    """A server and how to ask it for a stream; `$port`, `$tmp`, `$tokens`, `$number` are filled in."""

    name: str
    command: str
    path: str
    body: str

    def server(self, folder: Path) -> Server:
        port = free_port()
        filled = Template(self.command).substitute(port=port, tmp=shlex.quote(str(folder)))
        return Server(self.name, shlex.split(filled), port, folder)

    def target(self, port: int, tokens: int) -> Target:
        body = Template(self.body)
        return Target(
            port=port,
            method="POST",
            path=Template(self.path).substitute(tokens=tokens),
            body=lambda number: body.substitute(number=number, tokens=tokens).encode(),
        )


@dataclass(frozen=True, slots=True)
class Plan:
    """How much load: `turns` of `requests` streams of `deltas` deltas, and `idle` streams one at a time."""

    deltas: int
    requests: int
    concurrency: int
    turns: int
    idle: int


class Bench:
    """One contender under load, and what was measured of it."""

    def __init__(self, contender: Contender, server: Server, plan: Plan) -> None:
        self.name = contender.name
        self._server = server
        self._plan = plan
        self._target = contender.target(server.port, plan.deltas)
        self._sent = 0
        self.rss_idle_mib = server.rss_mib()
        self.rss_after_mib = 0.0
        self.cpu_us: list[float] = []
        self.rates: list[float] = []
        self.frames = 0.0
        self.alone: list[Sample] = []

    def warm_up(self) -> None:
        self._load(self._plan.concurrency * 2, self._plan.concurrency)

    def idle(self) -> None:
        """Streams that have the server to themselves."""
        self.alone = self._load(self._plan.idle, 1).samples

    def turn(self) -> None:
        """One measured round of streams side by side."""
        before = self._server.cpu_s()
        load = self._load(self._plan.requests, self._plan.concurrency)
        spent = self._server.cpu_s() - before
        # Asked-for deltas, not frames: a server may put several deltas in one frame.
        deltas = self._plan.requests * self._plan.deltas
        self.cpu_us.append(spent / deltas * 1e6)
        self.rates.append(deltas / load.wall_s)
        self.frames = statistics.fmean(sample.frames for sample in load.samples)
        self.rss_after_mib = self._server.rss_mib()

    def _load(self, requests: int, concurrency: int) -> Load:
        load = run(self._target, requests=requests, concurrency=concurrency, first=self._sent)
        self._sent += requests
        return load


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def quantiles(seconds: Sequence[float]) -> tuple[float, float]:
    """p50 and p99 in ms."""
    cuts = statistics.quantiles(seconds, n=100, method="inclusive")
    return (cuts[49] * 1e3, cuts[98] * 1e3)


def report(floor: Bench, other: Bench, plan: Plan) -> str:
    # Neighbouring turns met the same machine: their ratio is steady where neither time alone is.
    cpu = statistics.quantiles([mine / least for mine, least in zip(other.cpu_us, floor.cpu_us, strict=True)], n=4)
    rate = statistics.median(mine / most for mine, most in zip(other.rates, floor.rates, strict=True))
    lines = [
        f"CPU per delta: {cpu[1]:.2f} x {floor.name} (half of the turns: {cpu[0]:.2f} to {cpu[2]:.2f})",
        f"deltas per second: {rate:.2f} x {floor.name}",
        "",
        f"{plan.turns} turns of {plan.requests} streams, {plan.deltas} deltas each, {plan.concurrency} at a time;"
        f" alone: {plan.idle} streams",
        f"{'':34}{floor.name:>16}{other.name:>16}",
    ]
    rows = (row_values(floor), row_values(other))
    lines += [f"{label:34}{rows[0][label]:>16}{rows[1][label]:>16}" for label in rows[0]]
    return "\n".join(lines)


def row_values(bench: Bench) -> dict[str, str]:
    first_byte = quantiles([sample.first_byte_s for sample in bench.alone])
    first_delta = quantiles([sample.first_delta_s for sample in bench.alone])
    return {
        "CPU per delta, us": f"{statistics.median(bench.cpu_us):.1f}",
        "deltas per second": f"{statistics.median(bench.rates):,.0f}",
        "frames per stream": f"{bench.frames:.0f}",
        "first event alone, ms p50 / p99": f"{first_byte[0]:.2f} / {first_byte[1]:.2f}",
        "first delta alone, ms p50 / p99": f"{first_delta[0]:.2f} / {first_delta[1]:.2f}",
        "resident memory idle, MiB": f"{bench.rss_idle_mib:.1f}",
        "resident memory after, MiB": f"{bench.rss_after_mib:.1f}",
    }


def measure(contenders: Sequence[Contender], plan: Plan) -> list[Bench]:
    """Both servers run throughout; the load goes to one at a time."""
    with ExitStack() as stack:
        folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="agui-bridge-bench-")))
        servers = [stack.enter_context(contender.server(folder)) for contender in contenders]
        os.sched_setaffinity(0, cores()[1])
        benches = [Bench(contender, server, plan) for contender, server in zip(contenders, servers, strict=True)]
        for bench in benches:
            bench.warm_up()
            bench.idle()
        for number in range(plan.turns):
            # Whoever comes second meets warmer caches, or a neighbour's load: take turns at that too.
            for bench in benches if number % 2 == 0 else reversed(benches):
                bench.turn()
        return benches


def parsed(args: Sequence[str]) -> tuple[Contender, Plan]:
    parser = argparse.ArgumentParser(prog="bench.streams", description="CPU per streamed delta against a bare server.")
    parser.add_argument("--name", default="server", help="how the table calls the server")
    parser.add_argument("--command", default=SERVER_COMMAND, help="$port and $tmp are filled in")
    parser.add_argument("--path", default="/", help="$tokens is filled in")
    parser.add_argument("--body", default=SERVER_BODY, help="$number (one a request) and $tokens are filled in")
    parser.add_argument(
        "--floor-again", action="store_true", help="measure the floor against itself: how much is noise"
    )
    for name, default in (("deltas", 200), ("requests", 40), ("concurrency", 4), ("turns", 15), ("idle", 100)):
        parser.add_argument(f"--{name}", type=int, default=default)
    got = parser.parse_args(args)
    if got.turns < 2 or got.idle < 2:
        parser.error("--turns and --idle: at least 2")
    plan = Plan(got.deltas, got.requests, got.concurrency, got.turns, got.idle)
    if got.floor_again:
        return Contender("floor-again", FLOOR_COMMAND, FLOOR_PATH, ""), plan
    return Contender(got.name, got.command, got.path, got.body), plan


def main(args: Sequence[str] | None = None) -> int:
    """Print the ratios, then the table; 1 when a server or a stream fails."""
    contender, plan = parsed(sys.argv[1:] if args is None else args)
    floor = Contender("floor", FLOOR_COMMAND, FLOOR_PATH, "")
    try:
        measured = measure((floor, contender), plan)
    except (LoadFailed, ServerFailed) as error:
        print(f"{contender.name}: {error}", file=sys.stderr)
        return 1
    print(report(measured[0], measured[1], plan))
    return 0


if __name__ == "__main__":
    sys.exit(main())
