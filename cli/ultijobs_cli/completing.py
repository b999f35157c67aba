"""What shells offer for names that only the database knows. It is quick or silent, and starts and changes nothing."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncGenerator, Awaitable, Callable, Iterable
from typing import Final, cast

import typer

from ultijobs import _settings
from ultijobs.inspection import Inspector

__all__ = ["backfill_names", "job_names", "queue_names", "task_names", "worker_names"]

_WITHIN: Final = 3.0
"""Seconds; whoever pressed the key waits for it."""

Read = Callable[[Inspector], Awaitable[Iterable[str]]]


def queue_names(ctx: typer.Context, incomplete: str) -> list[str]:
    return _offered(ctx, incomplete, lambda api: _fields(api.queues(), "queue"))


def worker_names(ctx: typer.Context, incomplete: str) -> list[str]:
    return _offered(ctx, incomplete, lambda api: _fields(api.workers(), "worker_id"))


def job_names(ctx: typer.Context, incomplete: str) -> list[str]:
    return _offered(ctx, incomplete, lambda api: _fields(api.catalog("job"), "name"))


def task_names(ctx: typer.Context, incomplete: str) -> list[str]:
    return _offered(ctx, incomplete, lambda api: _fields(api.catalog("task"), "name"))


def backfill_names(ctx: typer.Context, incomplete: str) -> list[str]:
    return _offered(ctx, incomplete, lambda api: _fields(api.catalog("backfill"), "name"))


async def _fields(rows: Awaitable[Iterable[object]], name: str) -> list[str]:
    return [str(getattr(row, name)) for row in await rows]


def _offered(ctx: typer.Context, incomplete: str, read: Read) -> list[str]:
    try:
        names = asyncio.run(_read(ctx, read))
    except Exception:  # noqa: BLE001 - a shell shows nothing rather than a traceback in the middle of a line
        return []
    # Names come from strangers: what a shell would take apart or a terminal would obey is not offered.
    shown = {name for name in names if name.isprintable() and not any(char.isspace() for char in name)}
    return sorted(name for name in shown if name.startswith(incomplete))


async def _read(ctx: typer.Context, read: Read) -> Iterable[str]:
    async with asyncio.timeout(_WITHIN), _opened(ctx) as api:
        return () if api is None else await read(api)


@contextlib.asynccontextmanager
async def _opened(ctx: typer.Context) -> AsyncGenerator[Inspector | None]:
    known = _settings.load()
    url = _given(ctx, "database_url") or known.database_url or ""
    if not url.startswith(("postgresql://", "postgres://")):
        # To look into an embedded database its server would have to be started.
        yield None
        return
    async with Inspector.connect(url, _given(ctx, "schema") or known.schema or "public") as api:
        yield api


def _given(ctx: typer.Context, name: str) -> str | None:
    """An option as it stands on the line so far, before or after the subcommand."""
    here: typer.Context | None = ctx
    while here is not None:
        value = here.params.get(name)
        if isinstance(value, str):
            return value
        here = cast("typer.Context | None", here.parent)
    return None
