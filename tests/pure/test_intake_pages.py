"""Whatever a page does with its history, the model sees what follows from what the page shows, and each thing once."""

from __future__ import annotations

import copy
from collections import Counter
from dataclasses import dataclass
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agui_bridge.transcript import transcript
from runtime import events as e
from runtime.thread import Thread
from tests.pure.agui_rules import Rules
from tests.pure.pages import Answered, Asked, Foreign, Late, Made, Node, Stage, Story, in_short
from tests.pure.stock_page import Page

JsonObject = dict[str, Any]
NEXT = st.integers(min_value=0, max_value=3)
ANSWERS = st.sampled_from(("text", "text", "look", "pick", "two picks", "pick and look"))
WORDS = st.sampled_from(("", "", "tea"))


@dataclass
class Bookmark:
    """What a page showed once, whole and under ids that the server knows."""

    messages: list[JsonObject]
    nodes: list[Node]


class Pages(RuleBasedStateMachine):
    """One thread and a page that does what it likes."""

    @initialize(answers=ANSWERS)
    def begin(self, answers: str) -> None:
        self.stage, self.page, self.story = Stage(), Page(), Story()
        self.bookmarks: list[Bookmark] = []
        self.count = 0
        self.own_ids = False
        self.say(answers, thinks=False, words="")

    # --- what a person does ---------------------------------------------------------------------------------------

    @rule(answers=ANSWERS, thinks=st.booleans(), words=WORDS)
    def say(self, answers: str, thinks: bool, words: str) -> None:
        """The next message."""
        self.ask(answers, thinks=thinks, words=words)

    @rule(answers=ANSWERS, lost=st.lists(st.integers(min_value=0, max_value=20), max_size=4), window=NEXT)
    def say_and_have_lost_something(self, answers: str, lost: list[int], window: int) -> None:
        """The next message, on a page that lost answers, or what stood before one of its messages."""
        messages = self.page.messages
        gone = [m for i, m in enumerate(messages) if i in lost and m["role"] != "user" and m["id"] != "foreign"]
        users = [i for i, m in enumerate(messages) if m["role"] == "user"]
        first = 0 if self.own_ids else users[min(window, len(users) - 1)]
        self.page.messages = [m for m in messages[first:] if m not in gone]
        self.ask(answers)

    @rule(back=NEXT, same_id=st.booleans(), answers=ANSWERS)
    def edit(self, back: int, same_id: bool, answers: str) -> None:
        """Another wording of an earlier message."""
        if (place := self.user_on_page(back)) is None:
            return
        old = self.page.messages[place]
        self.page.messages = self.page.messages[:place]
        self.story.cut(self.story.branch.index(self.story.users()[-1 - back]))
        self.ask(answers, id_=old["id"] if same_id or not place else None)

    @rule(back=NEXT, answers=ANSWERS)
    def ask_again(self, back: int, answers: str) -> None:
        """Another answer to an earlier message."""
        if (place := self.user_on_page(back)) is None:
            return
        self.page.messages = self.page.messages[: place + 1]
        self.story.cut(self.story.branch.index(self.story.users()[-1 - back]) + 1)
        self.late_ones()
        self.post(answers, asked=True)

    @rule(back=NEXT, answers=ANSWERS, speaks=st.booleans())
    def cut(self, back: int, answers: str, speaks: bool) -> None:
        """Throw the last messages away, and perhaps go on from there."""
        place = self.user_on_page(back)
        if place is None or place == 0:
            return
        self.page.messages = self.page.messages[:place]
        self.story.cut(self.story.branch.index(self.story.users()[-1 - back]))
        if speaks:
            self.ask(answers)
        else:
            self.late_ones()
            self.post(answers, asked=False)

    @precondition(lambda self: self.bookmarks)
    @rule(which=st.integers(min_value=0, max_value=50), answers=ANSWERS, speaks=st.booleans())
    def go_back_to_what_was_shown_once(self, which: int, answers: str, speaks: bool) -> None:
        """Another branch, or an older state of this one."""
        there = self.bookmarks[which % len(self.bookmarks)]
        self.page.messages = copy.deepcopy(there.messages)
        self.own_ids = False
        self.story.go_to(there.nodes)
        if speaks:
            self.ask(answers)
        else:
            self.late_ones()
            self.post(answers, asked=False)

    @precondition(lambda self: self.story.owed())
    @rule(answers=ANSWERS, everything=st.booleans(), speaks=st.booleans())
    def answer_calls(self, answers: str, everything: bool, speaks: bool) -> None:
        """The page's tools are done, or the first of them is."""
        for call in self.story.owed()[: None if everything else 1]:
            self.reply(call)
            call.output = "blue"
        if speaks:
            self.ask(answers)
        else:
            self.late_ones()
            self.post(answers, asked=not self.story.owed())

    @rule(answers=ANSWERS, speaks=st.booleans())
    def answer_too_late(self, answers: str, speaks: bool) -> None:
        """A page's tool is done when the person has gone on."""
        late = [c for c in self.story.calls() if c.output == "Not answered by the client." and c.late is None]
        if not late or self.story.owed():
            return
        self.reply(late[0])
        late[0].late = Late(late[0], "blue")
        if speaks:
            self.ask(answers)
        else:
            self.late_ones()
            self.post(answers, asked=False)

    @rule(answers=ANSWERS)
    def come_with_ids_of_its_own(self, answers: str) -> None:
        """A page that keeps its history itself, under other ids."""
        for message in self.page.messages:
            message["id"] = f"own-{self.number()}"
        self.own_ids = True
        self.ask(answers)

    @rule(answers=ANSWERS, place=NEXT)
    def show_what_nobody_said(self, answers: str, place: int) -> None:
        """A message of the page's own, before one of its users' messages or at the end."""
        at = self.user_on_page(place - 1) if place else None
        if place and not at:
            return
        node = self.story.users()[-place] if place else None
        self.page.messages.insert(
            len(self.page.messages) if at is None else at,
            {"id": f"foreign-{self.number()}", "role": "assistant", "content": "I am not yours"},
        )
        self.story.branch.insert(self.story.branch.index(node) if node else len(self.story.branch), Foreign())
        self.ask(answers)

    # --- what comes of it -----------------------------------------------------------------------------------------

    @invariant()
    def everything_agrees(self) -> None:
        """The fold of the journal, the one in memory, the page and the reference."""
        told = Thread("thr_1")
        for run in self.stage.runs:
            for record in run.records:
                told.apply(run.run_id, run.base, record.seq, record.event)
        assert told.items() == self.stage.thread.items()
        assert transcript(told) == transcript(self.stage.thread)
        assert in_short(told.items()) == self.story.prompt()
        ids = [message["id"] for message in self.stage.shown()]
        assert len(ids) == len(set(ids))

    @invariant()
    def nothing_is_stored_twice(self) -> None:
        """Each message and each output is one fact."""
        facts: Counter[tuple[str, str, str]] = Counter()
        for run in self.stage.runs:
            for record in run.records:
                match record.event:
                    case e.MessageCompleted(role="user"):
                        facts["message", record.event.message_id, str(record.event.content)] += 1
                    case e.ToolCallCompleted():
                        facts["output", record.event.tool_call_id, ""] += 1
                    case e.HistorySeeded():
                        facts.update(("seeded", message["id"], "") for message in record.event.messages)
                    case _:
                        pass
        assert facts == dict.fromkeys(facts, 1)

    # --- how it is done -------------------------------------------------------------------------------------------

    def number(self) -> int:
        self.count += 1
        return self.count

    def user_on_page(self, back: int) -> int | None:
        """The place on the page of the last user message but so many; None if there is none, or if a page with ids of
        its own could not be told from one that sends only what is new."""
        users = [i for i, message in enumerate(self.page.messages) if message["role"] == "user"]
        if back >= len(users) or (self.own_ids and back == len(users) - 1):
            return None
        return users[-1 - back]

    def ask(self, answers: str, *, id_: str | None = None, thinks: bool = False, words: str = "") -> None:
        self.story.close()
        number = self.number()
        text = words or f"say {number}"
        self.page.messages.append({"id": id_ or f"u{number}", "role": "user", "content": text})
        self.late_ones()
        self.story.branch.append(Asked(text))
        self.post(answers, asked=True, thinks=thinks)

    def late_ones(self) -> None:
        self.story.late_ones_shown(m["toolCallId"] for m in self.page.messages if m["role"] == "tool")

    def reply(self, call: Made) -> None:
        self.page.put_result({"id": f"a{self.number()}", "role": "tool", "toolCallId": call.id, "content": "blue"})

    def post(self, answers: str, *, asked: bool, thinks: bool = False) -> None:
        answer = self.answer(answers)
        prompts = len(self.stage.prompts)
        performed = self.stage.perform(answer, self.page.messages, self.page.state, thinks=thinks)
        assert len(self.stage.prompts) - prompts == asked
        if asked:
            assert self.stage.prompts[-1] == self.story.prompt()
            for call in answer.calls:
                call.output = "42" if call.name == "lookup" else None
            self.story.branch.append(answer)
        self.take_in(performed.stream())
        started = performed.records[0].event
        assert isinstance(started, e.RunStarted)
        restated = any(event["type"] == "MESSAGES_SNAPSHOT" for event in performed.opening.events)
        assert ("messages" in started.snapshots) == restated
        if not self.own_ids:
            self.bookmarks.append(Bookmark(copy.deepcopy(self.page.messages), list(self.story.branch)))

    def take_in(self, stream: list[JsonObject]) -> None:
        rules = Rules()
        rules.check(stream)
        self.page.apply(stream)
        assert not self.page.surprises
        shown = self.stage.shown()
        if self.own_ids:
            assert [said(m) for m in self.page.messages if m["role"] != "reasoning"] == [
                said(m) for m in shown if m["role"] != "reasoning"
            ]
        else:
            ids = {message["id"] for message in self.page.messages}
            assert self.page.messages == [m for m in shown if m["role"] != "reasoning" or m["id"] in ids]

    def answer(self, kind: str) -> Answered:
        words = f"answer {self.number()}"
        match kind:
            case "look":
                return Answered([("wait", [Made("lookup")]), (words, [])])
            case "pick":
                return Answered([("", [Made("pick")])])
            case "two picks":
                return Answered([(words, [Made("pick"), Made("pick")])])
            case "pick and look":
                return Answered([("", [Made("pick"), Made("lookup")])])
            case _:
                return Answered([(words, [])])


def said(message: JsonObject) -> tuple[str, str, str]:
    """A message without its id."""
    return message["role"], message.get("content", ""), message.get("toolCallId", "")


TestPages = Pages.TestCase
TestPages.settings = settings(stateful_step_count=10)
