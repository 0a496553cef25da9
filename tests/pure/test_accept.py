"""Which form a client gets for what its `Accept` says."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agui_bridge.wire import PROTO_MEDIA_TYPE as PROTO
from agui_bridge.wire.accept import names_protobuf


@pytest.mark.parametrize(
    "accept",
    [
        [PROTO],
        [PROTO.upper()],
        [f" {PROTO} "],
        [f"{PROTO};q=1"],
        [f"{PROTO};q=0.001"],
        [f"{PROTO} ; Q=0.5"],
        [f"text/event-stream;q=1, {PROTO};q=0.1"],  # weights against each other are not asked
        [f"text/event-stream,*/*;q=0,{PROTO}"],
        ["text/event-stream", PROTO],  # a header that is sent twice is one list
        [f'text/plain;note="a, \\"b", {PROTO}'],
        [f"{PROTO};q=0, {PROTO};q=0.2"],
        [f"{PROTO};q=1.000;extension=1"],
    ],
)
def test_who_names_protobuf_gets_it(accept: list[str]):
    assert names_protobuf(accept)


@pytest.mark.parametrize(
    "accept",
    [
        [],
        [""],
        ["text/event-stream"],
        ["*/*"],  # our departure from R-020
        ["application/*"],
        ["application/json"],
        [f"{PROTO};q=0"],
        [f"{PROTO};q=0.000"],
        [f"*/*, {PROTO};q=0"],
        [f"{PROTO};v=2"],
        [f"{PROTO};v=2;q=1"],
        [f"{PROTO};q=high"],
        [f"{PROTO};q=2"],
        [f"{PROTO};q=-1"],
        [f"{PROTO}+json"],
        [f'text/plain;note="{PROTO}"'],
        [f'text/plain;note=", {PROTO}'],
        [PROTO.replace("/", "/ ")],
        [f"text/plain,{'x' * 9000},{PROTO}"],
    ],
)
def test_everybody_else_gets_server_sent_events(accept: list[str]):
    assert not names_protobuf(accept)


@given(st.lists(st.text(max_size=60) | st.sampled_from([PROTO, ";q=", ",", '"', ";", "0.1"]), max_size=8))
def test_no_header_breaks_it(accept: list[str]):
    assert names_protobuf(["".join(accept)]) in (True, False)
    assert names_protobuf(accept) in (True, False)
