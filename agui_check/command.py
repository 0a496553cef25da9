"""`agui-bridge check URL`: the checks as a command. Exits with 0, with 1 on failures, with 2 without a target."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import click

from agui_check.check import check
from agui_check.inquiry import Probe
from agui_check.render import as_junit, as_table
from agui_check.report import Report
from agui_check.requirements import REQUIREMENTS
from agui_check.target import Unreachable


@click.command("check")
@click.argument("url", metavar="URL")
@click.option("--agent-path", default="", help="The agent's path below the URL, for example /agents/support.")
@click.option("--header", "headers", multiple=True, metavar="NAME:VALUE", help="A header of each request; repeatable.")
@click.option("--only", multiple=True, metavar="R-…", help="Requirements by the beginning of their id; repeatable.")
@click.option("--timeout", type=click.FloatRange(min=0.1), default=20, show_default=True, help="Seconds for a request.")
@click.option("--json", "as_json", is_flag=True, help="Print the report as JSON.")
@click.option("--junit", type=click.Path(dir_okay=False, path_type=Path), help="Write the report as JUnit XML, too.")
def command(
    url: str,
    agent_path: str,
    headers: tuple[str, ...],
    only: tuple[str, ...],
    timeout: float,
    as_json: bool,
    junit: Path | None,
) -> None:
    """Check any AG-UI endpoint against AG-UI 1.0, requirement by requirement.

    What cannot be provoked at a server counts as not tested. Exits with 1 if a MUST failed, with 2 if there is nothing
    to check.
    """
    sent = dict(_header(each) for each in headers)
    wanted = _wanted(only)
    if agent_path:
        url = f"{url.rstrip('/')}/{agent_path.lstrip('/')}"
    try:
        report = asyncio.run(_checked(url, headers=sent, only=wanted, timeout=timeout))
    except Unreachable as error:
        click.echo(f"Error: {error}", err=True)
        sys.exit(2)
    if junit is not None:
        junit.write_text(as_junit(report), "utf-8")
    click.echo(json.dumps(report.document(), ensure_ascii=False, indent=2) if as_json else as_table(report))
    sys.exit(0 if report.ok else 1)


async def _checked(url: str, **how: Any) -> Report:
    with click.progressbar(length=1, label="Checking", file=sys.stderr, item_show_func=_name) as bar:

        def begins(probe: Probe, number: int, count: int) -> None:
            bar.length = count
            bar.update(number - bar.pos, probe)

        report = await check(url, on_probe=begins, **how)
        bar.update((bar.length or 1) - bar.pos)
        return report


def _name(probe: Probe | None) -> str:
    return "" if probe is None else probe.name


def _header(text: str) -> tuple[str, str]:
    name, colon, value = text.partition(":")
    if not colon or not name.strip():
        raise click.BadParameter(f"{text!r} is not NAME:VALUE.", param_hint="--header")
    return name.strip().lower(), value.strip()


def _wanted(only: tuple[str, ...]) -> list[str]:
    wanted = [id_ for id_ in REQUIREMENTS if not only or id_.startswith(only)]
    for each in only:
        if not any(id_.startswith(each) for id_ in REQUIREMENTS):
            raise click.BadParameter(f"No requirement begins with {each!r}.", param_hint="--only")
    return wanted
