"""Which media OpenAI's models take, by their names: what a model cannot take makes the API refuse the whole history.

Pure. Of models of other servers nothing is known.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from typing import Final

_TEXT_ONLY: Final = re.compile(
    r"(ft:)?(gpt-3|gpt-4(-32k)?(-\d{4})?(:|$)|gpt-4-1106-preview|gpt-4-turbo-preview|o1-mini|o1-preview|o3-mini|gpt-oss)"
)


def usual_media(provider: str, model: str) -> Collection[str] | None:
    """The kinds of media that a model of this name takes; None if that is not known."""
    if provider != "openai":
        return None
    if _TEXT_ONLY.match(model):
        return ()
    return ("audio",) if "audio" in model else ("image", "document")
