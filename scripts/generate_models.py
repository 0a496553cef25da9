"""The generated block of docs/providers.md: the names by which models are known, from the table that resolves them."""

from __future__ import annotations

import inspect

from runtime import providers
from runtime.scripted import ScriptedModel
from scripts.generate_markdown import code, one_line, replace_block, table


def page(now: str) -> str:
    """The page with its block written anew."""
    rows = [(code(name), words) for name, words in models().items()]
    return replace_block(now, "models", table(("name", "model"), rows))


def models() -> dict[str, str]:
    """Each form of a model's name, and the first paragraph of what its class says."""
    made = [_words(kind) for kind in providers._KINDS.values()]
    return {**dict(zip(providers.named_models(), made, strict=True)), "scripted": _words(ScriptedModel)}


def _words(made: object) -> str:
    return one_line((inspect.getdoc(made) or "").split("\n\n")[0])
