"""Markdown as the generators write it: tables, and blocks between marks in a page that people write."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

NOTE = "<!-- Written by scripts/generate_docs.py (`make docs`) from the code. Change the code, not this page. -->"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table; a bar within a cell is escaped."""
    lines = [_row(head), "|" + "---|" * len(head)]
    lines += [_row(row) for row in rows]
    return "\n".join(lines)


def code(text: str) -> str:
    """`text`."""
    return f"`{text}`"


def replace_block(page: str, name: str, text: str) -> str:
    """The page with the block `name` saying `text`. Raises ValueError if the page has no such block."""
    begin, end = f"<!-- generated: {name} -->", f"<!-- end: {name} -->"
    pattern = re.compile(f"{re.escape(begin)}.*?{re.escape(end)}", re.DOTALL)
    if not pattern.search(page):
        raise ValueError(f"The page has no block {name!r}.")
    return pattern.sub(lambda _: f"{begin}\n{text}\n{end}", page, count=1)


def block_of(page: str, name: str) -> str:
    """What the block `name` of the page says now. Raises ValueError if there is none."""
    found = re.search(
        f"<!-- generated: {re.escape(name)} -->\n(.*?)\n?<!-- end: {re.escape(name)} -->", page, re.DOTALL
    )
    if found is None:
        raise ValueError(f"The page has no block {name!r}.")
    return found[1]


def one_line(text: str) -> str:
    """Words on one line."""
    return " ".join(text.split())


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(one_line(cell).replace("|", "\\|") for cell in cells) + " |"
