"""Black-box conformance checks for any AG-UI 1.0 server, by requirement.

The package stands alone: it imports nothing of the server that it is shipped with, and its judgement is the same for
every server. `verify` judges events, `read_stream` judges the bytes around them, `check` asks a live endpoint.
"""

from __future__ import annotations

from agui_check.check import check
from agui_check.findings import Finding
from agui_check.report import Report, Status
from agui_check.requirements import REQUIREMENTS, Requirement
from agui_check.sse import read_stream
from agui_check.target import Unreachable
from agui_check.verifier import Verdict, verify

__all__ = [
    "REQUIREMENTS",
    "Finding",
    "Report",
    "Requirement",
    "Status",
    "Unreachable",
    "Verdict",
    "check",
    "read_stream",
    "verify",
]
