"""How pages made for LangGraph are asked: by a CUSTOM `on_interrupt` in front of the run's end.

Pure. The value of each is that of the question (see `value_of`), as text: JSON, unless it is a text itself.
`LEGACY` pages are told of no outcome, because those that know outcomes would read it and never the value; `BOTH` is
for pages of either kind.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, cast

import orjson

from agui_bridge.wire import events as agui
from agui_bridge.wire.events import AguiEvent
from agui_bridge.wire.versions import Shape
from runtime.agent import BOTH, STANDARD
from runtime.canonical import Json, JsonObject

ON_INTERRUPT: Final = "on_interrupt"


def value_of(interrupt: JsonObject) -> Json:
    """What a question is to such a page, from the interrupt as AG-UI shows it: the `value` in its metadata, or what a
    graph interrupted with; else the interrupt itself."""
    metadata: JsonObject = interrupt.get("metadata") or {}
    if "value" in metadata:
        return metadata["value"]
    graph = metadata.get("langgraph")
    return cast("JsonObject", graph)["raw"] if isinstance(graph, dict) and "raw" in graph else interrupt


@dataclass(frozen=True, slots=True)
class ForLangGraphPages:
    """The shape `below`, with questions as such pages read them. `style` is `legacy` or `both`."""

    below: Shape
    style: str

    def __call__(self, events: Sequence[AguiEvent]) -> Sequence[AguiEvent]:
        """The events as these pages read them."""
        return self.below([told for event in events for told in self._told(event)])

    def _told(self, event: AguiEvent) -> Sequence[AguiEvent]:
        outcome = event.get("outcome")
        if event["type"] != "RUN_FINISHED" or outcome is None or outcome["type"] != "interrupt":
            return (event,)
        asked = [agui.custom(ON_INTERRUPT, _text(value_of(each))) for each in outcome["interrupts"]]
        if self.style == BOTH:
            return (*asked, event)
        return (*asked, {name: member for name, member in event.items() if name != "outcome"})


def styled(shape: Shape, style: str) -> Shape:
    """The shape for pages of an agent with this `interrupt_style`."""
    return shape if style == STANDARD else ForLangGraphPages(shape, style)


def _text(value: Json) -> str:
    return value if isinstance(value, str) else orjson.dumps(value).decode()
