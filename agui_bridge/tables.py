"""Tables for a terminal: columns as wide as what is in them, for eyes and for `cut`. Pure."""

from __future__ import annotations

from collections.abc import Sequence

GAP = "  "


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Lines of columns under their heads; what is not there is `-`. Nothing is cut, so that ids can be copied."""
    cells = [list(heads), *([_cell(value) for value in row] for row in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return "\n".join(GAP.join(map(str.ljust, row, widths)).rstrip() for row in cells)


def _cell(value: object) -> str:
    text = "-" if value is None or value == "" else str(value)
    return "".join(character if character.isprintable() else " " for character in text)
