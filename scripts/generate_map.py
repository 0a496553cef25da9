"""The generated blocks of docs/architecture.md: every module with the first sentence of its docstring, and the layers
as import-linter holds them.
"""

from __future__ import annotations

import ast
import re
import tomllib
from pathlib import Path
from typing import Any, Final

from scripts.generate_markdown import code, one_line, replace_block, table

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("runtime", "agui_bridge", "agui_check")

_BARE: Final = {
    "agui_bridge/_version.py": "The version, where the build reads it",
    "agui_bridge/wire/ag_ui_pb2.py": "The messages of the protobuf form; `make proto` makes them of `ag_ui.proto`",
}
"""Modules without a docstring of their own."""


def page(now: str) -> str:
    """The page with its blocks written anew."""
    for package in PACKAGES:
        now = replace_block(now, f"modules of {package}", _modules_table(package))
    return replace_block(now, "layers", _layers())


def modules(package: str) -> dict[str, str]:
    """Each module's path and the first sentence of its docstring; empty ones are left out."""
    found: dict[str, str] = {}
    for path in sorted((ROOT / package).rglob("*.py")):
        text = path.read_text("utf-8")
        if text.strip():
            words = ast.get_docstring(ast.parse(text)) or ""
            name = path.relative_to(ROOT).as_posix()
            found[name] = _BARE.get(name) or _first_sentence(words)
    return found


def contracts() -> list[dict[str, Any]]:
    """The contracts of import-linter."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))
    return project["tool"]["importlinter"]["contracts"]


def _modules_table(package: str) -> str:
    rows = [(code(path.removeprefix(f"{package}/")), words) for path, words in modules(package).items()]
    return table(("module", "what it is"), rows)


def _first_sentence(words: str) -> str:
    paragraph = one_line(words.split("\n\n")[0])
    found = re.match(r"(.+?[.:])(?: [A-Z`(]|$)", paragraph)
    return (found[1] if found else paragraph).rstrip(".:")


def _layers() -> str:
    parts: list[str] = []
    for contract in contracts():
        title = f"**{contract['name']}**"
        if contract["type"] == "layers":
            inside = contract.get("containers", [""])[0]
            where = f" (inside `{inside}`)" if inside else ""
            parts.append(
                "\n".join([f"{title}{where}, each above what follows:", "", "```", *contract["layers"], "```"])
            )
        elif contract["type"] == "independence":
            parts.append(f"{title}: {_listed(contract['modules'])}.")
        else:
            parts.append(
                f"{title}. These import none of {_listed(contract['forbidden_modules'])}: "
                f"{_listed(contract['source_modules'])}."
            )
    return "\n\n".join(parts)


def _listed(names: list[str]) -> str:
    return ", ".join(code(name) for name in names)
