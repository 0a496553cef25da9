"""The generated blocks of docs/http.md: every route, as the API's description has it, and every error code, with its
status from the class that has it.

When a code is met cannot be derived; it stands here in words. tests/docs/ fails when the code knows a code that has no
words, and when words speak of a code that is gone.
"""

from __future__ import annotations

import ast
import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from pathlib import Path
from typing import Final, TypeAlias

import agui_bridge
import runtime
from agui_bridge.bridge import AGENT_PATH, NotStarted
from agui_bridge.web import artifacts_api, copilotkit_threads, guard, uploads_api
from agui_bridge.web.openapi import openapi
from runtime import errors, media_shelf
from runtime.dialects import faults
from runtime.errors import AguiBridgeError
from runtime.state_type import StateMisfit
from scripts.generate_markdown import code, replace_block, table

ROOT: Final = Path(__file__).resolve().parent.parent

Fault: TypeAlias = type[AguiBridgeError]

REFUSALS: Final[dict[str, tuple[Fault | int, str]]] = {
    "not_json": (guard.NotJson, "The body cannot be parsed, or the client went away before it was complete."),
    "foreign_origin": (guard.ForeignOrigin, "A page of another origin, or on loopback a Host that is not loopback."),
    "not_found": (errors.NotFound, "No such route, agent, session or run, or it is not yours, or was deleted."),
    "method_not_allowed": (405, "The route has other methods; `Allow` names them."),
    "queue_full": (errors.ThreadQueueFull, "As many messages wait for the thread as may (`queue_limit`)."),
    "reader_dropped": (
        errors.ReaderDropped,
        "The process ends; the run goes on in another one. A stream is cut off for it: come back with the cursor.",
    ),
    "thread_busy": (errors.ThreadBusy, "Another run is at work on the thread; `details.run_id` names it."),
    "run_conflict": (errors.RunConflict, "The `runId` was used on the thread for other content; `details.run_id`."),
    "idempotency_conflict": (
        errors.IdempotencyConflict,
        "The `Idempotency-Key` was used for another request; `details.run_id`.",
    ),
    "media_not_found": (
        media_shelf.MediumNotFound,
        "A message refers to an upload, or by a link of ours to something, that is not there or not yours.",
    ),
    "upload_too_large": (uploads_api.UploadTooLarge, "More than `max_upload_mib`, by Content-Length or as received."),
    "body_too_large": (guard.BodyTooLarge, "More than `max_body_mib`, by Content-Length or as received."),
    "unsupported_media_type": (
        guard.UnsupportedMediaType,
        "The content type is not `application/json`, or the body is compressed.",
    ),
    "invalid_input": (errors.InvalidInput, "A known member is malformed; `details.path` says where."),
    "too_deep": (errors.InvalidInput, "Objects and lists nest deeper than 100 levels."),
    "events_expired": (
        errors.EventsExpired,
        "The facts behind this cursor are gone. Compacted: `details.before` and `details.behind` are the nearest "
        "places that are left. Removed: the record of the run is all that is left.",
    ),
    "range_not_satisfiable": (artifacts_api.RangeNotSatisfiable, "No byte of this range is there; `details.size`."),
    "state_invalid": (StateMisfit, "The state does not fit the agent's `state_type`; `details.path` says where."),
    "interrupt_answered": (errors.AlreadyAnswered, "In another way; `details.run_id` is the run that took the answer."),
    "interrupt_expired": (errors.AnswerExpired, "Its time is over; `cancelled` is still taken."),
    "answer_unfit": (errors.UnfitAnswer, "`details.problems` says what does not fit `response_schema`, and where."),
    "not_an_approver": (errors.NotAnApprover, "The tool's `approvers` do not let you."),
    "no_realtime": (copilotkit_threads.NoRealtime, "CopilotKit's lists of threads are not told of changes."),
    "invalid_cursor": (errors.InvalidCursor, "See the cursor contract below."),
    "internal_error": (AguiBridgeError, "A bug of ours. `details.id` is in the log."),
    "not_started": (NotStarted, "The host has not chained `bridge.lifespan`."),
    "store_error": (errors.StoreError, "The store does not answer."),
    "store_full": (errors.StoreError, "The disk is full."),
    "store_corrupt": (errors.StoreError, "The store holds something that cannot be read."),
    "store_closed": (errors.StoreError, "The store is closed; the process is ending."),
    "shutting_down": (errors.ShuttingDown, "The server ends and starts no new runs."),
    "http_error": (0, "Any other refusal by the web framework, with its own status."),
}
"""Before a stream starts: the class (or the status), and when."""

RUN_ERRORS: Final[dict[str, str]] = {
    "provider_error": "The provider failed, and said nothing that we know.",
    "provider_protocol_error": "Its stream broke its own protocol.",
    "provider_bad_request": "It refused the request as malformed or unsupported.",
    "provider_auth": "It refused the credentials. Its own text is not repeated.",
    "provider_quota": "The account has nothing left.",
    "rate_limited": "Too many requests or tokens.",
    "provider_overloaded": "It is overloaded.",
    "provider_unavailable": "It could not be reached, or failed by itself.",
    "provider_timeout": "It did not answer in time, or fell silent.",
    "context_length_exceeded": "The history does not fit the model.",
    "content_filter": "A content filter stopped the request or the answer.",
    "stream_cut": "The stream ended in the middle. Nothing of the round enters history.",
    "turn_paused": "The provider paused its turn again and again instead of answering.",
    "output_truncated": "The answer was cut by its length limit with a tool call in it, or within the value that it "
    "is. No call is executed.",
    "refusal": "The model refused, without a text that says so.",
    "output_invalid": "The model's answer did not fit the agent's output type, even after it was told why.",
    "empty_response": "The model answered with nothing.",
    "agent_failed": "What performs the agent failed, or broke the rules of its port; the log says why. It may fail "
    "with a code of its own, too.",
    "hook_failed": "A hook of the agent failed; the message names it, the log says why.",
    "unstorable": "A fact of this run cannot be stored.",
    "run_interrupted": "The server stopped before the run was finished.",
}
"""In RUN_ERROR and in a run's `error`, beside the store's and `internal_error`."""

ELSEWHERE: Final[dict[str, str]] = {
    "bad_request": "base of the caller's faults; your `authenticate` may raise your own",
    "configuration_error": "the command line says it and exits with 1",
    "store_version": "the command line says it and exits with 1",
    "store_locked": "the command line says it and exits with 1",
    "tool_error": "the model reads the message as the tool's output",
    "declined": "the model reads it as the tool's output; a tool that asked may catch it",
    "replay_mismatch": "the model reads it as the tool's output",
    "invalid_arguments": "the model reads it as the tool's output",
    "patch_conflict": "the model reads that the shared state changed meanwhile",
    "fence_lost": "within the process: the executor stops",
    "append_conflict": "within the process: the run fails",
    "illegal_transition": "within the process: the run fails",
    "run_elsewhere": "the stream is aborted, never ended cleanly",
    "journal_gap": "the stream is aborted, never ended cleanly",
    "cursor_closed": "within the process: the reader is gone",
}
"""Codes that no client sees in an answer."""


def page(now: str) -> str:
    """The page with its blocks written anew."""
    now = replace_block(now, "routes", table(("route", "what it does"), _routes()))
    refusals = [(_status(fault), code(name), when) for name, (fault, when) in REFUSALS.items()]
    refusals.sort(key=lambda row: row[0] or "z")
    now = replace_block(now, "refusals", table(("status", "code", "when"), refusals))
    fails = [(code(name), when) for name, when in RUN_ERRORS.items()]
    now = replace_block(now, "run errors", table(("code", "when"), fails))
    elsewhere = [(code(name), what) for name, what in ELSEWHERE.items()]
    return replace_block(now, "other codes", table(("code", "where it is met"), elsewhere))


def _routes() -> list[tuple[str, str]]:
    return [
        (code(f"{method.upper()} {path}"), operation["summary"])
        for path, operations in openapi(AGENT_PATH)["paths"].items()
        for method, operation in operations.items()
        if method != "parameters"
    ]


def codes() -> set[str]:
    """Every code that the code base has: of classes, given by name where an error is made, of the fault table."""
    return {fault.code for fault in faults_of_ours()} | set(_given()) | set(_named())


def faults_of_ours() -> list[Fault]:
    """Every error class of the two packages."""
    for package in (runtime, agui_bridge):
        for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            importlib.import_module(module.name)
    ours = ("runtime.", "agui_bridge.")
    return [fault for fault in [AguiBridgeError, *_below(AguiBridgeError)] if fault.__module__.startswith(ours)]


def _below(fault: Fault) -> Iterator[Fault]:
    for child in fault.__subclasses__():
        yield child
        yield from _below(child)


def _given() -> Iterator[str]:
    for package in ("runtime", "agui_bridge"):
        for path in (ROOT / package).rglob("*.py"):
            if "demo" in path.parts:  # agents as a user writes them, with codes of their own
                continue
            for node in ast.walk(ast.parse(path.read_text("utf-8"))):
                for keyword in node.keywords if isinstance(node, ast.Call) else ():
                    if keyword.arg == "code" and isinstance(keyword.value, ast.Constant):
                        yield str(keyword.value.value)


def _named() -> Iterator[str]:
    for name, value in inspect.getmembers(faults):
        if name.isupper() and not name.startswith("_") and isinstance(value, str):
            yield value


def _status(fault: Fault | int) -> str:
    status = fault if isinstance(fault, int) else fault.status
    return str(status) if status else ""
