"""`agui-bridge owners …`: hand out, or erase, all that is kept of one principal."""

from __future__ import annotations

from pathlib import Path

import click

from agui_bridge.cli_store import Age, alone_or_beside, beside, json_option, run, say_json, settings_of, store_option
from agui_bridge.settings import Settings
from agui_bridge.tables import table
from runtime.canonical import JsonObject
from runtime.journal import DEFAULT_TENANT
from runtime.journal.catalogue import Owner


@click.group()
def owners() -> None:
    """Export or erase what belongs to a principal."""


_tenant = click.option("--tenant", default=DEFAULT_TENANT, show_default=True, help="The principal's tenant.")


@owners.command()
@click.argument("principal", metavar="PRINCIPAL")
@click.option("--output", type=click.Path(dir_okay=False, path_type=Path), help="The archive. Default: export.zip.")
@_tenant
@json_option
@store_option
def export(principal: str, output: Path | None, tenant: str, as_json: bool, store: str | None) -> None:
    """Write everything of a principal into a ZIP archive: sessions, runs, events, artifacts, media, snapshots."""
    target = output or Path("export.zip")
    counts = run(_exported(settings_of(store=store), Owner(tenant, principal), target))
    if as_json:
        say_json({"file": str(target), **counts})
    else:
        click.echo(f"{target}\n" + table(("what", "count"), list(counts.items())))


@owners.command()
@click.argument("principal", metavar="PRINCIPAL")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--wait", type=Age(), default="30s", show_default=True, help="How long a run at work may take to stop.")
@_tenant
@json_option
@store_option
def erase(principal: str, yes: bool, wait: float, tenant: str, as_json: bool, store: str | None) -> None:
    """Erase everything of a principal, for good, and print a receipt. What is at work is stopped first."""
    if not yes:
        click.confirm(f"Erase everything of {principal!r} (tenant {tenant!r}) for good?", abort=True, err=True)
    receipt = run(_erased(settings_of(store=store), Owner(tenant, principal), wait))
    if as_json:
        say_json(receipt)
    else:
        rows = [*receipt["database"].items(), ("artifact files", receipt["artifact_files"])]
        click.echo(table(("erased", "count"), rows))


async def _exported(settings: Settings, owner: Owner, target: Path) -> dict[str, int]:
    from agui_bridge.export import export as write
    from runtime.blobs.open import blobs_for
    from runtime.supervisor import Supervisor

    async with beside(settings) as store:
        shelf = Supervisor(store, {}, blobs=blobs_for(settings.artifacts, settings.store, store)).artifacts
        return await write(store, shelf, owner, target)


async def _erased(settings: Settings, owner: Owner, wait_s: float) -> JsonObject:
    from runtime.blobs.open import blobs_for
    from runtime.supervisor import Supervisor

    async with alone_or_beside(settings) as store:
        supervisor = Supervisor(store, {}, blobs=blobs_for(settings.artifacts, settings.store, store))
        try:
            return (await supervisor.erasure.owner(owner, wait_s)).as_payload()
        finally:
            await supervisor.tail.elsewhere.close()
