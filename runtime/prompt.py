"""What goes into a model's request besides the history: pure.

The context entries of a run stand behind the agent's instructions, each with its description, so that the model sees
all of them (R-047).
"""

from __future__ import annotations

from collections.abc import Sequence

from runtime.canonical import JsonObject


def instructions(base: str, context: Sequence[JsonObject]) -> str:
    """The system text: instructions, then the client's context (`{description, value}` each)."""
    if not context:
        return base
    entries = "\n".join(f"- {entry['description']}: {entry['value']}" for entry in context)
    heading = "Context given by the application:"
    return f"{base}\n\n{heading}\n{entries}" if base else f"{heading}\n{entries}"
