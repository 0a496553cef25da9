"""Probes of the transport: HTTP, SSE, protobuf."""

from __future__ import annotations

from typing import Final

from agui_check.inquiry import BRIDGE, FAIL, SCRIPT, TOKENS, Inquiry, Probe, call, new, probe, user
from agui_check.target import PROTOBUF, SSE, Exchange

_DELTAS = 1000
_LETTERS = 'e\u0301 \U0001f468\u200d\U0001f469\u200d\U0001f467 \u4f60\u597d \u2028\u2029\u0085 \\ " \t end'


@probe("R-001", "R-002", "R-003", "R-008", "R-010", "R-016", "R-040")
async def a_plain_question_is_answered(i: Inquiry) -> None:
    exchange = await i.run({"threadId": new("thread"), "runId": new("run"), "messages": [user("Hello")]})
    i.first = exchange
    if not i.expect("R-003", exchange.streams, f"A run that should start is answered with {exchange.answer}."):
        i.expect("R-040", not exchange.refused, "An input of thread, run and messages alone is refused.")
        return
    i.passed("R-001", "R-002", "R-040")
    if exchange.outcome != "nothing":
        i.passed("R-016")


@probe("R-002")
async def only_post_starts_a_run(i: Inquiry) -> None:
    for method in ("GET", "PUT"):
        answer = await i.target.get(i.target.url, method)
        i.expect("R-002", not answer.streams, f"{method} starts a stream of events.")


@probe("R-002", "R-090", needs=(SCRIPT,))
async def text_arrives_as_it_was_said(i: Inquiry) -> None:
    exchange = await i.script({"text": _LETTERS})
    i.expect("R-090", exchange.text == _LETTERS, "Letters beyond ASCII do not come back as they were sent.")


@probe("R-009", "R-014")
async def bad_input_is_refused_before_a_stream(i: Inquiry) -> None:
    bad = {"no JSON": b"{", "no object": b"[]", "an empty body": b"", "no messages": {"threadId": "t", "runId": "r"}}
    for what, body in bad.items():
        exchange = await i.target.post(body)
        i.expect("R-009", exchange.refused, f"A body with {what} is answered with {exchange.answer}.")
        i.expect("R-014", not exchange.streams, f"A body with {what} starts a stream.")


@probe("R-011")
async def last_event_id_changes_nothing(i: Inquiry) -> None:
    exchange = await i.run(i.body(), last_event_id="5")
    begins = [event["type"] for event in exchange.events[:1]]
    i.expect("R-011", begins in (["RUN_STARTED"], ["RUN_ERROR"]), f"With Last-Event-ID there is {exchange.answer}.")


@probe("R-012", needs=(SCRIPT,))
async def a_thousand_deltas_keep_their_order(i: Inquiry) -> None:
    words = " ".join(f"w{number}" for number in range(_DELTAS))
    exchange = await i.script({"text": words})
    i.expect("R-012", exchange.text == words, "A thousand words arrive incomplete or in another order.")


@probe("R-012", "R-008", needs=(TOKENS,))
async def tokens_are_all_there(i: Inquiry) -> None:
    exchange = await i.say(f"/tokens {_DELTAS}")
    came = exchange.text.count("tok")
    i.expect("R-012", came == _DELTAS, f"Of {_DELTAS} tokens {came} arrive.")


@probe("R-010", "R-013", "R-078", "R-079", needs=(FAIL,))
async def a_provider_that_fails_is_told_in_the_stream(i: Inquiry) -> None:
    for words in ("/fail 3", "/fail 0"):
        exchange = await i.say(words)
        told = exchange.outcome == "error"
        i.expect("R-079", told, f"A provider that fails ends as {exchange.answer}, without RUN_ERROR.")
        if exchange.streams:
            i.expect("R-010", told, f"A failure in the stream ends it as {exchange.outcome}.")
        message = str(exchange.last.get("message", ""))
        leaks = told and any(mark in message for mark in ("Traceback", 'File "'))
        i.expect("R-078", not leaks, "The message of RUN_ERROR holds a traceback.")


@probe("R-079", "R-013", needs=(SCRIPT,))
async def a_failure_within_open_items_ends_legally(i: Inquiry) -> None:
    reasoning = await i.script({"reasoning": "a thought that is long enough to be cut", "fail": 2})
    cut = await i.script({"tool_calls": [call("get_time", {"tz": "Europe/Oslo"})], "fail": 2})
    for exchange in (reasoning, cut):
        i.expect("R-079", exchange.outcome == "error", f"A failure within open items ends as {exchange.answer}.")


@probe("R-020", "R-021", "R-022", "R-023", "R-024", "R-025", "R-029", "R-030")
async def accept_is_negotiated(i: Inquiry) -> None:
    exchange = await i.target.post(i.body(), accept=PROTOBUF)
    if exchange.headers.get("content-type", "").startswith(PROTOBUF):
        await _protobuf(i, exchange)
    else:
        i.expect("R-023", exchange.streams, f"Who asks for protobuf alone gets {exchange.answer}.")
        i.skip("the server offers no protobuf", *(f"R-{number:03}" for number in range(20, 31) if number != 23))
    for accept in (SSE, f"{SSE}, {PROTOBUF};q=0", "application/json", ""):
        answer = await i.target.post(i.body(), accept=accept)
        i.expect("R-022", answer.streams, f"Accept: {accept or '(empty)'} is answered with {answer.answer}.")


async def _protobuf(i: Inquiry, exchange: Exchange) -> None:
    header = exchange.headers["content-type"]
    i.expect("R-024", header == PROTOBUF, f"The content type of protobuf is {header!r}.")
    rest = exchange.body
    while len(rest) >= 4 and len(rest) >= 4 + int.from_bytes(rest[:4], "big"):
        rest = rest[4 + int.from_bytes(rest[:4], "big") :]
    i.expect("R-025", len(exchange.body) > 4, "The body of protobuf has no frame.")
    i.expect("R-030", not rest, "The body of protobuf ends within a frame, or its lengths are wrong.")
    small = await i.target.post(i.body(), accept=f"{SSE};q=1, {PROTOBUF};q=0.1")
    i.expect("R-021", small.media_type == PROTOBUF, "A smaller q keeps protobuf from being answered.")
    for accept in ("*/*", "application/*"):
        wild = await i.target.post(i.body(), accept=accept)
        if wild.media_type != PROTOBUF:
            i.fault("R-020", f"Accept: {accept} is answered with {wild.answer}.", departure=BRIDGE in i.facilities)
    i.passed("R-020")
    bad = await i.target.post({"threadId": "t", "runId": "r"}, accept=PROTOBUF)
    refused = bad.refused and bad.media_type != PROTOBUF
    i.expect("R-029", refused, f"Bad input is answered with {bad.answer} where protobuf was asked for.")


@probe("R-031", needs=(SCRIPT,))
async def a_large_text_stays_in_small_frames(i: Inquiry) -> None:
    exchange = await i.script({"text": "x" * 200_000})
    i.expect("R-031", exchange.text == "x" * 200_000, "A text of 200,000 letters does not arrive whole.")


PROBES: Final[tuple[Probe, ...]] = (
    only_post_starts_a_run,
    text_arrives_as_it_was_said,
    bad_input_is_refused_before_a_stream,
    last_event_id_changes_nothing,
    a_thousand_deltas_keep_their_order,
    tokens_are_all_there,
    a_provider_that_fails_is_told_in_the_stream,
    a_failure_within_open_items_ends_legally,
    accept_is_negotiated,
    a_large_text_stays_in_small_frames,
)
