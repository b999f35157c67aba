"""Backfills as operators see them: each declared one with its state, how far it is, how fast, and what is left."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Any, Final
from uuid import UUID

from ultijobs._queue.backfills import PassRow, PassStatus, Surveyed
from ultijobs._queue.driver import Driver
from ultijobs._queue.telling import CatalogEntry
from ultijobs._queue.views import Count

__all__ = ["ALARMING", "BackfillRow", "BackfillState", "backfill_rows", "remaining_of"]

STALE: Final = timedelta(minutes=1)
"""After so long without a new count nothing is said about when a pass will end."""


class BackfillState(StrEnum):
    """Where a backfill stands in this environment; `excluded` means that it does not belong to it."""

    PENDING = "pending"
    RUNNING = "running"
    FAILED = "failed"
    CANCELLED = "cancelled"
    COMPLETED = "completed"
    EXCLUDED = "excluded"


ALARMING: Final = frozenset({BackfillState.PENDING, BackfillState.FAILED, BackfillState.CANCELLED})
"""What a pipeline has to know: it has not been done, and nobody is doing it."""


@dataclass(frozen=True, slots=True)
class BackfillRow:
    """One backfill and its newest pass, or the completed one. What no pass has told is None."""

    name: str
    state: BackfillState
    declared: bool
    """False for a name that only the ledger knows."""
    changed: bool
    """The pass is of another definition than the one that is declared now."""
    queue: str | None
    tenant: str | None
    batch: int | None
    rate: float | None
    """Pages a second at the most."""
    requires: str | None
    environments: tuple[str, ...]
    environment: str | None
    """Where the declaration was made, which decides whether it is excluded."""
    checksum: str | None
    run_id: UUID | None
    job_id: UUID | None
    job_state: str | None
    forced: bool
    rows: int
    batches: int
    sweep: int
    cursor: str | None
    remaining: Count | None
    """An estimate while rows are handled after the last count; None when there is no `count`."""
    rows_per_s: float | None
    """Over the attempt that runs."""
    eta_ms: int | None
    """None without a rate, and when the last count is older than a minute."""
    started_at: datetime | None
    updated_at: datetime | None
    completed_at: datetime | None
    error_code: str | None
    last_error: str | None


async def backfill_rows(driver: Driver, declared: Sequence[CatalogEntry] = ()) -> list[BackfillRow]:
    """What the catalogue and the ledger have, by name; what is in `declared` wins over the catalogue."""
    entries = {entry.name: entry for entry in await driver.inspect.catalog("backfill")}
    entries |= {entry.name: entry for entry in declared if entry.kind == "backfill"}
    surveyed = await driver.backfills.survey(list(entries))
    now = await driver.inspect.now()
    return [_row(each, entries.get(each.name), now) for each in surveyed]


def _row(surveyed: Surveyed, entry: CatalogEntry | None, now: datetime) -> BackfillRow:
    said: Mapping[str, Any] = {} if entry is None else entry.declaration
    state = state_of(surveyed, entry)
    # A pass that was forced and failed says nothing about one that has completed.
    shown = surveyed.completed if state is BackfillState.COMPLETED else surveyed.newest
    if surveyed.live_job is not None and shown is not None and shown.job_id != surveyed.live_job:
        shown = None  # Asked for again, and not begun: the pass before it says nothing about it.
    checksum = said.get("checksum")
    rate = None if shown is None else _rate(shown)
    remaining = None if shown is None else remaining_of(shown)
    return BackfillRow(
        name=surveyed.name,
        state=state,
        declared=entry is not None,
        changed=shown is not None and checksum is not None and shown.checksum != checksum,
        queue=None if entry is None else entry.queue,
        tenant=said.get("tenant"),
        batch=said.get("batch"),
        rate=said.get("rate"),
        requires=said.get("requires"),
        environments=tuple(said.get("environments", ())),
        environment=None if entry is None else entry.environment,
        checksum=checksum,
        run_id=None if shown is None else shown.run_id,
        job_id=surveyed.live_job or (None if shown is None else shown.job_id),
        job_state=surveyed.live_state or (None if shown is None else shown.job_state),
        forced=shown is not None and shown.forced,
        rows=0 if shown is None else shown.rows,
        batches=0 if shown is None else shown.batches,
        sweep=0 if shown is None else shown.sweep,
        cursor=None if shown is None else shown.cursor,
        remaining=remaining,
        rows_per_s=rate,
        eta_ms=_eta(shown, remaining, rate, now),
        started_at=None if shown is None else shown.started_at,
        updated_at=None if shown is None else shown.updated_at,
        completed_at=None if shown is None else shown.completed_at,
        error_code=None if shown is None else shown.error_code,
        last_error=None if shown is None else shown.last_error,
    )


def state_of(surveyed: Surveyed, entry: CatalogEntry | None) -> BackfillState:
    """A live job counts for more than any pass before it; a failed pass does not undo one that completed."""
    if surveyed.live_job is not None:
        return BackfillState.RUNNING
    if entry is not None and not belongs(entry):
        return BackfillState.EXCLUDED
    if surveyed.completed is not None:
        return BackfillState.COMPLETED
    return BackfillState.PENDING if surveyed.newest is None else BackfillState(surveyed.newest.status)


def belongs(entry: CatalogEntry) -> bool:
    """True where the declaration says that the backfill belongs to the environment it was declared in."""
    environments: Any = entry.declaration.get("environments") or ()
    return not environments or entry.environment in environments


def remaining_of(shown: PassRow) -> Count | None:
    """What is left of a pass: what `count()` said last, less what was handled since; None without a `count`."""
    if shown.remaining is None:
        return None
    if shown.status == PassStatus.COMPLETED or shown.rows <= shown.counted_rows:
        return Count(shown.remaining)
    return Count(max(0, shown.remaining - (shown.rows - shown.counted_rows)), "estimate")


def _rate(shown: PassRow) -> float | None:
    took = (shown.updated_at - shown.resumed_at).total_seconds()
    if shown.status != PassStatus.RUNNING or shown.job_state != "running" or took <= 0:
        return None
    return (shown.rows - shown.resumed_rows) / took


def _eta(shown: PassRow | None, remaining: Count | None, rate: float | None, now: datetime) -> int | None:
    if shown is None or remaining is None or not rate or shown.counted_at is None or now - shown.counted_at > STALE:
        return None
    return round(1000 * remaining.value / rate)
