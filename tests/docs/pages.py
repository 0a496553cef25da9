"""The written pages of this repository, and what stands in them: code blocks, links, headings."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]

PAGES: Final = sorted(
    [ROOT / "README.md", ROOT / "CHANGELOG.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").glob("*.md")]
)

NAMES: Final = [path.relative_to(ROOT).as_posix() for path in PAGES]

_BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Block:
    """A fenced block of code."""

    page: str
    language: str
    text: str
    line: int

    @property
    def name(self) -> str:
        """Where it stands."""
        return f"{self.page}:{self.line}"


def text_of(name: str) -> str:
    """A page's text."""
    return (ROOT / name).read_text("utf-8")


def blocks(language: str) -> list[Block]:
    """All blocks of one language, in all pages."""
    return [block for name in NAMES for block in _blocks_of(name) if block.language == language]


def _blocks_of(name: str) -> Iterator[Block]:
    text = text_of(name)
    for found in _BLOCK.finditer(text):
        yield Block(name, found[1], found[2], text.count("\n", 0, found.start()) + 1)


def prose(name: str) -> str:
    """A page's text without its fenced blocks."""
    return _BLOCK.sub("", text_of(name))


def links(name: str) -> list[str]:
    """The targets of a page's links."""
    return _LINK.findall(prose(name))


def anchors(name: str) -> set[str]:
    """The fragments by which a page's headings are reached."""
    return {re.sub(r"[^\w -]", "", title.lower()).replace(" ", "-") for title in _HEADING.findall(prose(name))}
