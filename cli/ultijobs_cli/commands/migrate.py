"""`migrate`: the one command that changes tables."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from ultijobs import _settings
from ultijobs.errors import CliBadFlag, SchemaOutdated
from ultijobs_cli import wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.connect import inspector
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import Finding, Report
from ultijobs_cli.settings import application, database
from ultijobs_cli.tables import Paragraph

if TYPE_CHECKING:
    from ultijobs import App

__all__ = ["migrate"]


async def migrate(
    call: Invocation,
    check: Annotated[bool, typer.Option("--check", help="Change nothing; exit 1 if a migration is missing.")] = False,
) -> Report:
    """Creates or upgrades the tables.

    It is safe on a live database, and from several places at once: one applies the migrations, the others wait and
    find them done. No other command changes tables. With --app it also stores the application's declarations, so
    that operators see them before the first worker starts.

    $ ultijobs migrate --database-url postgresql://localhost/shop
    $ ultijobs migrate --check
    """
    url, schema = database(call.flags)
    if check:
        return await _check(call, schema)
    if url.partition(":")[0] == "memory":
        raise CliBadFlag("a queue in memory has no tables", fix="give --database-url postgresql://…")
    app = load_app(call, or_outbox=True) if application(call.flags) else None
    from ultijobs.postgres import migrate as migrations  # noqa: PLC0415 - asyncpg is loaded by who needs it

    async with _server(call, url) as address:
        applied = await migrations.migrate(address, schema)
        if app is not None:
            await _declare(call, app)
    at = migrations.target()
    what = f"applied {wording.plural(len(applied), 'migration')}" if applied else "nothing to do"
    declared = 0 if app is None else len(app.registry.jobs)
    summary = f"{what}; schema {schema} is at version {at}" + (
        f"; {wording.plural(declared, 'job')} declared" if app else ""
    )
    return Report(
        summary, {"schema": schema, "version": at, "applied": applied, "declared": declared}, [Paragraph(summary)]
    )


async def _check(call: Invocation, schema: str) -> Report:
    try:
        async with inspector(call) as api:
            version = (await api.health()).schema_version
    except SchemaOutdated as outdated:
        data = {"schema": schema, "version": outdated.meta.get("database"), "needed": outdated.meta.get("release")}
        return Report(outdated.cause, data, findings=[Finding.of(outdated)], exit_code=ExitCode.FAILED)
    summary = f"schema {schema} is at version {version}, as this release needs it"
    return Report(summary, {"schema": schema, "version": version, "needed": version}, [Paragraph(summary)])


@asynccontextmanager
async def _server(call: Invocation, url: str) -> AsyncGenerator[str]:
    """The address to migrate, once it has answered; an embedded server runs for the block."""
    scheme, _, directory = url.partition(":")
    if scheme == "embedded":
        from ultijobs.postgres.embedded import EmbeddedServer  # noqa: PLC0415 - as asyncpg

        server = EmbeddedServer(directory)
        try:
            yield await asyncio.to_thread(server.start)
        finally:
            await asyncio.to_thread(server.stop)
        return
    try:
        async with inspector(call):
            pass
    except SchemaOutdated:
        pass  # It answers; what it lacks is about to be made.
    yield url


async def _declare(call: Invocation, app: App[Any]) -> None:
    from ultijobs._definitions.catalogue import catalogue  # noqa: PLC0415 - it loads pydantic

    around = _settings.load()
    async with inspector(call) as api:
        await api.driver.publish_catalog(
            catalogue(
                app.registry,
                redact=app.redact,
                retention=app.retention,
                limits=app.limits,
                code_version=around.code_version,
                environment=around.environment,
            )
        )
