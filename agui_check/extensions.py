"""What agui-bridge does beyond AG-UI 1.0, and where it departs from it, in its own words. Pure data."""

from __future__ import annotations

from typing import Final

EXTENSIONS: Final[dict[str, str]] = {
    "id": "frames carry `id:`, the place in the run's journal; AG-UI gives it no meaning (R-007)",
    "comments": "comment lines keep a silent connection open (R-006)",
    "events": "a route of its own replays a run from a cursor (R-011, R-018)",
    "connect": "`/connect` tells a page that comes back where its thread stands",
    "capabilities": "routes of its own say what an agent can do (R-190)",
    "cancel": "a run can be cancelled by its id from anywhere",
    "scripted model": "`/script`, `/tokens` and `/fail` in a user message tell the model what to say",
}
"""Extensions by name; a report lists those that it saw."""

DEPARTURES: Final[dict[str, str]] = {
    "R-020": "a bare wildcard in Accept gets SSE, so that curl shows text; naming protobuf gets protobuf",
    "R-041": "a request that matches nothing stored adds to the thread, and a window keeps what stands before it",
    "R-072": "clients without protocolVersion do not know `cancelled` and get RUN_ERROR `run_cancelled`",
    "R-104": "a malformed or undeclared call was never handed to the page, so its refusal is told; so is the end of "
    "one whose run was stopped or failed",
    "R-107": "calls that were cut or discarded count as not started",
    "R-126": "a prelude of two snapshots begins with the common beginning alone; the progress of a call that is over "
    "is left out",
    "R-155": "a stopped run has another ending for clients without protocolVersion",
    "R-168": "an edit before the gated call closes its interrupts as cancelled",
    "R-169": "an edit before the gated call closes its interrupts as cancelled",
}
"""The stated departures of agui-bridge: a finding there is reported as such when the endpoint is one of its own."""
