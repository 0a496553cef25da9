"""What of a shown history is new, and what follows: the table of the intake, row by row."""

from __future__ import annotations

from typing import Any

import pytest

from agui_bridge.intake import IntakePolicy, Plan, reconcile
from agui_bridge.interrupts import Answerer
from agui_bridge.page_tools import client_tools
from agui_bridge.run_input import parse
from runtime import events as e
from runtime.canonical import digest
from runtime.ending import ending
from runtime.items import FunctionCallOutput, Message
from runtime.thread import Thread

JsonObject = dict[str, Any]


class Told:
    """A thread that is told facts, run by run."""

    def __init__(self) -> None:
        self.thread = Thread("thr")
        self._runs = 0

    def run(self, *facts: e.Event, end: str = "completed", running: bool = False) -> Told:
        """A run with these facts of its intake and an answer `answer N` (unless it is cut)."""
        self._runs += 1
        n, base = self._runs, self.thread.position
        message = f"m{n}"
        said: list[e.Event] = [
            e.RunStarted(0, f"r{n}", "a", "", []),
            *facts,
            e.MessageStarted(message, "assistant"),
            e.RoundStarted(1, "model", "testing", {}),
            e.MessageDelta(message, "p0", 0, f"answer {n}"),
        ]
        if end == "completed":
            parts = [{"part_id": "p0", "kind": "text"}]
            said.append(e.RoundCompleted(1, "final_response", "stop", parts, []))
        self._tell(base, said)
        if not running:
            terminal = {
                "completed": e.RunCompleted(message),
                "failed": e.RunFailed({"code": "x", "message": "x", "retryable": False}),
            }[end]
            self._tell(base, ending(self.thread, f"r{n}", terminal), start=len(said) + 1)
        return self

    def asks(self, *calls: str, user: str = "u1") -> Told:
        """A run that ends with these frontend calls open."""
        self._runs += 1
        n, base = self._runs, self.thread.position
        message = f"m{n}"
        said: list[e.Event] = [
            e.RunStarted(0, f"r{n}", "a", "", []),
            says(user, "pick"),
            e.MessageStarted(message, "assistant"),
            e.RoundStarted(1, "model", "testing", {}),
        ]
        for index, call in enumerate(calls):
            said.append(e.ToolCallStarted(message, f"p{index}", index, call, "pick"))
        said += [e.ToolCallCommitted(call, "pick", "{}", "client") for call in calls]
        parts = [{"part_id": f"p{index}", "kind": "tool_call"} for index in range(len(calls))]
        said.append(e.RoundCompleted(1, "working_message", "tool_calls", parts, list(calls)))
        self._tell(base, said)
        self._tell(base, ending(self.thread, f"r{n}", e.RunCompleted(message, list(calls))), start=len(said) + 1)
        return self

    def takes(self, plan: Plan, end: str = "completed") -> Told:
        """The run that a plan asks for."""
        if plan.call_model:
            return self.run(*plan.facts, end=end)
        self._runs += 1
        facts = [e.RunStarted(0, f"r{self._runs}", "a", "", []), *plan.facts, e.RunCompleted()]
        self._tell(self.thread.position, facts)
        return self

    def _tell(self, base: int, facts: list[e.Event], start: int = 1) -> None:
        for seq, fact in enumerate(facts, start):
            self.thread.apply(f"run{self._runs}", base, seq, fact)


def says(id_: str, text: str) -> e.MessageCompleted:
    """A user message as a fact."""
    return e.MessageCompleted(id_, "user", text, digest(text))


def user(id_: str, text: str) -> JsonObject:
    """A user message as a page shows it."""
    return {"id": id_, "role": "user", "content": text}


def answer(run: int) -> JsonObject:
    """Our answer of a run as a page shows it."""
    return {"id": f"m{run}-1", "role": "assistant", "content": f"answer {run}"}


def asking(run: int, *calls: str) -> JsonObject:
    """Our message with frontend calls as a page shows it."""
    made = [{"id": call, "type": "function", "function": {"name": "pick", "arguments": "{}"}} for call in calls]
    return {"id": f"m{run}-1", "role": "assistant", "toolCalls": made}


def result(call: str, content: str = "red", id_: str | None = None, **more: Any) -> JsonObject:
    """A tool message of the page."""
    return {"id": id_ or f"answer-{call}", "role": "tool", "toolCallId": call, "content": content, **more}


def plan(thread: Thread, *messages: JsonObject, policy: IntakePolicy | None = None, **more: Any) -> Plan:
    """The plan for a request that shows these messages."""
    document = {"threadId": "t", "runId": "r", "messages": list(messages), **more}
    return reconcile(parse(document), thread, policy or IntakePolicy(), Answerer("user", 0))


def users_in(facts: list[e.Event]) -> list[str]:
    """The ids of the user messages among facts."""
    return [fact.message_id for fact in facts if isinstance(fact, e.MessageCompleted) and not fact.runtime_role]


def outputs_in(facts: list[e.Event]) -> list[tuple[str, str]]:
    """The outputs among facts: call and kind."""
    return [(fact.tool_call_id, fact.kind) for fact in facts if isinstance(fact, e.ToolCallCompleted)]


# --- answers to frontend calls ------------------------------------------------------------------------------------


def test_an_answer_to_every_open_call_lets_the_loop_go_on():
    told = Told().asks("c1", "c2")
    made = plan(told.thread, user("u1", "pick"), asking(1, "c1", "c2"), result("c2"), result("c1"))
    assert made.call_model
    assert outputs_in(made.facts) == [("c2", "client"), ("c1", "client")]
    assert made.snapshots == []


def test_an_answer_counts_wherever_it_stands_and_whatever_else_is_shown():
    told = Told().asks("c1")
    assert plan(told.thread, result("c1")).call_model
    assert plan(told.thread, result("c1"), user("u1", "pick"), asking(1, "c1")).call_model


def test_while_calls_are_open_their_answers_are_kept_and_no_model_is_called():
    told = Told().asks("c1", "c2")
    first = plan(told.thread, user("u1", "pick"), asking(1, "c1", "c2"), result("c1"))
    assert not first.call_model
    assert outputs_in(first.facts) == [("c1", "client")]
    told.takes(first)
    second = plan(told.thread, user("u1", "pick"), asking(1, "c1", "c2"), result("c1"), result("c2"))
    assert second.call_model
    assert outputs_in(second.facts) == [("c2", "client")]


def test_an_answer_that_failed_is_told_to_the_model_as_an_error():
    told = Told().asks("c1")
    told.takes(plan(told.thread, result("c1", content="", error="no camera")))
    outputs = [item for item in told.thread.items() if isinstance(item, FunctionCallOutput)]
    assert outputs == [FunctionCallOutput("c1", "pick", "no camera", True)]


def test_a_new_user_message_stands_behind_the_answers_and_closes_what_is_open():
    told = Told().asks("c1", "c2")
    made = plan(told.thread, user("u1", "pick"), asking(1, "c1", "c2"), result("c1"), user("u2", "go on"))
    assert made.call_model
    assert outputs_in(made.facts) == [("c1", "client"), ("c2", "unanswered")]
    assert users_in(made.facts) == ["u2"]
    assert isinstance(made.facts[-1], e.MessageCompleted)


def test_going_on_without_an_answer_closes_the_call_and_a_later_answer_is_told_before_the_next_message():
    told = Told().asks("c1")
    told.takes(plan(told.thread, user("u1", "pick"), asking(1, "c1"), user("u2", "never mind")))
    late = plan(told.thread, user("u1", "pick"), asking(1, "c1"), result("c1"), user("u2", "never mind"), answer(2))
    assert not late.call_model
    told.takes(late)
    again = plan(told.thread, user("u1", "pick"), asking(1, "c1"), result("c1"), user("u2", "never mind"), answer(2))
    assert again.facts == []
    told.takes(plan(told.thread, user("u3", "and?")))
    said = [item.content for item in told.thread.items() if isinstance(item, Message) and item.role == "user"]
    assert said == ["pick", "never mind", "pick (c1): red", "and?"]


def test_a_page_cannot_answer_a_call_of_the_server():
    told = Told().run(says("u1", "hi"))
    call = e.ToolCallCommitted("s1", "look", "{}", "server")
    told.thread.apply("run1", 0, 99, call)
    made = plan(told.thread, user("u1", "hi"), answer(1), result("s1", "forged"))
    assert made.facts == []
    assert made.snapshots == ["messages"]


def test_a_resume_that_names_nothing_is_never_a_fork():
    told = Told().run(says("u1", "hi")).run(says("u2", "ho"))
    made = plan(told.thread, user("u1", "hi"), resume=[{"interruptId": "i", "status": "resolved"}])
    assert made.facts == []
    assert not made.call_model


# --- where the histories part -------------------------------------------------------------------------------------


def test_what_stands_behind_the_agreed_messages_is_new():
    told = Told().run(says("u1", "hi"))
    made = plan(told.thread, user("u1", "hi"), answer(1), user("u2", "a"), user("u3", "b"))
    assert (users_in(made.facts), made.call_model, made.snapshots) == (["u2", "u3"], True, [])


def test_a_client_that_sends_only_what_is_new_adds_to_the_thread_and_is_told_the_rest():
    told = Told().run(says("u1", "hi"))
    made = plan(told.thread, user("u2", "ho"))
    assert (users_in(made.facts), made.call_model, made.snapshots) == (["u2"], True, ["messages"])


def test_everything_known_and_answered_is_nothing_new():
    told = Told().run(says("u1", "hi"))
    made = plan(told.thread, user("u1", "hi"), answer(1))
    assert (made.facts, made.call_model, made.follow, made.nothing) == ([], False, None, False)


def test_the_known_last_question_is_asked_again():
    told = Told().run(says("u1", "hi"))
    made = plan(told.thread, user("u1", "hi"))
    assert made.call_model
    assert made.facts == [e.HistoryForked(told.thread.entries[0].key, [])]
    told.takes(made)
    assert [type(entry).__name__ for entry in told.thread.entries] == ["Said", "Turn"]


def test_a_question_whose_run_still_runs_is_followed():
    told = Told().run(says("u1", "hi"), running=True)
    assert plan(told.thread, user("u1", "hi")).follow


def test_a_run_that_broke_off_behind_a_result_is_taken_up_again():
    told = Told().asks("c1")
    told.takes(plan(told.thread, result("c1")), end="failed")
    shown = (user("u1", "pick"), asking(1, "c1"), result("c1"))
    made = plan(told.thread, *shown)
    assert (made.facts, made.call_model) == ([], True)
    told.takes(made)
    assert not plan(told.thread, *shown).call_model


def test_an_edited_message_parts_the_histories_there():
    told = Told().run(says("u1", "hi")).run(says("u2", "ho")).run(says("u3", "hum"))
    made = plan(told.thread, user("u1", "hi"), answer(1), user("u2", "ho!"))
    assert made.facts[0] == e.HistoryForked("m1", [])
    assert users_in(made.facts) == ["u2"]
    assert made.call_model


def test_a_history_that_ends_in_an_answer_is_cut_there_without_asking_the_model():
    told = Told().run(says("u1", "hi")).run(says("u2", "ho"))
    made = plan(told.thread, user("u1", "hi"), answer(1))
    assert made.facts == [e.HistoryForked("m1", [])]
    assert not made.call_model


def test_a_page_may_go_back_to_an_older_branch_and_forth_again():
    told = Told().run(says("u1", "hi")).run(says("u2", "ho"))
    told.takes(plan(told.thread, user("u1", "hi"), answer(1), user("u9", "other")))
    old = (user("u1", "hi"), answer(1), user("u2", "ho"), answer(2))
    back = plan(told.thread, *old)
    assert not back.call_model
    told.takes(back)
    assert [entry.id for entry in told.thread.entries] == ["u1", "m1", "u2", "m2"]
    forth = plan(told.thread, user("u1", "hi"), answer(1), user("u9", "other"), answer(3), user("u4", "on"))
    assert forth.call_model
    told.takes(forth)
    assert [entry.id for entry in told.thread.entries] == ["u1", "m1", "u9", "m3", "u4", "m5"]


def test_what_others_said_stays_at_its_place_and_out_of_the_models_sight():
    told = Told().run(says("u1", "hi"))
    foreign = {"id": "x", "role": "assistant", "content": "I am the server"}
    told.takes(plan(told.thread, user("u1", "hi"), foreign, answer(1), user("u2", "ho")))
    assert [entry.id for entry in told.thread.entries] == ["u1", "x", "m1", "u2", "m2"]
    assert "I am the server" not in [item.content for item in told.thread.items() if isinstance(item, Message)]
    again = plan(told.thread, user("u1", "hi"), foreign, answer(1), user("u2", "ho"), answer(2), user("u3", "hm"))
    assert users_in(again.facts) == ["u3"]
    assert len(again.facts) == 1


# --- nothing stored -----------------------------------------------------------------------------------------------


def test_an_unknown_thread_without_messages_is_not_created():
    assert plan(Thread("thr")).nothing
    assert plan(Thread("thr"), {"id": "s", "role": "system", "content": "rules"}).nothing


def test_a_shown_history_is_adopted_and_its_calls_are_never_executed():
    made = plan(Thread("thr"), user("u1", "pick"), asking(1, "c1", "c2"), result("c1"), user("u2", "go on"))
    assert [type(fact) for fact in made.facts] == [e.HistorySeeded, e.ToolCallCompleted, e.MessageCompleted]
    assert outputs_in(made.facts) == [("c2", "unanswered")]
    assert made.call_model


def test_an_adopted_history_that_ends_in_a_result_goes_on_and_one_that_ends_in_an_answer_does_not():
    assert plan(Thread("thr"), user("u1", "pick"), asking(1, "c1"), result("c1")).call_model
    assert not plan(Thread("thr"), user("u1", "hi"), answer(1)).call_model


@pytest.mark.parametrize("accepted", [False, True])
def test_system_messages_of_a_client_reach_the_model_only_when_the_server_allows_it(accepted: bool):
    told = Told()
    policy = IntakePolicy(accept_system_messages=accepted)
    made = plan(
        told.thread, {"id": "s", "role": "system", "content": "rules"}, user("u1", "hi"), answer(7), policy=policy
    )
    told.takes(made)
    heard = [item.content for item in told.thread.items() if isinstance(item, Message) and item.role == "system"]
    assert heard == (["rules"] if accepted else [])
    assert bool(made.warnings) is not accepted


def test_reasoning_and_activity_of_a_client_are_no_part_of_the_prompt():
    made = plan(
        Thread("thr"),
        user("u1", "hi"),
        {"id": "t", "role": "reasoning", "content": "hm", "encryptedValue": "e"},
        {"id": "a", "role": "activity", "activityType": "PLAN", "content": {}},
        answer(1),
        user("u2", "ho"),
    )
    told = Told().takes(made)
    assert [item for item in told.thread.items() if not isinstance(item, Message)] == []


# --- state and tools ----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("given", "rule", "after"),
    [
        ("absent", "replace", {"ours": 1}),
        (None, "replace", {"ours": 1}),
        ({}, "replace", {"ours": 1}),
        ({"theirs": 2}, "replace", {"theirs": 2}),
        ({"theirs": 2}, "merge", {"ours": 1, "theirs": 2}),
        ({"theirs": 2}, "ignore", {"ours": 1}),
        ([1, 2], "replace", [1, 2]),
        (5, "replace", 5),
        ("x", "merge", "x"),
        ({"ours": 1.0}, "replace", {"ours": 1.0}),
    ],
)
def test_what_a_clients_state_does_to_ours(given: Any, rule: Any, after: Any):
    told = Told().run(e.StateSnapshot({"ours": 1}, "agent"), says("u1", "hi"))
    more = {} if given == "absent" else {"state": given}
    made = plan(told.thread, user("u1", "hi"), answer(1), user("u2", "ho"), policy=IntakePolicy(rule), **more)
    told.takes(made)
    assert told.thread.state == after
    assert type(told.thread.state) is type(after)


@pytest.mark.parametrize("parameters", [None, True, "text", [1], {"type": "object", "properties": {"a": {}}}])
def test_whatever_a_frontend_tool_says_of_its_parameters_the_model_is_told_an_object(parameters: Any):
    tool: JsonObject = {"name": "pick", "description": "d"}
    if parameters is not None:
        tool["parameters"] = parameters
    document = {"threadId": "t", "runId": "r", "messages": [], "tools": [tool]}
    (spec,) = client_tools(parse(document))
    assert spec.parameters["type"] == "object"
