"""Opens what commands speak to: the queue's database, within the time that a person waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final, Literal

from ultijobs.errors import DriverUnavailable, Invariant
from ultijobs.inspection import Inspector
from ultijobs_cli.command import Invocation
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.loading import load_app
from ultijobs_cli.render import masked
from ultijobs_cli.report import CommandFailed
from ultijobs_cli.settings import application, database, named

__all__ = ["OPEN_WITHIN", "inspector", "inspector_of", "outbox_inspector", "within_reach"]

OPEN_WITHIN: Final = 4.0
"""Seconds; with the start of the process it stays under five."""
EMBEDDED_WITHIN: Final = 60.0
"""Seconds; a server that is ours may have to be made and started first."""


@asynccontextmanager
async def within_reach(url: str) -> AsyncGenerator[None]:
    """The block that opens `url`: what keeps it from that is exit 4, and so is a silence of some seconds."""
    within = EMBEDDED_WITHIN if url.startswith("embedded:") else OPEN_WITHIN
    try:
        async with asyncio.timeout(within):
            yield
    except TimeoutError:
        raise DriverUnavailable(
            f"{masked(url)} did not answer within {within:g} s",
            fix="check host, port and firewall, or give another address with --database-url",
        ) from None
    except Invariant as unusable:
        raise CommandFailed.because(unusable, exit_code=ExitCode.CANNOT_START) from unusable


@asynccontextmanager
async def inspector(call: Invocation, *, actor: str | None = None) -> AsyncGenerator[Inspector]:
    """The inspection of the database that the settings name, else of the one that the application itself says.

    Raises `CliBadFlag` where neither does, `DriverUnavailable` when it does not answer, `SchemaOutdated`.
    """
    async with AsyncExitStack() as stack:
        if application(call.flags) and not named(call.flags):
            driver = load_app(call).driver
            async with within_reach(driver.url):
                await driver.open("cli")
            stack.push_async_callback(driver.close)
            yield Inspector(driver, actor=actor, source="cli")
            return
        url, schema = database(call.flags)
        yield await stack.enter_async_context(inspector_of(url, schema, actor=actor))


@asynccontextmanager
async def inspector_of(
    url: str, schema: str, *, actor: str | None = None, asker: Literal["cli", "tui"] = "cli"
) -> AsyncGenerator[Inspector]:
    """The inspection of the database at `url`. Raises as `inspector` does."""
    async with AsyncExitStack() as stack:
        async with within_reach(url):
            opening = Inspector.connect(url, schema, role=asker, actor=actor, source=asker)
            api = await stack.enter_async_context(opening)
        yield api


@asynccontextmanager
async def outbox_inspector(call: Invocation, *, actor: str | None = None) -> AsyncGenerator[Inspector]:
    """The database that holds the outbox: where the application has it, else that of the settings.

    A database that a flag names is that database, unless the application is named by a flag as well.
    """
    asks_the_app = application(call.flags) and (call.flags.app or not call.flags.database_url)
    staged = load_app(call) if asks_the_app else None
    if staged is None or staged.outbox is None:
        async with inspector(call, actor=actor) as api:
            yield api
    else:
        async with inspector_of(staged.outbox, staged.schema, actor=actor) as api:
            yield api
