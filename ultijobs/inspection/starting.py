"""Starting a backfill: what a pass would meet, told before one is asked for, and the asking itself."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from uuid import UUID

from ultijobs._backfill.asking import Wanted, applied, ask
from ultijobs._backfill.gate import Gate, misplaced
from ultijobs._connect import tables_of
from ultijobs._queue.driver import Driver
from ultijobs._queue.telling import CatalogEntry
from ultijobs._queue.views import Count
from ultijobs.errors import BackfillApplied, BackfillRunning, BackfillUnknown, UltijobsError
from ultijobs.inspection.backfills import BackfillRow, backfill_rows

__all__ = ["Condition", "Forecast", "Started", "foresee", "start"]


@dataclass(frozen=True, slots=True)
class Condition:
    """One condition of a pass, and whether it holds: what is true, or what stands in its way."""

    what: str
    holds: bool


@dataclass(frozen=True, slots=True)
class Forecast:
    """What a pass of a backfill would touch and how long it would take, as far as somebody can tell."""

    row: BackfillRow
    entry: CatalogEntry
    force: bool
    remaining: Count | None
    batches: int | None
    takes_ms: int | None
    """At the declared rate, if handling a page takes no longer than its turn."""
    checks: tuple[Condition, ...]
    refusals: tuple[UltijobsError, ...]
    """Why it would not be started; empty when it would."""


@dataclass(frozen=True, slots=True)
class Started:
    """The job of the pass that was asked for, or of the one that is in the way."""

    id: UUID | None
    refusal: UltijobsError | None = None


async def foresee(
    driver: Driver,
    name: str,
    *,
    force: bool,
    declared: Sequence[CatalogEntry] = (),
    gate: Gate | None = None,
    remaining: int | None = None,
) -> Forecast:
    """Reads everything that starting depends on, and changes nothing.

    `remaining` is what `count()` answers, which is the application's own code to call. Raises `BackfillUnknown`, and
    `DriverUnavailable` when the applied migrations cannot be read.
    """
    entries = {entry.name: entry for entry in await driver.inspect.catalog("backfill")}
    entries |= {entry.name: entry for entry in declared if entry.kind == "backfill"}
    if name not in entries:
        raise _unknown(name, list(entries))
    (row,) = [row for row in await backfill_rows(driver, declared) if row.name == name]
    entry = entries[name]
    left = row.remaining if remaining is None else Count(remaining)
    batches = None if left is None or not row.batch else math.ceil(left.value / row.batch)
    checks, refusals = await _checked(row, gate or Gate(tables_of(driver)), force=force)
    return Forecast(
        row=row,
        entry=entry,
        force=force,
        remaining=left,
        batches=batches,
        takes_ms=None if batches is None or not row.rate else round(1000 * max(0, batches - 1) / row.rate),
        checks=checks,
        refusals=refusals,
    )


async def start(driver: Driver, forecast: Forecast, *, actor: str) -> Started:
    """Asks for the pass that was foreseen. What has changed since then is found out here, and again by the pass."""
    try:
        answer = await ask(driver, Wanted.declared(forecast.entry), force=forecast.force, actor=actor)
    except BackfillApplied as error:
        return Started(None, error)
    if answer.deduped:
        return Started(answer.id, _running(forecast.row.name, str(answer.id), str(answer.state)))
    return Started(answer.id)


async def _checked(
    row: BackfillRow, gate: Gate, *, force: bool
) -> tuple[tuple[Condition, ...], tuple[UltijobsError, ...]]:
    refusals: list[UltijobsError] = []
    checks: list[Condition] = []

    def note(what: str, refusal: UltijobsError | None) -> None:
        checks.append(Condition(what if refusal is None else refusal.cause, refusal is None))
        if refusal is not None:
            refusals.append(refusal)

    if row.environments:
        here = row.environment or "no environment"
        note(f"{here} is one of {', '.join(row.environments)}", misplaced(row.name, row.environments, row.environment))
    if row.requires is not None:
        note(f"the migration {row.requires} is applied", await gate.unmigrated(row.name, row.requires))
    live = None
    if row.state == "running":
        live = _running(row.name, str(row.job_id), row.job_state or "running")
    note("no pass of it is live", live)
    done = None
    if row.state == "completed" and not force:
        done = applied(row.name, str(row.run_id))
    note("no pass has completed" if not force else "completed passes are repeated by force", done)
    return tuple(checks), tuple(refusals)


def _running(name: str, job: str, state: str) -> BackfillRunning:
    return BackfillRunning(
        f"a pass of the backfill {name} is {state} already: job {job}",
        fix=f"ultijobs jobs show {job}",
        meta={"name": name, "job_id": job},
    )


def _unknown(name: str, known: Sequence[str]) -> BackfillUnknown:
    near = get_close_matches(name, known, 1, 0.4)
    names = ", ".join(sorted(known)[:20])
    there = f"there {'are' if len(known) > 1 else 'is'} {names}" if known else "none is declared"
    return BackfillUnknown(
        f"no backfill is called {name!r:.100}; {there}",
        fix=f"ultijobs backfill {near[0]}" if near else BackfillUnknown.default_fix,
    )
