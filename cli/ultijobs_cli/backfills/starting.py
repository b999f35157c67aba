"""`backfill NAME` and `backfill --all`: the plan of each, and with `--write` its pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, Literal
from uuid import UUID

from ultijobs.errors import BackfillRunning, UltijobsError
from ultijobs.inspection import ALARMING, BackfillState, Count, Forecast, Inspector, Plan
from ultijobs_cli import wording
from ultijobs_cli.backfills.declared import There
from ultijobs_cli.backfills.pending import TONES
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.report import Finding, Report, told
from ultijobs_cli.tables import Block, Cell, Column, Pairs, Tone, grid

__all__ = ["report"]

Taken = Literal["planned", "enqueued", "deduped", "blocked"]

_TONES: Final[dict[Taken, Tone]] = {"planned": "", "enqueued": "green", "deduped": "yellow", "blocked": "red"}


@dataclass(frozen=True)
class _Line:
    """What became of one name."""

    name: str
    action: Taken
    state: str
    plan: Plan
    forecast: Forecast
    job_id: UUID | None
    finding: Finding | None


async def report(
    api: Inspector, there: There, *, name: str | None, write: bool, force: bool, reason: str | None
) -> Report:
    """Plans each name, and asks for its pass with `write`; what is refused for one does not stop the others."""
    names = [name] if name is not None else await _all(api, there, force=force)
    lines = [await _line(api, there, each, write=write, force=force, reason=reason) for each in names]
    stuck = [line for line in lines if line.action in {"blocked", "deduped"}]
    unknown = "remaining rows are counted by the application's own code: give --app"
    uncounted = there.app is None and any(line.forecast.entry.declaration.get("counts") for line in lines)
    return Report(
        summary=_summary(lines, write=write),
        data={
            "environment": there.environment,
            "write": write,
            "force": force,
            "rows": [_data(line) for line in lines],
            "next": None,
        },
        blocks=[*(_details(lines[0]) if name is not None else ()), _table(lines)],
        findings=[line.finding for line in lines if line.finding is not None],
        exit_code=ExitCode.FAILED if stuck else ExitCode.DONE,
        hints=[
            *([unknown] if uncounted else ()),
            *(["nothing was changed: add --write"] if not write and len(stuck) < len(lines) else ()),
        ],
        rows="rows",
    )


async def _all(api: Inspector, there: There, *, force: bool) -> list[str]:
    rows = [row for row in await api.backfills(there.entries) if row.declared]
    if force:
        return [row.name for row in rows if row.state is not BackfillState.EXCLUDED]
    return [row.name for row in rows if row.state in ALARMING]


async def _line(api: Inspector, there: There, name: str, *, write: bool, force: bool, reason: str | None) -> _Line:
    plan = await api.plan_backfill(
        name,
        force=force,
        reason=reason,
        declared=there.entries,
        gate=there.gate,
        remaining=await there.remaining(name),
    )
    forecast = plan.forecast
    assert forecast is not None
    state: str = forecast.row.state
    if forecast.refusals:
        refusal = forecast.refusals[0]
        job = forecast.row.job_id if isinstance(refusal, BackfillRunning) else None
        taken: Taken = "deduped" if isinstance(refusal, BackfillRunning) else "blocked"
        return _Line(name, taken, state, plan, forecast, job, _finding(refusal, name))
    if not write:
        return _Line(name, "planned", state, plan, forecast, None, None)
    outcome = await api.apply(plan)
    if outcome.done:
        return _Line(name, "enqueued", BackfillState.RUNNING, plan, forecast, outcome.done[0], None)
    # Somebody was faster than the plan.
    (refused,) = outcome.refused
    taken = "deduped" if refused.code == BackfillRunning.code else "blocked"
    finding = told(refused.code, refused.cause, f"ultijobs backfill {name}", at=name)
    return _Line(name, taken, state, plan, forecast, refused.id, finding)


def _finding(error: UltijobsError, name: str) -> Finding:
    return Finding.of(error, at=name)


def _data(line: _Line) -> dict[str, object]:
    return {
        "name": line.name,
        "action": line.action,
        "state": line.state,
        "remaining": None if line.forecast.remaining is None else line.forecast.remaining.value,
        "batches": line.forecast.batches,
        "takes_ms": line.forecast.takes_ms,
        "job_id": line.job_id,
        "finding": line.finding,
        "checks": line.forecast.checks,
    }


def _summary(lines: Sequence[_Line], *, write: bool) -> str:
    if not lines:
        return "no backfill is pending"
    counts = {taken: sum(line.action == taken for line in lines) for taken in _TONES}
    said = {
        "planned": "would be started",
        "enqueued": "started",
        "deduped": "running already",
        "blocked": "blocked",
    }
    parts = [f"{number} {said[taken]}" for taken, number in counts.items() if number]
    return f"{wording.plural(len(lines), 'backfill')}: {', '.join(parts)}" + ("" if write else " (dry run)")


def _details(line: _Line) -> list[Block]:
    forecast = line.forecast
    pairs = [
        ("would touch", Cell(_touches(forecast), "bold")),
        *(("✓" if check.holds else "✗", Cell(check.what, "" if check.holds else "red")) for check in forecast.checks),
        ("the same command", Cell(line.plan.equivalent)),
    ]
    return [Pairs(tuple(pairs), title=line.name)]


def _touches(forecast: Forecast) -> str:
    left: Count | None = forecast.remaining
    if left is None or forecast.batches is None or forecast.takes_ms is None:
        return "nobody counts its rows"
    rows = wording.plural(wording.count(left), "row")
    pages = wording.plural(forecast.batches, "page")
    takes = "at once" if forecast.takes_ms < 1_000 else f"≈ {wording.age(forecast.takes_ms)}"  # noqa: PLR2004 - a second
    return f"{rows} in {pages} at {forecast.row.rate:g}/s, {takes}"


def _table(lines: Sequence[_Line]) -> Block:
    return grid(
        lines,
        [
            Column("BACKFILL", lambda line: Cell(line.name, "bold"), wide=True),
            Column("ACTION", lambda line: Cell(line.action, _TONES[line.action])),
            Column("STATE", lambda line: Cell(line.state, TONES.get(line.state, ""))),
            Column(
                "LEFT",
                lambda line: (
                    wording.NONE if line.forecast.remaining is None else wording.count(line.forecast.remaining)
                ),
                right=True,
            ),
            Column("JOB", lambda line: wording.tail(line.job_id)),
            Column("", lambda line: "" if line.finding is None else line.finding.cause, wide=True, rank=1),
        ],
        empty="no backfill is pending",
    )
