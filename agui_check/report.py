"""What a check found, by requirement. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Final

from agui_check.extensions import DEPARTURES, EXTENSIONS
from agui_check.findings import Finding, JsonObject
from agui_check.requirements import REQUIREMENTS, Requirement
from agui_check.schema import SPEC_VERSION

UNSEEN: Final = "nothing in the answers showed it"
"""Why a requirement is not tested when there is no better reason."""


class Status(StrEnum):
    """What is known of a requirement. `warned` is a finding that breaks no MUST."""

    PASSED = "passed"
    FAILED = "failed"
    WARNED = "warned"
    DEPARTURE = "departure"
    NOT_TESTED = "not tested"


@dataclass(frozen=True, slots=True)
class Told:
    """A finding with the probe in whose answer it was found, and how often it was there."""

    finding: Finding
    probe: str
    times: int = 1


@dataclass(frozen=True, slots=True)
class Result:
    """A requirement, what is known of it, and why. `told` are findings and remarks; `reason` is for what has none."""

    requirement: Requirement
    status: Status
    told: tuple[Told, ...] = ()
    reason: str = ""
    probes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a check of one endpoint found. `facilities` are what the server offered to be provoked with."""

    url: str
    results: tuple[Result, ...]
    facilities: tuple[str, ...]
    extensions: tuple[str, ...]
    streams: int

    def count(self, status: Status) -> int:
        """How many requirements have this status."""
        return sum(result.status is status for result in self.results)

    @property
    def ok(self) -> bool:
        """Nothing failed."""
        return self.count(Status.FAILED) == 0

    def of(self, requirement: str) -> Result:
        """The result of a requirement. Raises KeyError if it was not asked for."""
        for result in self.results:
            if result.requirement.id == requirement:
                return result
        raise KeyError(requirement)

    def document(self) -> JsonObject:
        """The report as JSON."""
        return {
            "url": self.url,
            "spec": SPEC_VERSION,
            "ok": self.ok,
            "streams": self.streams,
            "facilities": list(self.facilities),
            "extensions": {name: EXTENSIONS[name] for name in self.extensions},
            "counts": {str(status): self.count(status) for status in Status},
            "results": [_document(result) for result in self.results],
        }


def _document(result: Result) -> JsonObject:
    found = [
        {
            "message": each.finding.message,
            "probe": each.probe,
            "event": each.finding.event,
            "fatal": each.finding.fatal,
            "remark": each.finding.remark,
            "times": each.times,
        }
        for each in result.told
    ]
    requirement = result.requirement
    return {
        "id": requirement.id,
        "level": requirement.level,
        "pages": requirement.pages,
        "text": requirement.text,
        "status": str(result.status),
        "reason": result.reason,
        "probes": list(result.probes),
        "findings": found,
    }


@dataclass(slots=True)
class Ledger:
    """What is found while a check goes on."""

    told: dict[tuple[str, str], Told] = field(default_factory=dict[tuple[str, str], Told])
    passed: dict[str, dict[str, None]] = field(default_factory=dict[str, dict[str, None]])
    skipped: dict[str, str] = field(default_factory=dict[str, str])

    def found(self, finding: Finding, probe: str) -> None:
        """Note a finding; the same one in a later answer only counts."""
        key = finding.requirement, finding.message
        before = self.told.get(key)
        self.told[key] = (
            Told(finding, probe) if before is None else Told(before.finding, before.probe, before.times + 1)
        )

    def tested(self, requirement: str, probe: str) -> None:
        """Note that a requirement was put to the test."""
        self.passed.setdefault(requirement, {})[probe] = None

    def skip(self, requirement: str, reason: str) -> None:
        """Note why a requirement could not be put to the test; the first reason stands."""
        self.skipped.setdefault(requirement, reason)

    def results(self, only: Iterable[str], *, departing: bool) -> tuple[Result, ...]:
        """The results of the wanted requirements. `departing`: the stated departures of agui-bridge apply."""
        reasons = DEPARTURES if departing else {}
        return tuple(self._result(REQUIREMENTS[id_], reasons) for id_ in only)

    def _result(self, requirement: Requirement, departures: Mapping[str, str]) -> Result:
        id_ = requirement.id
        told = tuple(each for each in self.told.values() if each.finding.requirement == id_)
        probes = tuple(self.passed.get(id_, ()))
        faults = [each.finding for each in told if not each.finding.remark]
        if faults:
            if id_ in departures and all(finding.departure for finding in faults):
                return Result(requirement, Status.DEPARTURE, told, departures[id_], probes)
            return Result(
                requirement, Status.FAILED if requirement.level == "MUST" else Status.WARNED, told, "", probes
            )
        if told:
            return Result(requirement, Status.WARNED, told, "", probes)
        if probes:
            return Result(requirement, Status.PASSED, (), "", probes)
        return Result(requirement, Status.NOT_TESTED, (), self.skipped.get(id_) or _BLIND.get(id_, UNSEEN), ())


def _each(reason: str, *numbers: int) -> dict[str, str]:
    return {f"R-{number:03}": reason for number in numbers}


_BLIND: Final[dict[str, str]] = {
    **_each("give credentials with --header; what happens without them was not asked", 15),
    **_each("decoding protobuf needs the official decoder", 26, 27, 28, 32),
    **_each("the server offers protobuf", 23),
    **_each("only the request to the model's provider shows it", 41, 45, 46, 47, 50, 60, 110, 115, 128, 138, 139, 173),
    **_each("only the provider's own counts would show it", 197, 198),
    **_each("only the server's log, audit or code shows it", 116, 125, 155, 200, 202, 203),
    **_each("it speaks of clients, or of transports of one's own", 18, 166, 193),
    **_each("what an addition means cannot be judged from outside", 158, 183, 185, 189, 192),
    **_each("no input was echoed", 52, 62),
    **_each("no item was opened again", 87),
    **_each("no chunks came", 91, 92, 93, 94, 95),
    **_each("no activity came", 127, 130, 131, 132),
    **_each("no encrypted value came", 137, 140),
    **_each("no subagent came", 142, 143, 144, 145, 146, 147, 148, 149, 174),
    **_each("no run failed behind its end", 69),
    **_each("the times of the endpoint's interrupts are its own", 171),
}
"""What no answer showed, or no black-box check of this kind can see, and why."""
