"""The transcript of a thread as a page shows it: AG-UI messages, with the ids that the streams gave them.

Pure. Snapshots, the reconciliation of histories and the projection all name messages by the functions here, so that
an id is the same in a stream, in a snapshot and after a restart. What stands here is exactly what a stock client has
built when it consumed the streams: one assistant message per round, its results right behind it.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from agui_bridge.content import content_out
from agui_bridge.wire.events import AguiEvent
from runtime.canonical import JsonObject
from runtime.entries import LATE_ANSWER, Activity, Call, Child, Entry, Said, Turn
from runtime.items import WORKING, Content
from runtime.parts import REASONING, TOOL_CALL, Part
from runtime.thread import Thread

ROLE = "agui-bridge:role"
ROUND = "agui-bridge:round"
STEERED = "agui-bridge:steered"
"""Says that a run's messages were taken in by another one, which answers them."""
OWNER = "subagentRunId"
"""The member of a message that names the child run which said it."""


def round_message_id(message_id: str, round_: int) -> str:
    """The id of the AG-UI message that shows one round of a run's assistant message."""
    return f"{message_id}-{round_}"


def reasoning_message_id(message_id: str, part_id: str) -> str:
    """The id of the AG-UI message that shows a reasoning part."""
    return f"{message_id}-{part_id}"


def owner_of(id_: str) -> str:
    """The id of the run's message that a round's or a reasoning part's message shows; "" if it cannot be one."""
    return id_.rpartition("-")[0]


def shows(messages: Iterable[JsonObject], run_id: str, thread: Thread) -> bool:
    """Whether these messages show something of what this run and those below it have said, be it on another branch."""
    turns = [entry for entry in thread.archive.values() if isinstance(entry, Turn) and entry.run_id == run_id]
    told = [message for turn in turns for message in turn_messages(turn)]
    ids = {message["id"] for message in told}
    ids |= {result_message_id(call.call_id) for call in thread.calls.values() if call.answered_in == run_id}
    below = {message[OWNER] for message in told if OWNER in message}
    return any(message["id"] in ids or message.get(OWNER) in below for message in messages)


def result_message_id(tool_call_id: str) -> str:
    """The id of the AG-UI message that shows a call's output."""
    return f"result-{tool_call_id}"


def activity_message_id(activity_id: str, child_run_id: str | None = None) -> str:
    """The id of the AG-UI message that shows an activity; those of a child run are shown among its parent's."""
    return f"activity-{activity_id}" if child_run_id is None else f"activity-{child_run_id}-{activity_id}"


def text_metadata(role: str, round_: int) -> JsonObject:
    """What a text message is known to be."""
    return {ROLE: role, ROUND: round_}


def is_shown(kind: str | None) -> bool:
    """Whether an output of this kind is told to the page: not its own answers, nor that it gave none."""
    return kind not in (None, "client", "unanswered")


@dataclass(frozen=True, slots=True)
class Line:
    """One message of the transcript. `entry` is the key of the thread's entry that it shows."""

    message: JsonObject
    entry: str

    @property
    def id(self) -> str:
        """The message's id in our streams."""
        return self.message["id"]

    @property
    def role(self) -> str:
        """The message's role."""
        return self.message["role"]


def transcript(thread: Thread, without_run: str | None = None) -> list[Line]:
    """All messages of the branch, in the order in which a page holds them; the turn of `without_run` is left out."""
    return lines_of(entry for entry in thread.entries if entry.run_id != without_run or not _is_of_the_run(entry))


def own_messages(thread: Thread, run_id: str, open_calls: Collection[str] = ()) -> Iterator[JsonObject]:
    """The messages of one run, and what steered it in between. `open_calls` as in `turn_messages`."""
    for entry in thread.entries:
        if entry.run_id == run_id and _is_of_the_run(entry):
            yield from _said(entry) if isinstance(entry, Said) else turn_messages(entry, open_calls)


def _is_of_the_run(entry: Entry) -> bool:
    """Whether the entry came while its run was at work, and not with its request."""
    return entry.steers if isinstance(entry, Said) else True


def lines_of(entries: Iterable[Entry]) -> list[Line]:
    """All messages of these entries."""
    lines: list[Line] = []
    for entry in entries:
        messages = _said(entry) if isinstance(entry, Said) else turn_messages(entry)
        lines += (Line(message, entry.key) for message in messages)
    return lines


def _said(said: Said) -> Iterator[AguiEvent]:
    if said.runtime_role == LATE_ANSWER:
        return
    message: JsonObject = {"id": said.id, "role": said.role}
    if said.content or not said.calls:
        message["content"] = content_out(said.content)
    if said.calls:
        message["toolCalls"] = [tool_call(call) for call in said.calls]
    if said.tool_call_id is not None:
        message["toolCallId"] = said.tool_call_id
    if said.error is not None:
        message["error"] = said.error
    yield message | (said.attributes or {})
    yield from _results(said.calls)


def turn_messages(turn: Turn, open_calls: Collection[str] = ()) -> Iterator[JsonObject]:
    """The messages of one run: per round what a stock client has built from its stream.

    `open_calls` are calls that are still being written: the message in which they are has its place already.
    """
    parts: dict[int, list[Part]] = {number: [] for number in turn.rounds}
    for part in turn.parts:
        if part.round in parts:
            parts[part.round].append(part)
    yield from _behind(turn, 0, open_calls)  # by calls of an earlier run, which had to wait
    for number in turn.rounds:
        yield from _round(turn, number, parts[number], open_calls)
        yield from _behind(turn, number, open_calls)


def _round(turn: Turn, number: int, parts: list[Part], open_calls: Collection[str]) -> Iterator[JsonObject]:
    calls = {call.call_id: call for call in turn.rounds[number].calls if call.name}
    is_open = any(part.tool_call_id in open_calls for part in parts)
    shown = not calls and not is_open and all(part.kind in (REASONING, TOOL_CALL) for part in parts)  # taken back
    for part in parts:
        if part.kind == REASONING:
            if part.text:  # redacted reasoning is kept for its provider and shown to nobody
                yield _reasoning(turn, part)
        elif not shown:  # where its first part began, be it a call that was taken back
            shown = True
            yield _assistant(turn, number, parts, calls)
            yield from _results(calls.values())


def _behind(turn: Turn, number: int, open_calls: Collection[str]) -> Iterator[JsonObject]:
    """Activities, and what children say: a page puts results right behind their calls, and these at its end."""
    behind: list[Activity | Child] = [each for each in turn.activities.values() if each.round == number]
    behind += [child for child in turn.children.values() if child.round == number]
    for each in sorted(behind, key=lambda each: each.place):
        if isinstance(each, Activity):
            yield _activity(each)
        else:
            yield from _child_messages(each, open_calls)


def _child_messages(child: Child, open_calls: Collection[str]) -> Iterator[JsonObject]:
    """What a child run has said: shown to the page as its own, and never to the parent's model. What children said side
    by side stands child by child. The results of calls that had to wait are those of the run that goes on with it."""
    turn = child.thread.turn_of(child.run_id)
    if turn is None:
        return
    told_by = {result_message_id(call.call_id): call.answered_in for call in turn.calls}
    for message in turn_messages(turn, open_calls):
        if OWNER in message:
            yield message
        elif message["role"] == "activity":
            id_ = message["id"].removeprefix(activity_message_id(""))
            yield {**message, "id": activity_message_id(id_, child.run_id), OWNER: child.run_id}
        else:
            yield {**message, OWNER: told_by.get(message["id"], child.run_id)}


def _reasoning(turn: Turn, part: Part) -> JsonObject:
    message: JsonObject = {
        "id": reasoning_message_id(turn.id, part.part_id),
        "role": "reasoning",
        "content": part.text,
    }
    done = turn.reasoning.get(part.part_id)
    if done is not None and (value := done.signature or done.encrypted_value):
        message["encryptedValue"] = value
    return message


def _assistant(turn: Turn, number: int, parts: list[Part], calls: dict[str, Call]) -> JsonObject:
    message: JsonObject = {"id": round_message_id(turn.id, number), "role": "assistant"}
    texts = [part for part in parts if part.kind not in (REASONING, TOOL_CALL)]
    if texts:
        message["content"] = "".join(part.text for part in texts)
        role = turn.rounds[number].role
        if role is None and any(part.kind == TOOL_CALL and part.index > texts[0].index for part in parts):
            role = WORKING
        if role is not None:
            message["metadata"] = text_metadata(role, number)
    if calls:
        message["toolCalls"] = [tool_call(call) for call in calls.values()]
    return message


def tool_call(call: Call) -> JsonObject:
    """A committed call as AG-UI writes it in a message."""
    return {
        "id": call.call_id,
        "type": "function",
        "function": {"name": call.name, "arguments": call.arguments_json},
    }


def _results(calls: Iterable[Call]) -> Iterator[JsonObject]:
    """The outputs in the order in which they came, which is where a page has put them."""
    for call in sorted(calls, key=lambda call: call.place):
        yield from _result(call)


def _activity(activity: Activity) -> JsonObject:
    return {
        "id": activity_message_id(activity.activity_id),
        "role": "activity",
        "activityType": activity.activity_type,
        "content": activity.content,
    }


def _result(call: Call) -> Iterator[JsonObject]:
    if call.answered_by is not None:
        message: JsonObject = {
            "id": call.answered_by,
            "role": "tool",
            "toolCallId": call.call_id,
            "content": content_out(call.answer if call.answer is not None else ""),
        }
        if call.error is not None:
            message["error"] = call.error
        yield message
    elif call.output is not None and is_shown(call.output_kind):
        yield result_message(call.call_id, call.output.output)


def result_message(call_id: str, output: Content) -> JsonObject:
    """The output of a call as AG-UI writes it in a message."""
    return {
        "id": result_message_id(call_id),
        "role": "tool",
        "toolCallId": call_id,
        "content": content_out(output),
    }
