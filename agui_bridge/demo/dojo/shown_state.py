"""What an agent's model is shown of the shared state: hooks put it behind the instructions, anew in each round."""

from __future__ import annotations

from typing import cast

import orjson

from agui_bridge import BeforeRound, ChangeRequest
from runtime.canonical import JsonObject


def shown(asked: BeforeRound, name: str) -> ChangeRequest:
    """The request, with the present value of this member of the state."""
    state = cast("JsonObject", asked.state) if isinstance(asked.state, dict) else {}
    value = orjson.dumps(state.get(name), option=orjson.OPT_INDENT_2).decode()
    return ChangeRequest(options={"instructions": f"{asked.options['instructions']}\n\nThe {name} now:\n{value}"})
