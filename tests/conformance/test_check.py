"""The checker before live servers: our own passes, and each fault of a little server is named by its requirement."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree as Xml

import httpx2
import pytest
from click.testing import CliRunner
from starlette.requests import Request
from starlette.responses import JSONResponse, Response

from agui_bridge.cli import main
from agui_bridge.demo import demo_agent
from agui_check import Report, Status, Unreachable, check
from tests.conformance.little_server import Event, Little
from tests.serving import listening, serving

BEYOND_OURS = {"R-020", "R-104"}
"""Where the demo shows a stated departure."""


async def report_on(little: Little, **more: Any) -> Report:
    async with listening(little.app) as url:
        return await check(url, timeout=5, **more)


def with_status(report: Report, *statuses: Status) -> set[str]:
    return {result.requirement.id for result in report.results if result.status in statuses}


# --- our own ------------------------------------------------------------------------------------------------------


@pytest.mark.requirement(
    "R-001",
    "R-002",
    "R-003",
    "R-004",
    "R-005",
    "R-007",
    "R-008",
    "R-009",
    "R-010",
    "R-011",
    "R-012",
    "R-013",
    "R-014",
    "R-016",
    "R-017",
    "R-018",
    "R-021",
    "R-022",
    "R-024",
    "R-025",
    "R-029",
    "R-030",
    "R-031",
    "R-040",
    "R-042",
    "R-043",
    "R-044",
    "R-048",
    "R-049",
    "R-051",
    "R-053",
    "R-054",
    "R-055",
    "R-056",
    "R-057",
    "R-058",
    "R-059",
    "R-061",
    "R-062",
    "R-065",
    "R-066",
    "R-067",
    "R-068",
    "R-070",
    "R-071",
    "R-072",
    "R-073",
    "R-074",
    "R-075",
    "R-076",
    "R-077",
    "R-078",
    "R-079",
    "R-080",
    "R-081",
    "R-085",
    "R-086",
    "R-088",
    "R-089",
    "R-090",
    "R-100",
    "R-101",
    "R-102",
    "R-103",
    "R-105",
    "R-106",
    "R-107",
    "R-108",
    "R-109",
    "R-110",
    "R-111",
    "R-112",
    "R-113",
    "R-117",
    "R-118",
    "R-120",
    "R-121",
    "R-122",
    "R-123",
    "R-124",
    "R-126",
    "R-129",
    "R-133",
    "R-135",
    "R-136",
    "R-141",
    "R-150",
    "R-151",
    "R-152",
    "R-153",
    "R-154",
    "R-156",
    "R-157",
    "R-167",
    "R-180",
    "R-181",
    "R-182",
    "R-184",
    "R-186",
    "R-187",
    "R-190",
    "R-191",
    "R-192",
    "R-193",
    "R-194",
    "R-195",
    "R-196",
    "R-199",
    "R-204",
)
async def test_our_server_passes_all_that_it_can_be_provoked_to(request: pytest.FixtureRequest) -> None:
    async with serving(demo_agent()) as served:
        report = await check(served.url)
    assert [result for result in report.results if result.status in (Status.FAILED, Status.WARNED)] == []
    assert with_status(report, Status.DEPARTURE) <= BEYOND_OURS
    marker = request.node.get_closest_marker("requirement")
    assert marker is not None
    assert set(marker.args) <= with_status(report, Status.PASSED)
    assert {"/script", "/tokens", "/fail", "cancel"} <= set(report.facilities)
    assert {"id", "events", "connect", "cancel", "capabilities", "scripted model"} <= set(report.extensions)


async def test_an_agent_of_many_is_checked_by_its_path() -> None:
    async with serving({"a": demo_agent(), "b": demo_agent()}) as served:
        report = await check(f"{served.url}/agents/b", only=["R-003", "R-011"])
    assert with_status(report, Status.PASSED) == {"R-003", "R-011"}


# --- a server that is right ----------------------------------------------------------------------------------------


async def test_a_little_server_that_is_right_has_no_findings() -> None:
    report = await report_on(Little())
    assert [result for result in report.results if result.status in (Status.FAILED, Status.DEPARTURE)] == []
    assert with_status(report, Status.WARNED) <= {"R-061"}
    assert {"R-160", "R-165", "R-168", "R-169", "R-170", "R-172", "R-201"} <= with_status(report, Status.PASSED)
    assert {"R-190", "R-191", "R-192", "R-194"} <= with_status(report, Status.PASSED)


async def test_what_could_not_be_provoked_is_not_tested_and_says_why() -> None:
    def deaf(events: list[Event], asked: Event) -> list[Event]:
        return [events[0], {"type": "RUN_FINISHED", "threadId": asked["threadId"], "runId": asked["runId"]}]

    report = await report_on(Little(events=deaf))
    assert report.facilities == ()
    untested = [result for result in report.results if result.status is Status.NOT_TESTED]
    assert {"R-010", "R-012", "R-072", "R-085", "R-104", "R-122", "R-160"} <= {each.requirement.id for each in untested}
    assert all(result.reason and not result.told for result in untested)


# --- faults -------------------------------------------------------------------------------------------------------


def every(change: Callable[[Event], Event]) -> Little:
    return Little(events=lambda events, _: [change(event) for event in events])


def without(*types: str) -> Little:
    return Little(events=lambda events, _: [event for event in events if event["type"] not in types])


def behind(*more: Event) -> Little:
    return Little(events=lambda events, _: [*events, *more])


def within(*more: Event) -> Little:
    return Little(events=lambda events, _: [events[0], *more, *events[1:]])


def declaring(group: str, flag: str, value: bool) -> Little:
    return Little(declares=lambda it: {**it, group: {**it[group], flag: value}})


def left_out(event: Event, member: str) -> Event:
    return {name: value for name, value in event.items() if name != member}


def changed(event: Event, type_: str, **members: Any) -> Event:
    return {**event, **members} if event["type"] == type_ else event


def versions_are_echoed(events: list[Event], asked: Event) -> list[Event]:
    return [{**events[0], "protocolVersion": asked.get("protocolVersion", "1.0")}, *events[1:]]


def same_ids(events: list[Event], asked: Event) -> list[Event]:
    return [{**event, "messageId": "m1"} if event["type"].startswith("TEXT_") else event for event in events]


def no_protobuf(asked: Event, request: Request) -> Response | None:
    return JSONResponse({}, 406) if "proto" in request.headers["accept"] else None


def newer_versions(asked: Event, request: Request) -> Response | None:
    return JSONResponse({}, 400) if asked.get("protocolVersion", "1.0") != "1.0" else None


def only_objects(asked: Event, request: Request) -> Response | None:
    return JSONResponse({}, 422) if not isinstance(asked.get("state", {}), dict) else None


def tool_histories(asked: Event, request: Request) -> Response | None:
    return JSONResponse({}, 500) if asked["messages"] and asked["messages"][-1]["role"] == "tool" else None


def resumes(asked: Event, request: Request) -> Response | None:
    unknown = [entry for entry in asked.get("resume", []) if entry["interruptId"].startswith("interrupt-")]
    return JSONResponse({}, 409) if unknown else None


BAD_DELTA = {"type": "STATE_DELTA", "delta": [{"op": "replace", "path": "/no/where", "value": 1}]}
SPAN = {"type": "REASONING_START", "messageId": "s1"}

FAILING: dict[str, tuple[str, Little]] = {
    "two terminals": ("R-068", behind({"type": "RUN_FINISHED", "threadId": "t", "runId": "r"})),
    "an event behind the end": ("R-068", behind({"type": "CUSTOM", "name": "v:late", "value": 1})),
    "no terminal": ("R-013", without("RUN_FINISHED", "RUN_ERROR")),
    "no beginning": ("R-065", without("RUN_STARTED")),
    "two beginnings": ("R-067", within({"type": "RUN_STARTED", "threadId": "t", "runId": "r"})),
    "text left open": ("R-070", without("TEXT_MESSAGE_END")),
    "text that was never begun": ("R-085", without("TEXT_MESSAGE_START")),
    "a span left open": ("R-070", within(SPAN)),
    "a call without its end": ("R-070", without("TOOL_CALL_END")),
    "no protocolVersion": ("R-150", every(lambda event: left_out(event, "protocolVersion"))),
    "an echoed protocolVersion": ("R-150", Little(events=versions_are_echoed)),
    "another thread": ("R-051", every(lambda event: changed(event, "RUN_STARTED", threadId="x"))),
    "another run": ("R-051", every(lambda event: changed(event, "RUN_STARTED", runId="x"))),
    "another run at the end": ("R-051", every(lambda event: changed(event, "RUN_FINISHED", runId="x"))),
    "ids used again": ("R-086", Little(events=same_ids)),
    "null": ("R-187", every(lambda event: changed(event, "TEXT_MESSAGE_START", name=None))),
    "metadata of null": ("R-180", every(lambda event: {**event, "metadata": None})),
    "outcome of null": ("R-077", every(lambda event: changed(event, "RUN_FINISHED", outcome=None))),
    "an unknown member": ("R-186", every(lambda event: {**event, "mine": 1})),
    "an unknown event": ("R-186", within({"type": "MINE"})),
    "thinking": ("R-141", within({"type": "THINKING_START"}, {"type": "THINKING_END"})),
    "a timestamp with a fraction": ("R-188", every(lambda event: {**event, "timestamp": 1.5})),
    "an error without a message": ("R-078", every(lambda event: {} | changed(event, "RUN_ERROR", message=None))),
    "a delta that does not apply": ("R-122", within(BAD_DELTA)),
    "a bad pointer": ("R-121", within({"type": "STATE_DELTA", "delta": [{"op": "remove", "path": "n"}]})),
    "an incomplete snapshot": ("R-126", within({"type": "MESSAGES_SNAPSHOT", "messages": []})),
    "calls that are not listed": (
        "R-107",
        every(lambda e: changed(e, "RUN_FINISHED", outcome={"type": "success", "pendingToolCallIds": ["x"]})),
    ),
    "results left out": ("R-108", without("TOOL_CALL_RESULT")),
    "CRLF": ("R-005", Little(frame=lambda document: f"data: {document}\r\n\r\n")),
    "a sentinel": ("R-004", Little(frame=lambda document: f"data: {document}\n\ndata: [DONE]\n\n")),
    "a batch": ("R-004", Little(frame=lambda document: f"data: [{document}]\n\n")),
    "letters that change": ("R-090", Little(frame=lambda document: f"data: {document}\n\n".replace("\\u0301", ""))),
    "406 for protobuf": ("R-023", Little(refuse=no_protobuf)),
    "versions that are refused": ("R-151", Little(refuse=newer_versions)),
    "state that must be an object": ("R-048", Little(refuse=only_objects)),
    "histories that crash": ("R-042", Little(refuse=tool_histories)),
    "an unvalidated resume": ("R-168", Little(trusts_ids=True)),
    "an unvalidated payload": ("R-172", Little(trusts_payloads=True)),
    "interrupts that are forgotten": ("R-169", Little(forgets_interrupts=True)),
    "capabilities of another shape": ("R-191", Little(declares=lambda it: {**it, "multiAgent": {"subAgents": []}})),
    "capabilities that are no object": ("R-191", Little(declares=lambda it: [it])),
    "tools of pages among the agent's": ("R-194", Little(lists_tools_of_pages=True)),
}

WARNED: dict[str, tuple[str, Little]] = {
    "data without a space": ("R-004", Little(frame=lambda document: f"data:{document}\n\n")),
    "a name without a prefix": ("R-184", within({"type": "CUSTOM", "name": "mine", "value": 1})),
    "protobuf that is declared and not sent": ("R-192", declaring("transport", "httpBinary", True)),
    "tools of pages that are taken though it is said they are not": (
        "R-192",
        declaring("tools", "clientProvided", False),
    ),
    "interrupts that are declared not to be": ("R-192", declaring("humanInTheLoop", "interrupts", False)),
    "a resume that is refused": ("R-167", Little(refuse=resumes)),
}


@pytest.mark.parametrize("fault", FAILING)
async def test_a_fault_is_named_by_its_requirement(fault: str) -> None:
    requirement, little = FAILING[fault]
    report = await report_on(little)
    result = report.of(requirement)
    assert result.status is Status.FAILED
    assert result.told[0].finding.message
    assert not report.ok


@pytest.mark.parametrize("fault", WARNED)
async def test_what_breaks_no_must_is_a_warning(fault: str) -> None:
    requirement, little = WARNED[fault]
    report = await report_on(little)
    assert report.of(requirement).status is Status.WARNED
    assert report.ok


async def test_text_that_is_left_open_at_an_error_is_told_though_it_is_legal() -> None:
    def cut(events: list[Event], asked: Event) -> list[Event]:
        failed = events[-1]["type"] == "RUN_ERROR"
        return [event for event in events if not (failed and event["type"] == "TEXT_MESSAGE_END")]

    report = await report_on(Little(events=cut))
    told = report.of("R-070")
    assert told.status is Status.WARNED
    assert "left open at RUN_ERROR" in told.told[0].finding.message


class TestInputThatIsNotValidated:
    """A server that takes whatever has a thread and a run."""

    async def test_each_leniency_is_named(self) -> None:
        report = await report_on(Little(validates=False))
        failed = with_status(report, Status.FAILED)
        assert {"R-009", "R-055", "R-056"} <= failed


async def test_a_body_that_stays_open_behind_its_end_is_found() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await receive()
            await send({"type": "lifespan.startup.complete"})
            await receive()
            await send({"type": "lifespan.shutdown.complete"})
            return
        asked = json.loads((await receive())["body"] or b"{}")
        ids = {"threadId": asked.get("threadId"), "runId": asked.get("runId")}
        started = {"type": "RUN_STARTED", **ids, "protocolVersion": "1.0"}
        frames = "".join(f"data: {json.dumps(e)}\n\n" for e in (started, {"type": "RUN_FINISHED", **ids}))
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": frames.encode(), "more_body": True})
        while (await receive())["type"] != "http.disconnect":
            pass

    async with listening(app) as url:
        report = await check(url, only=["R-003"], timeout=0.3)
        stays_open = await check(url, only=["R-008"], timeout=0.3)
    assert report.of("R-003").status is Status.PASSED
    assert stays_open.of("R-008").status is Status.FAILED


# --- the command --------------------------------------------------------------------------------------------------


async def invoked(*args: str) -> Any:
    return await asyncio.to_thread(CliRunner().invoke, main, ["check", *args])


async def test_the_command_prints_a_table_and_exits_with_what_it_found(tmp_path: Path) -> None:
    junit = tmp_path / "junit.xml"
    async with listening(Little().app) as right, listening(FAILING["CRLF"][1].app) as wrong:
        good = await invoked(right, "--only", "R-00", "--junit", str(junit))
        bad = await invoked(wrong, "--only", "R-00")
    assert (good.exit_code, bad.exit_code) == (0, 1)
    assert "passed      R-003  MUST" in good.stdout
    assert "0 failed" in good.stdout
    assert "failed      R-005  MUST" in bad.stdout
    suite = Xml.parse(junit).getroot().find("testsuite")
    assert suite is not None
    assert suite.get("failures") == "0"
    assert len(suite) == int(suite.get("tests", "0")) == 9
    assert len(suite.findall("testcase/skipped")) == int(suite.get("skipped", "0"))


async def test_the_report_is_there_as_json() -> None:
    async with listening(Little().app) as url:
        document = json.loads((await invoked(url, "--json", "--only", "R-003")).stdout)
    assert document["ok"]
    assert document["spec"] == "1.0"
    assert [(each["id"], each["status"]) for each in document["results"]] == [("R-003", "passed")]


async def test_headers_go_with_every_request() -> None:
    def closed(asked: Event, request: Request) -> Response | None:
        return None if request.headers.get("authorization") == "Bearer x" else JSONResponse({}, 401)

    async with listening(Little(refuse=closed).app) as url:
        shut = await invoked(url, "--only", "R-003")
        let_in = await invoked(url, "--only", "R-003", "--header", "Authorization: Bearer x")
    assert (shut.exit_code, let_in.exit_code) == (2, 0)
    assert "--header" in shut.stderr


async def test_nothing_to_check_exits_with_two() -> None:
    async with listening(Little().app) as url:
        nowhere = await invoked(url, "--agent-path", "/nobody")
    gone = await invoked(url)
    assert (nowhere.exit_code, gone.exit_code) == (2, 2)
    assert (await invoked("ftp://example")).exit_code == 2
    assert (await invoked(url, "--only", "X")).exit_code == 2


@pytest.mark.parametrize("status", [200, 400, 501])
async def test_a_web_server_that_is_no_agui_server_is_nothing_to_check(status: int) -> None:
    def page(asked: Event, request: Request) -> Response:
        return Response("<html>Hello</html>", status, media_type="text/html")

    async with listening(Little(refuse=page).app) as url:
        told = await invoked(url)
    assert (told.exit_code, told.stdout) == (2, "")
    assert f"HTTP {status} text/html: there is no AG-UI endpoint" in told.stderr


async def test_what_never_came_to_a_run_is_not_passed() -> None:
    def broken(asked: Event, request: Request) -> Response:
        return JSONResponse({"code": "broken"}, 500)

    report = await report_on(Little(refuse=broken), only=["R-003", "R-044", "R-150", "R-204"])
    assert with_status(report, Status.FAILED) == {"R-003"}
    assert with_status(report, Status.NOT_TESTED) == {"R-044", "R-150", "R-204"}


async def test_nobody_who_listens_is_said() -> None:
    with pytest.raises(Unreachable, match=r"127\.0\.0\.1"):
        await check("http://127.0.0.1:1/", timeout=1)


async def test_the_checker_asks_only_its_target() -> None:
    async with listening(Little().app) as url, httpx2.AsyncClient() as http:
        await check(url, only=["R-204"], timeout=5)
        assert (await http.get(url)).status_code == 405
