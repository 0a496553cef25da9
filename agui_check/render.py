"""A report as a table for people and as JUnit XML for machines. Pure."""

from __future__ import annotations

import textwrap
from typing import Final
from xml.etree import ElementTree as Xml

from agui_check.extensions import DEPARTURES, EXTENSIONS
from agui_check.inquiry import BRIDGE
from agui_check.report import Report, Result, Status, Told
from agui_check.schema import SPEC_VERSION

_WIDTH: Final = 112
_INDENT: Final = " " * 26
_ORDER: Final = (Status.PASSED, Status.NOT_TESTED, Status.DEPARTURE, Status.WARNED, Status.FAILED)
"""What matters most stands last, where a terminal ends."""


def as_table(report: Report) -> str:
    """The results grouped by status, and the counts."""
    lines = [f"AG-UI {SPEC_VERSION} at {report.url}, judged by {report.streams} streams"]
    for status in _ORDER:
        rows = [result for result in report.results if result.status is status]
        if rows:
            lines += ["", *(_untested(rows) if status is Status.NOT_TESTED else _told(rows))]
    lines += ["", *_beyond(report), _counts(report)]
    return "\n".join(lines)


def _told(results: list[Result]) -> list[str]:
    return [line for result in results for line in _rows(result)]


def _untested(results: list[Result]) -> list[str]:
    """What was not tested, by reason."""
    reasons: dict[str, list[str]] = {}
    for result in results:
        reasons.setdefault(result.reason, []).append(result.requirement.id)
    lines: list[str] = []
    for reason, ids in reasons.items():
        lines += _wrapped(f"{', '.join(ids)}: {reason}", f"{Status.NOT_TESTED:<11} ")
    return lines


def _wrapped(text: str, head: str = _INDENT) -> list[str]:
    return textwrap.wrap(text, _WIDTH, initial_indent=head, subsequent_indent=" " * len(head))


def _rows(result: Result) -> list[str]:
    requirement = result.requirement
    head = f"{result.status:<11} {requirement.id}  {requirement.level:<6} {requirement.text}"
    rows = [head]
    for told in result.told:
        rows += _wrapped(_sentence(told))
    return rows + (_wrapped(f"agui-bridge: {result.reason}") if result.status is Status.DEPARTURE else [])


def _sentence(told: Told) -> str:
    times = f" ({told.times} times)" if told.times > 1 else ""
    where = "" if told.finding.event is None else f", event {told.finding.event}"
    return f"{told.finding.message}{times} In: {told.probe}{where}"


def _beyond(report: Report) -> list[str]:
    lines = [f"extension   {name}: {EXTENSIONS[name]}" for name in report.extensions]
    if BRIDGE in report.facilities:
        lines += [f"stated      {id_}: {words}" for id_, words in DEPARTURES.items()]
    return [*lines, ""] if lines else []


def _counts(report: Report) -> str:
    return ", ".join(f"{report.count(status)} {status}" for status in reversed(_ORDER))


def as_junit(report: Report) -> str:
    """JUnit XML: one test case a requirement. Warnings and departures pass, and say so in their output."""
    suite = Xml.Element(
        "testsuite",
        name=f"AG-UI {SPEC_VERSION}",
        hostname=report.url,
        tests=str(len(report.results)),
        failures=str(report.count(Status.FAILED)),
        skipped=str(report.count(Status.NOT_TESTED)),
        errors="0",
    )
    for result in report.results:
        requirement = result.requirement
        case = Xml.SubElement(suite, "testcase", classname="agui", name=f"{requirement.id} {requirement.text}")
        words = "\n".join(_sentence(told) for told in result.told) or result.reason
        if result.status is Status.FAILED:
            Xml.SubElement(case, "failure", message=words.split("\n")[0], type=requirement.level).text = words
        elif result.status is Status.NOT_TESTED:
            Xml.SubElement(case, "skipped", message=words)
        elif words:
            Xml.SubElement(case, "system-out").text = f"{result.status}: {words}"
    root = Xml.Element("testsuites")
    root.append(suite)
    Xml.indent(root)
    return Xml.tostring(root, encoding="unicode", xml_declaration=True) + "\n"
