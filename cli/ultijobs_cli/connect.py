"""Opens what commands speak to: the queue's database, within the time that a person waits."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Final

from ultijobs.errors import DriverUnavailable
from ultijobs.inspection import Inspector
from ultijobs_cli.command import Invocation
from ultijobs_cli.render import masked
from ultijobs_cli.settings import database

__all__ = ["OPEN_WITHIN", "inspector"]

OPEN_WITHIN: Final = 4.0
"""Seconds; with the start of the process it stays under five."""


@asynccontextmanager
async def inspector(call: Invocation, *, actor: str | None = None) -> AsyncGenerator[Inspector]:
    """The inspection of the database that the settings name.

    Raises `CliBadFlag` where they name none, `DriverUnavailable` when it does not answer, `SchemaOutdated`.
    """
    url, schema = database(call.flags)
    async with AsyncExitStack() as stack:
        try:
            async with asyncio.timeout(OPEN_WITHIN):
                opening = Inspector.connect(url, schema, role="cli", actor=actor, source="cli")
                api = await stack.enter_async_context(opening)
        except TimeoutError:
            raise DriverUnavailable(
                f"{masked(url)} did not answer within {OPEN_WITHIN:g} s",
                fix="check host, port and firewall, or give another address with --database-url",
            ) from None
        yield api
