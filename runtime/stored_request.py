"""A request as the store keeps it: enough for another process to perform the run, and nothing of how it came in.

Pure. Who asked is kept by id; what proved it (a header, a token) never reaches this layer. What the run's record says
already is left out, so that the requests of one conversation are mostly one content. Its messages are kept only for a
run that may have to wait: those of others are in their journals.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from runtime.authority import Principal
from runtime.budget import Budget, Price
from runtime.canonical import JsonObject, canonical
from runtime.errors import StoreError
from runtime.events import Event, decode, encode
from runtime.items import ToolSpec
from runtime.journal.inbox import REJECT
from runtime.request import RunRequest
from runtime.run import RunRecord
from runtime.tool_choice import choice_of


def stored_request(request: RunRequest) -> bytes:
    """The request as canonical JSON."""
    principal = request.principal
    document: JsonObject = {
        "principal": {"id": principal.id, "tenant_id": principal.tenant_id, "operator": principal.operator},
        "client_tools": [
            {"name": tool.name, "description": tool.description, "parameters": tool.parameters}
            for tool in request.client_tools
        ],
        "context": request.context,
        "forwarded_props": request.forwarded_props,
        "budget": request.budget.as_payload() if request.budget is not None else None,
        "cancel_when_unread": request.cancel_when_unread,
    }
    if request.tool_choice is not None:
        document["tool_choice"] = request.tool_choice.as_payload()
    if request.when_busy != REJECT:
        document |= {"facts": [_fact(event) for event in request.facts], "snapshots": request.snapshots}
    return canonical(document)


def request_of(run: RunRecord, data: bytes) -> RunRequest:
    """The request of a run, from its record and what the store kept. Raises StoreError if that cannot be read."""
    try:
        document: JsonObject = orjson.loads(data)
        budget = document["budget"]
        return RunRequest(
            principal=Principal(**document["principal"]),
            agent_id=run.agent_id,
            session_id=run.session_id,
            client_run_id=run.client_run_id,
            input_digest=run.input_digest,
            base=run.base,
            facts=_events(document.get("facts", [])),
            call_model=True,
            snapshots=document.get("snapshots", []),
            client_tools=[ToolSpec(**tool) for tool in document["client_tools"]],
            context=document["context"],
            forwarded_props=document["forwarded_props"],
            budget=None if budget is None else _budget(budget),
            cancel_when_unread=document["cancel_when_unread"],
            parent_run_id=run.parent_run_id,
            root_run_id=None if run.root_run_id == run.run_id else run.root_run_id,
            when_busy=run.when_busy or REJECT,
            continues=run.continues,
            tool_choice=choice_of(document.get("tool_choice")),
        )
    except (orjson.JSONDecodeError, KeyError, TypeError) as error:
        raise StoreError(f"The request of run {run.run_id} cannot be read.", code="store_corrupt") from error


def _fact(event: Event) -> JsonObject:
    return {"event_type": event.event_type, "payload": orjson.loads(encode(event))}


def _events(facts: Sequence[JsonObject]) -> list[Event]:
    found = (decode(fact["event_type"], orjson.dumps(fact["payload"])) for fact in facts)
    return [event for event in found if event is not None]


def _budget(payload: JsonObject) -> Budget:
    limits: dict[str, Any] = dict(payload)
    prices: dict[str, JsonObject] = limits.pop("prices", {})
    return Budget(**limits, prices={name: Price(**price) for name, price in prices.items()})
