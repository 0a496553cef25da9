"""A page and a server that talk while anything may go wrong but the connection, step by step as chance will have it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from tests.pure.histories import Chance, Performed, Theatre
from tests.pure.stock_page import Page

JsonObject = dict[str, Any]


@dataclass
class Turn:
    """One exchange: what the page showed and believed when it asked, and the run that came of it."""

    messages: list[JsonObject]
    state: Any
    performed: Performed
    stream: list[JsonObject]


class Conversation:
    """One thread, seen from both sides. A page may be reloaded, the thread goes on."""

    def __init__(self, chance: Chance) -> None:
        self.page = Page()
        self.theatre = Theatre(chance)
        self._chance = chance
        self._said = 0

    def step(self) -> Turn:
        """Somebody does something, and the server answers."""
        possible = [act for may, act in self._acts() if may]
        self._chance.pick(possible)()
        return self._exchange()

    def owed(self) -> list[str]:
        """The calls that the page still owes an answer."""
        return [call.call_id for call in self.theatre.thread.open_calls()]

    # --- what a person may do -------------------------------------------------------------------------------------

    def _acts(self) -> list[tuple[bool, Callable[[], None]]]:
        messages = self.page.messages
        users = any(message["role"] == "user" for message in messages)
        return [
            (True, self._speak),
            (True, self._speak_twice),
            (bool(messages), self._come_back_on_an_empty_page),
            (users, self._ask_for_another_answer),
            (users, self._edit_the_last_message),
            (bool(self.owed()), self._answer),
            (bool(self.owed()), self._answer_everything),
            (self._last_said() in ("assistant", "tool"), lambda: None),
            (self.page.state != {}, self._forget_the_state),
        ]

    def _last_said(self) -> str:
        """The role of the last message that is more than a thought."""
        return next((m["role"] for m in reversed(self.page.messages) if m["role"] != "reasoning"), "")

    def _speak(self) -> None:
        self._said += 1
        words = self._chance.pick(("tea", "jam", ""))
        self.page.messages.append({"id": f"u{self._said}", "role": "user", "content": words})

    def _speak_twice(self) -> None:
        self._speak()
        self._speak()

    def _come_back_on_an_empty_page(self) -> None:
        self.page = Page()
        self._speak()

    def _ask_for_another_answer(self) -> None:
        while self.page.messages[-1]["role"] != "user":
            self.page.messages.pop()

    def _edit_the_last_message(self) -> None:
        while self.page.messages.pop()["role"] != "user":
            pass
        self._speak()

    def _answer(self) -> None:
        self._reply(self._chance.pick(self.owed()))

    def _answer_everything(self) -> None:
        for call_id in self.owed():
            self._reply(call_id)

    def _reply(self, call_id: str) -> None:
        self._said += 1
        answer = {"id": f"a{self._said}", "role": "tool", "toolCallId": call_id, "content": "blue"}
        self.page.put_result(self._chance.pick((answer, {**answer, "error": "no paint"})))

    def _forget_the_state(self) -> None:
        self.page.state = {}
        self._speak()

    # --- what comes of it -----------------------------------------------------------------------------------------

    def _exchange(self) -> Turn:
        before = Page(self.page.messages, self.page.state)
        performed = self.theatre.run(before.messages, before.state)
        stream = performed.stream()
        self.page.apply(stream)
        return Turn(before.messages, before.state, performed, stream)
