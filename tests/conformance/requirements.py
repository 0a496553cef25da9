"""The manifest: each requirement of AG-UI with its level and source page, and what this server has to say to it.

Level, pages and words stand in `agui_check.requirements`, departures in `agui_check.extensions`; which tests hold a
requirement is read from their markers `requirement("R-…")`. Only what no test holds is written here, with its reason.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Final

from agui_check.extensions import DEPARTURES
from agui_check.requirements import REQUIREMENTS, Requirement

TESTS: Final = Path(__file__).resolve().parents[1]

_DRAFT = "it speaks of the draft of 1.1; the field is unknown material under 1.0 and is left out"

GAPS: Final[dict[str, str]] = {
    "R-020": "a bare wildcard gets SSE: what is tested is the departure, by the checker",
    "R-023": "the server offers protobuf",
    "R-032": "it is a note on what encoders lose, and asks for nothing",
    "R-052": "the input is not echoed",
    "R-125": "what tools and models say is not searched for secrets; the server puts none in",
    "R-138": _DRAFT,
    "R-139": _DRAFT,
    "R-166": "it leaves coverage and expiry to clients",
    "R-183": "where metadata lands is the client's doing; ours stands on messages alone",
}
"""Requirements that no test holds, and why."""


@dataclass(frozen=True, slots=True)
class Entry:
    """A requirement with the tests that hold it, or why there are none, and the stated departure if there is one."""

    requirement: Requirement
    tests: tuple[str, ...]
    gap: str
    departure: str


@cache
def marked() -> dict[str, tuple[str, ...]]:
    """The tests by the requirements that they are marked with, as `folder/file.py::test_name`."""
    found: dict[str, list[str]] = {}
    for path in sorted(TESTS.rglob("test_*.py")):
        if "node_modules" in path.parts:
            continue
        for name, ids in _marks(ast.parse(path.read_text("utf-8"))):
            for id_ in ids:
                found.setdefault(id_, []).append(f"{path.relative_to(TESTS).as_posix()}::{name}")
    return {id_: tuple(tests) for id_, tests in found.items()}


def _marks(tree: ast.Module) -> Iterator[tuple[str, list[str]]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for decorator in node.decorator_list:
                if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.requirement":
                    yield node.name, [ast.literal_eval(argument) for argument in decorator.args]


def manifest() -> list[Entry]:
    """Every requirement, in order."""
    tests = marked()
    return [
        Entry(each, tests.get(each.id, ()), GAPS.get(each.id, ""), DEPARTURES.get(each.id, ""))
        for each in REQUIREMENTS.values()
    ]
