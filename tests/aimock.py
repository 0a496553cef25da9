"""A running aimock: a mock of the providers' APIs that others wrote, with fixtures of ours."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tests.toolchain import NODE_DIR, node

SERVER = NODE_DIR / "node_modules" / "@copilotkit" / "aimock" / "dist" / "cli.js"


@contextmanager
def aimock_with(fixtures: Sequence[dict[str, Any]], folder: Path) -> Generator[str, None, None]:
    """Its address; the fixtures are told in a file of this folder. The first that matches a request answers it."""
    runtime = node()
    assert runtime is not None
    told = folder / "fixtures.json"
    told.write_text(json.dumps({"fixtures": fixtures}), "utf-8")
    command = [runtime, str(SERVER), "--port", "0", "--fixtures", str(told), "--validate-on-load", "--strict"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True) as process:
        try:
            yield _address(process)
        finally:
            process.kill()


def _address(process: subprocess.Popen[str]) -> str:
    assert process.stdout is not None
    said: list[str] = []
    for line in process.stdout:
        said.append(line)
        if found := re.search(r"listening on (http://\S+)", line):
            return found[1]
    raise AssertionError("aimock did not start:\n" + "".join(said))
