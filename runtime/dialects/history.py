"""What every dialect does with a stored history before it is one that a provider accepts.

Pure. Providers want each call answered once, ids that are unique, arguments that are JSON objects. A history may lack
all of that (a run that was stopped, ids that a client chose, arguments that were cut); it is mended in the request
only, never in the store.
"""

from __future__ import annotations

from collections.abc import Sequence

import orjson

from runtime.canonical import JsonObject
from runtime.items import Content, FunctionCall, FunctionCallOutput, Item, Message, text_of

NO_OUTPUT = "Error: this call has no recorded result."
LATE_ANSWER = "Late answer to a tool call that was closed before as not answered:\n"


class Pairs:
    """The calls of a history and their outputs, by the place of the call among the items.

    An output belongs to a call before it with the same id: among those without one, to the first of the latest turn
    that has any. So an id that is used in several turns pairs within each.
    """

    def __init__(self, items: Sequence[Item]) -> None:
        self._outputs: dict[int, FunctionCallOutput] = {}
        self._taken: set[str] = set()
        waiting: dict[str, list[list[int]]] = {}
        turn = 0
        turns: dict[str, int] = {}
        for at, item in enumerate(items):
            if isinstance(item, FunctionCall):
                groups = waiting.setdefault(item.call_id, [])
                if not groups or turns.get(item.call_id) != turn:
                    groups.append([])
                    turns[item.call_id] = turn
                groups[-1].append(at)
            elif isinstance(item, FunctionCallOutput):
                turn += 1
                groups = waiting.get(item.call_id, [])
                while groups and not groups[-1]:
                    groups.pop()
                if groups:
                    self._outputs[groups[-1].pop(0)] = item
            elif isinstance(item, Message) and item.role != "assistant":
                turn += 1

    def output(self, at: int) -> FunctionCallOutput | None:
        """The output of the call that stands at this place."""
        return self._outputs.get(at)

    def unique(self, call_id: str, *, joint: str = "~") -> str:
        """The id, or one made of it if this request has it already; `joint` stands before the number."""
        wanted, number = call_id, 1
        while wanted in self._taken:
            number += 1
            wanted = f"{call_id}{joint}{number}"
        self._taken.add(wanted)
        return wanted


def arguments_of(call: FunctionCall) -> str:
    """Arguments that every server can read: one that refuses its own history would make the thread unusable."""
    written = call.arguments_json
    if written.strip() in ("", "null"):
        return "{}"
    try:
        if isinstance(orjson.loads(written), dict):
            return written
    except (orjson.JSONDecodeError, UnicodeEncodeError):
        pass
    return orjson.dumps({"INVALID_JSON": written}).decode()


def output_text(output: FunctionCallOutput | None) -> str:
    """The text of a call's output; a failure says so, a call without an output too."""
    if output is None:
        return NO_OUTPUT
    text = text_of(output.output)
    if not output.is_error or is_marked(text):
        return text
    return f"Error: {text}" if text else "Error"


def is_marked(text: str) -> bool:
    """Whether the text itself says that it tells of an error."""
    return text.lower().startswith("error")


def said_by_user(message: Message) -> Content:
    """What a user's message says to the model: an answer that came late is labelled."""
    if message.runtime_role != "late_tool_answer":
        return message.content
    said = message.content
    return LATE_ANSWER + said if isinstance(said, str) else [{"type": "text", "text": LATE_ANSWER}, *said]


def data_url(source: JsonObject, otherwise: str) -> str:
    """The `data:` URL of a source that holds its data; `otherwise` is the media type if it names none."""
    return f"data:{source.get('mime_type') or otherwise};base64,{source.get('value')}"
