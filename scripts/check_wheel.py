"""Prove a built wheel in an empty environment: it installs alone, tells its version, serves a run, and ends on SIGTERM.

Needs only the standard library. Usage: python scripts/check_wheel.py [WHEEL], by default the one in dist/.
"""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import tempfile
import time
import urllib.error
import urllib.request
from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
STARTS_WITHIN_S = 60
ENDS_WITHIN_S = 10
RUN_INPUT: dict[str, object] = {
    "threadId": "thread-wheel",
    "runId": "run-wheel",
    "state": {},
    "messages": [{"id": "message-wheel", "role": "user", "content": "/tokens 5"}],
    "tools": [],
    "context": [],
    "forwardedProps": {},
}


# Neither this checkout nor settings of whoever runs the check may help the wheel.
EMPTY_ENVIRON = {
    name: value for name, value in os.environ.items() if name != "PYTHONPATH" and not name.startswith("AGUI_BRIDGE_")
}


class CheckFailed(Exception):
    """The wheel is not fit to be handed out; the message says what happened."""


def find_wheel(args: list[str]) -> Path:
    wheels = [Path(arg).resolve() for arg in args] or sorted((ROOT / "dist").glob("*.whl"))
    if len(wheels) != 1 or not wheels[0].is_file():
        raise CheckFailed(f"expected one wheel, found {[str(wheel) for wheel in wheels]}; run `make wheel` first")
    return wheels[0]


def install(wheel: Path, folder: Path) -> Path:
    """Install into a fresh environment; the command's path."""
    environment = folder / "environment"
    subprocess.run([sys.executable, "-m", "venv", environment], check=True)
    pip = [environment / "bin" / "python", "-m", "pip", "-qq", "--disable-pip-version-check"]
    subprocess.run([*pip, "install", wheel], check=True, cwd=folder, env=EMPTY_ENVIRON)
    return environment / "bin" / "agui-bridge"


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


@contextmanager
def server(command: Path, folder: Path, port: int) -> Generator[subprocess.Popen[bytes]]:
    """The demo while it answers; killed afterwards if it is still there."""
    log = folder / "server.log"
    with log.open("wb") as said:
        options = ["demo", "--port", str(port), "--store", "memory:"]
        process = subprocess.Popen(
            [command, *options], cwd=folder, env=EMPTY_ENVIRON, stdout=said, stderr=subprocess.STDOUT
        )
        try:
            yield process
        except (CheckFailed, OSError) as error:
            raise CheckFailed(f"{error}\nthe server said:\n{log.read_text(errors='replace')[-4000:]}") from error
        finally:
            process.kill()
            process.wait()


def wait_until_healthy(process: subprocess.Popen[bytes], url: str) -> None:
    deadline = time.monotonic() + STARTS_WITHIN_S
    while time.monotonic() < deadline:
        if process.poll() is not None:
            raise CheckFailed(f"the server ended by itself with {process.returncode}")
        try:
            with urllib.request.urlopen(f"{url}/health", timeout=5):
                return
        except OSError:
            time.sleep(0.1)
    raise CheckFailed(f"the server did not answer within {STARTS_WITHIN_S} s")


def check_run(url: str) -> None:
    """One run by POST is answered with a whole event stream."""
    headers = {"content-type": "application/json", "accept": "text/event-stream"}
    request = urllib.request.Request(f"{url}/", json.dumps(RUN_INPUT).encode(), headers)
    try:
        with urllib.request.urlopen(request, timeout=30) as response:
            content_type: str = response.headers.get_content_type()
            body: bytes = response.read()
    except urllib.error.HTTPError as error:
        with error:
            raise CheckFailed(f"the run was refused: {error.code} {error.read()[:500]!r}") from error
    if content_type != "text/event-stream":
        raise CheckFailed(f"the run was answered with {content_type}: {body[:500]!r}")
    if b'"RUN_FINISHED"' not in body:
        raise CheckFailed(f"the stream has no RUN_FINISHED: {body[-500:]!r}")


def check_end(process: subprocess.Popen[bytes]) -> float:
    """Seconds from SIGTERM to the end of the process."""
    begun = time.monotonic()
    process.send_signal(signal.SIGTERM)
    try:
        code = process.wait(ENDS_WITHIN_S)
    except subprocess.TimeoutExpired as error:
        raise CheckFailed(f"the server was still there {ENDS_WITHIN_S} s after SIGTERM") from error
    if code not in (0, -signal.SIGTERM):
        raise CheckFailed(f"the server ended with {code} on SIGTERM")
    return time.monotonic() - begun


def check(wheel: Path) -> None:
    with tempfile.TemporaryDirectory(prefix="agui-bridge-wheel-") as name:
        folder = Path(name)
        command = install(wheel, folder)
        print(f"{wheel.name} is installed alone", flush=True)
        asked = [command, "--version"]
        told = subprocess.run(asked, cwd=folder, env=EMPTY_ENVIRON, capture_output=True, text=True, check=True)
        version = wheel.name.split("-")[1]
        if version not in told.stdout:
            raise CheckFailed(f"--version says {told.stdout!r}, the wheel is {version}")
        print(told.stdout.strip(), flush=True)
        port = free_port()
        url = f"http://127.0.0.1:{port}"
        with server(command, folder, port) as process:
            wait_until_healthy(process, url)
            check_run(url)
            print("the demo serves a run", flush=True)
            print(f"SIGTERM ends it in {check_end(process):.1f} s", flush=True)


def main() -> int:
    try:
        check(find_wheel(sys.argv[1:]))
    except (CheckFailed, subprocess.CalledProcessError) as error:
        print(f"the wheel fails: {error}", file=sys.stderr)
        return 1
    print("the wheel is good")
    return 0


if __name__ == "__main__":
    sys.exit(main())
