"""Pytest plugin: skips what this machine cannot test, says so at the end, and on demand counts it as a failure.

Knows the tools by the table in `tests.toolchain` alone. With `AGUI_BRIDGE_REQUIRE_ALL=1` a run that left something out
fails.
"""

from __future__ import annotations

import os
from collections import Counter

import pytest

from tests.toolchain import TOOLS, why_missing

REQUIRE_ALL = "AGUI_BRIDGE_REQUIRE_ALL"
_PROPERTY = "missing_tool"


def pytest_configure(config: pytest.Config) -> None:
    for tool in TOOLS.values():
        config.addinivalue_line("markers", f"needs_{tool.name}: skipped where {tool.name} is missing")
    config.pluginmanager.register(_Tally(), "missing-tools")


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    marks = {mark.name for mark in item.iter_markers()}
    used: set[str] = set(getattr(item, "fixturenames", ()))
    for tool in TOOLS.values():
        if f"needs_{tool.name}" not in marks and not used & tool.fixtures:
            continue
        if why := why_missing(tool.name):
            # Reports carry user properties from workers to the controller, which alone prints.
            item.user_properties.append((_PROPERTY, tool.name))
            pytest.skip(f"needs {tool.name}: {why} (to get it: {tool.how_to_get})")


class _Tally:
    """What was left out in one run, by tool."""

    def __init__(self) -> None:
        self.untested: Counter[str] = Counter()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.when == "setup" and report.skipped:
            self.untested.update(str(value) for name, value in report.user_properties if name == _PROPERTY)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        on_worker = hasattr(session.config, "workerinput")
        if self.untested and required() and not on_worker and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if not self.untested:
            return
        terminalreporter.section("not tested on this machine", sep="=", yellow=True)
        for name, count in sorted(self.untested.items()):
            tests = "1 test" if count == 1 else f"{count} tests"
            terminalreporter.line(f"{name}: {tests} left out, {why_missing(name)}; to get it: {TOOLS[name].how_to_get}")
        if required():
            terminalreporter.line(f"{REQUIRE_ALL} is set, so this run counts as failed.", red=True)


def required() -> bool:
    """Whether a run must leave nothing out."""
    return os.environ.get(REQUIRE_ALL, "") not in ("", "0")
