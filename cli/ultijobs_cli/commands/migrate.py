"""`migrate`: the one command that changes tables."""

from __future__ import annotations

from typing import Annotated

import typer

from ultijobs.errors import CliBadFlag, SchemaOutdated
from ultijobs_cli import wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.connect import inspector
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.report import Finding, Report
from ultijobs_cli.settings import database
from ultijobs_cli.tables import Paragraph

__all__ = ["migrate"]


async def migrate(
    call: Invocation,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 when a migration is missing.")] = False,
) -> Report:
    """Creates or upgrades the tables.

    Safe on a live database, and from several places at once: one applies, the others wait and find it done. No other
    command changes tables.

    $ ultijobs migrate --database-url postgresql://localhost/shop
    $ ultijobs migrate --check
    """
    url, schema = database(call.flags)
    if check:
        return await _check(call, schema)
    if not url.startswith(("postgresql://", "postgres://", "embedded:")):
        raise CliBadFlag(
            f"{url.partition(':')[0]}: has no tables to migrate", fix="give a postgresql:// or embedded: address"
        )
    from ultijobs.postgres import migrate as migrations  # noqa: PLC0415 - asyncpg is loaded by who needs it

    applied = await migrations.migrate(url, schema)
    at = migrations.target()
    summary = (
        f"applied {wording.plural(len(applied), 'migration')}; schema {schema} is at version {at}"
        if applied
        else f"nothing to do; schema {schema} is at version {at}"
    )
    return Report(summary, {"schema": schema, "version": at, "applied": applied}, [Paragraph(summary)])


async def _check(call: Invocation, schema: str) -> Report:
    try:
        async with inspector(call) as api:
            version = (await api.health()).schema_version
    except SchemaOutdated as outdated:
        data = {"schema": schema, "version": outdated.meta.get("database"), "needed": outdated.meta.get("release")}
        return Report(outdated.cause, data, findings=[Finding.of(outdated)], exit_code=ExitCode.FAILED)
    summary = f"schema {schema} is at version {version}, as this release needs it"
    return Report(summary, {"schema": schema, "version": version, "needed": version}, [Paragraph(summary)])
