"""What this machine cannot test is skipped by name, told at the end, and a failure where everything is required."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
TWO_TESTS = """
import pytest

@pytest.mark.needs_strace
def test_traced(): ...

def test_plain(): ...
"""


def run_pytest(folder: Path, *args: str, require_all: str) -> subprocess.CompletedProcess[str]:
    """Run two tests, one of which needs strace, where no program at all is found."""
    (folder / "test_two.py").write_text(TWO_TESTS)
    environment = {
        **os.environ,
        "PATH": "",
        "PYTHONPATH": str(ROOT),
        "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        "AGUI_BRIDGE_REQUIRE_ALL": require_all,
    }
    command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.plugin_missing", *args, "test_two.py"]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("args", [(), ("-p", "xdist", "-n", "1")], ids=["alone", "spread over workers"])
@pytest.mark.parametrize(("require_all", "code"), [("", 0), ("1", 1)], ids=["on demand", "everything required"])
def test_a_missing_tool_is_told_at_the_end(tmp_path: Path, args: tuple[str, ...], require_all: str, code: int) -> None:
    done = run_pytest(tmp_path, *args, require_all=require_all)
    assert "strace: 1 test left out, no strace; to get it: apt-get install strace" in done.stdout
    assert "1 passed, 1 skipped" in done.stdout
    assert ("AGUI_BRIDGE_REQUIRE_ALL is set" in done.stdout) == bool(require_all)
    assert done.returncode == code


def test_nothing_is_told_when_nothing_is_missing(tmp_path: Path) -> None:
    done = run_pytest(tmp_path, "-k", "plain", require_all="1")
    assert "not tested" not in done.stdout
    assert done.returncode == 0
