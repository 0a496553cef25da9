"""What the runtime is asked to do: one run, on one thread, with these first facts.

Pure. A front (AG-UI, the native API) reconciles what its client says with the thread and hands over a `RunRequest`;
nothing below it knows what the client's protocol was.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from runtime.authority import Principal
from runtime.budget import Budget
from runtime.canonical import Json, JsonObject
from runtime.events import Event
from runtime.items import ToolSpec
from runtime.journal import Idempotency
from runtime.tool_choice import ToolChoice


@dataclass(frozen=True, slots=True)
class RunRequest:
    """One run to begin.

    `base` is the thread position that was read. `facts` follow `run.started` in the same transaction (messages taken
    in, forks, answers). Without `call_model` the run succeeds at once: there is nothing to say. `client_tools` are
    performed by the client; `snapshots` names what the front restates in its opening stream. `budget` is this run's
    own: it holds beside the agent's, so it can only be stricter. Without a `client_run_id` the client knows the run by
    the server's id. A child run has no session; it has a parent, and the root of their tree. `idempotency` is what
    makes the request safe to repeat, if its client_run_id does not. `when_busy` is one of the `BUSY_POLICIES` of
    `journal.inbox`; a request that may wait brings nothing but messages, and at most `queue_limit` wait for a thread.
    `continues` is a lost run that this one goes on with. `tool_choice` says what the first answer to a user has to be.
    """

    principal: Principal
    agent_id: str
    session_id: str | None
    client_run_id: str | None
    input_digest: str
    base: int
    facts: list[Event]
    call_model: bool
    snapshots: list[str] = field(default_factory=list[str])
    client_tools: list[ToolSpec] = field(default_factory=list[ToolSpec])
    context: list[JsonObject] = field(default_factory=list[JsonObject])
    forwarded_props: Json = None
    budget: Budget | None = None
    repeatable: bool = False
    cancel_when_unread: bool = True
    parent_run_id: str | None = None
    root_run_id: str | None = None
    idempotency: Idempotency | None = None
    when_busy: str = "reject"
    queue_limit: int | None = None
    continues: str | None = None
    tool_choice: ToolChoice | None = None
