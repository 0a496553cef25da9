"""Prints what the project needs to run, one requirement a line, as pyproject.toml says."""

from __future__ import annotations

import sys
import tomllib
from pathlib import Path

PROJECT = Path(__file__).resolve().parent.parent / "pyproject.toml"


def main() -> None:
    """Print the requirements."""
    requirements = tomllib.loads(PROJECT.read_text())["project"]["dependencies"]
    sys.stdout.write("\n".join(requirements) + "\n")


if __name__ == "__main__":
    main()
