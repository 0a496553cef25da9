"""Write every generated page, and every generated block of a page, from the code.

`python scripts/generate_docs.py` writes, `--check` only says what differs. tests/docs/ holds the committed pages
against the same functions. A page is a function from what the file holds now to what it shall hold, so that a block
between marks can be replaced and the words around it stay.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from scripts import (
    generate_conformance,
    generate_events,
    generate_example,
    generate_http,
    generate_map,
    generate_models,
    generate_openapi,
    generate_settings,
    generate_states,
)

ROOT: Final = Path(__file__).resolve().parent.parent

PAGES: Final[dict[str, Callable[[str], str]]] = {
    "README.md": generate_example.page,
    "docs/architecture.md": generate_map.page,
    "docs/conformance.md": generate_conformance.page,
    "docs/events.md": generate_events.page,
    "docs/http.md": generate_http.page,
    "docs/openapi.yaml": generate_openapi.page,
    "docs/providers.md": generate_models.page,
    "docs/run-states.md": generate_states.page,
    "docs/settings.md": generate_settings.page,
}


def text_of(name: str) -> str:
    """What the page holds now; nothing if it is not there."""
    path = ROOT / name
    return path.read_text("utf-8") if path.is_file() else ""


def main(args: Sequence[str] | None = None) -> int:
    """Write the pages; with `--check` write nothing, and answer 1 if a page differs from the code."""
    checking = "--check" in (sys.argv[1:] if args is None else args)
    differing = 0
    for name, page in PAGES.items():
        now = text_of(name)
        text = page(now)
        if text == now:
            continue
        differing += 1
        if not checking:
            (ROOT / name).write_text(text, "utf-8")
        print(f"{name} {'differs' if checking else 'written'}")
    return 1 if checking and differing else 0


if __name__ == "__main__":
    sys.exit(main())
