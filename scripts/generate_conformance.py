"""The generated blocks of docs/conformance.md: every requirement with its tests, departure or gap, and the counts."""

from __future__ import annotations

from agui_check.extensions import DEPARTURES, EXTENSIONS
from agui_check.requirements import PAGES
from scripts.generate_markdown import code, replace_block, table
from tests.conformance.requirements import Entry, manifest

SHOWN = 2
"""How many tests of a requirement are named."""


def page(now: str) -> str:
    """The page with its blocks written anew."""
    entries = manifest()
    now = replace_block(now, "counts", _counts(entries))
    now = replace_block(now, "departures", table(("requirement", "what we do instead"), list(DEPARTURES.items())))
    now = replace_block(now, "extensions", table(("extension", "what it is"), list(EXTENSIONS.items())))
    now = replace_block(now, "requirements", _requirements(entries))
    return replace_block(now, "pages", table(("code", "page"), [(name, code(path)) for name, path in PAGES.items()]))


def _counts(entries: list[Entry]) -> str:
    rows: list[tuple[str, ...]] = []
    for level in ("MUST", "SHOULD", "MAY", "NOTE"):
        of_level = [entry for entry in entries if entry.requirement.level == level]
        tested = sum(bool(entry.tests) for entry in of_level)
        departing = sum(bool(entry.departure) for entry in of_level)
        rows.append((level, str(len(of_level)), str(tested), str(departing), str(len(of_level) - tested)))
    return table(("level", "requirements", "tested", "stated departures", "without a test"), rows)


def _requirements(entries: list[Entry]) -> str:
    rows = [
        (entry.requirement.id, entry.requirement.level, entry.requirement.pages, entry.requirement.text, _state(entry))
        for entry in entries
    ]
    return table(("id", "level", "page", "what is asked", "how it stands"), rows)


def _state(entry: Entry) -> str:
    if entry.gap:
        return f"not tested: {entry.gap}"
    named = ", ".join(code(test.partition("::")[2]) for test in entry.tests[:SHOWN])
    more = len(entry.tests) - SHOWN
    return named + (f" and {more} more" if more > 0 else "") + ("; departure" if entry.departure else "")
