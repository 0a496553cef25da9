"""Runs as the API shows them: a record, a tree, and what was asked and answered round by round. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict

from agui_bridge.content import content_out
from agui_bridge.times import iso, iso_or_none
from runtime import events as e
from runtime.canonical import Json, JsonObject
from runtime.entries import Call, Turn
from runtime.events import Record
from runtime.items import FunctionCall, FunctionCallOutput, Item, Message, Reasoning
from runtime.run import RunRecord
from runtime.thread import Thread


def run_document(run: RunRecord) -> JsonObject:
    """A run's record."""
    return {
        "run_id": run.run_id,
        "client_run_id": run.client_run_id,
        "thread_id": run.thread_id,
        "session_id": run.session_id,
        "owner_id": run.owner_id,
        "agent_id": run.agent_id,
        "status": run.status,
        "last_event_seq": run.last_seq,
        "executor_instance_id": run.executor_instance_id,
        "lease_expires_at": iso_or_none(run.lease_expires_at),
        "final_message_id": run.final_message_id,
        "error": run.error,
        "root_run_id": run.root_run_id,
        "parent_run_id": run.parent_run_id,
        "agent_snapshot_checksum": run.agent_snapshot_checksum,
        "context_snapshot_checksum": run.context_snapshot_checksum,
        "trace_id": run.trace_id,
        "usage": run.usage,
        "created_at": iso(run.created_at),
        "started_at": iso_or_none(run.started_at),
        "finished_at": iso_or_none(run.finished_at),
    }


# --- trees --------------------------------------------------------------------------------------------------------


def tree_document(run_id: str, runs: Sequence[RunRecord], agent_name: Callable[[str], str], prefix: str) -> JsonObject:
    """The run and all below it, children in the order in which they began. `runs` are those of its whole tree, `prefix`
    is what stands before the paths of this API."""
    below: dict[str | None, list[RunRecord]] = {}
    for run in runs:
        below.setdefault(run.parent_run_id, []).append(run)
    nodes = {run.run_id: _node(run, agent_name(run.agent_id), prefix) for run in runs}
    for parent_id, children in below.items():
        if parent_id in nodes:
            nodes[parent_id]["children"] = [nodes[child.run_id] for child in children]
    return nodes[run_id]


def _node(run: RunRecord, agent_name: str, prefix: str) -> JsonObject:
    here = f"{prefix}/api/agent-runs/{run.run_id}"
    return {
        "run_id": run.run_id,
        "parent_run_id": run.parent_run_id,
        "agent_id": run.agent_id,
        "agent_name": agent_name,
        "status": run.status,
        "last_event_seq": run.last_seq,
        "events_url": f"{here}/events",
        "cancel_url": f"{here}/cancel",
        "children": [],
    }


# --- rounds -------------------------------------------------------------------------------------------------------


def rounds_document(
    run: RunRecord, thread: Thread, records: Iterable[Record], *, agent: Json, context: Json
) -> JsonObject:
    """What was asked and answered, per round. `thread` stands where the run had taken its request in, `records` are
    the run's; the snapshots `agent` and `context` have what all rounds share.

    The request itself is stored by its digest alone. `asked` is what the history holds behind the model's own last
    word: the rest of it stands in the rounds before. What a provider wants back unchanged is left out.
    """
    asked: dict[int, list[JsonObject]] = {}
    begun: dict[int, e.RoundStarted] = {}
    completed: dict[int, e.RoundCompleted] = {}
    for record in records:
        match record.event:
            case e.RoundStarted(round=number) as started:
                begun[number] = started
                asked[number] = [_item(item) for item in _behind_the_model(thread.items())]
            case e.RoundCompleted(round=number) as done:
                completed[number] = done
            case _:
                pass
        if run.base + record.seq > thread.position:
            thread.apply(run.run_id, run.base, record.seq, record.event)
    turn = thread.turn if thread.turn is not None and thread.turn.run_id == run.run_id else None
    return {
        "run_id": run.run_id,
        "agent": agent,
        "context": context,
        "rounds": [
            {
                "round": number,
                "model": started.model,
                "provider": started.provider,
                "request": started.request,
                "asked": asked[number],
                "answered": _answered(number, completed.get(number), turn.stretch_of(number) if turn else None),
            }
            for number, started in begun.items()
        ],
    }


def _answered(number: int, done: e.RoundCompleted | None, turn: Turn | None) -> JsonObject | None:
    """What came back; without `completed` it was shown, and nothing of it counts. None if nothing came."""
    parts = [part.as_payload() for part in turn.parts if part.round == number] if turn else []
    calls = turn.rounds[number].calls if turn and number in turn.rounds else []
    if done is None and not parts:
        return None
    return {
        "committed": done is not None,
        "runtime_role": done and done.runtime_role,
        "finish": done and done.finish,
        "usage": done and done.usage,
        "attempts": done and done.attempts,
        "provider_response_id": done and done.provider_response_id,
        "provider_phase": done and done.provider_phase,
        "parts": parts,
        "tool_calls": [_call(call) for call in calls],
    }


def _call(call: Call) -> JsonObject:
    output = call.output
    return {
        "tool_call_id": call.call_id,
        "tool_name": call.name,
        "arguments_json": call.arguments_json,
        "target": call.target,
        "malformed": call.malformed,
        "output": None if output is None else content_out(output.output),
        "is_error": None if output is None else output.is_error,
        "kind": call.output_kind,
    }


def _behind_the_model(items: list[Item]) -> list[Item]:
    """What follows the last item that the model made."""
    last = max((index for index, item in enumerate(items) if _is_the_models(item)), default=-1)
    return items[last + 1 :]


def _is_the_models(item: Item) -> bool:
    return isinstance(item, FunctionCall | Reasoning) or (isinstance(item, Message) and item.role == "assistant")


def _item(item: Item) -> JsonObject:
    match item:
        case Message():
            return {"item": "message", **asdict(item), "content": content_out(item.content)}
        case FunctionCallOutput():
            return {"item": "function_call_output", **asdict(item), "output": content_out(item.output)}
        case FunctionCall() | Reasoning():
            raise AssertionError("the model's own items are never asked")
