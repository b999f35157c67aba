"""The schedule as operators see it: each task with its next and last occurrence, what is late, what is coming."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from difflib import get_close_matches
from itertools import islice, pairwise
from typing import Any, Final

from ultijobs._definitions import cron
from ultijobs._definitions.calendar import Calendar
from ultijobs._queue.driver import Driver
from ultijobs._queue.schedule import Leader, Slot, TaskState
from ultijobs._queue.telling import CatalogEntry
from ultijobs.errors import DeclarationUnknown, UltijobsError
from ultijobs.inspection.runs import TaskRun, latest_runs

__all__ = ["Occurrence", "TaskDetail", "TaskRow", "around", "late_since", "task_detail", "task_rows"]

LATE: Final = timedelta(minutes=1)
"""How long after an occurrence nobody calls it late: a change of leader takes as long as a lease."""
SLOTS: Final = 20
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class TaskRow:
    """One declared task. `next` is in the task's own zone, everything else in UTC."""

    name: str
    cron: str
    tz: str
    catch_up: str
    max_catch_up: int
    next: datetime | None
    """None when the text cannot be read by this release."""
    last_fired: datetime | None
    late_since: datetime | None
    """The first occurrence that nobody has decided about, when it is more than a minute old."""
    watermark: datetime | None
    """None until a scheduler has seen the task: then it is armed."""
    armed_at: datetime | None
    last_error: str | None
    meaning: str | None = None
    """The text in words, such as `14:00 every day`; None when it cannot be read by this release."""
    runs: tuple[TaskRun, ...] = ()
    """What became of its fifteen newest slots, the latest first; of the first 100 tasks by name."""


@dataclass(frozen=True, slots=True)
class TaskDetail:
    """One task: its declaration, what is coming, and what became of its latest slots."""

    row: TaskRow
    upcoming: list[datetime]
    """In the task's own zone."""
    slots: list[Slot]
    """The newest lines of the ledger."""
    leader: Leader | None
    """Who dispatches it, or did last; None until a scheduler has armed it."""


@dataclass(frozen=True, slots=True)
class Occurrence:
    """`at` is in the task's own zone; `shift` is by how much the clocks changed since the one before."""

    at: datetime
    shift: timedelta


async def task_rows(driver: Driver, declared: Sequence[CatalogEntry] = (), *, only: str | None = None) -> list[TaskRow]:
    """What the catalogue has and the leader declares; what is in `declared` wins over both.

    The latest runs are read of `only` that task, where one is given.
    """
    states = {state.task: state for state in await driver.schedule.states()}
    known = await driver.inspect.catalog("task")
    entries = {entry.name: entry for entry in known if entry.name not in states or not states[entry.name].retired}
    entries |= {entry.name: entry for entry in declared if entry.kind == "task"}
    now = await driver.inspect.now()
    runs = await latest_runs(driver.schedule, sorted(entries) if only is None else [only])
    return [_row(entry, states.get(name), now, runs.get(name, ())) for name, entry in sorted(entries.items())]


async def task_detail(driver: Driver, name: str, count: int, declared: Sequence[CatalogEntry] = ()) -> TaskDetail:
    """Raises `DeclarationUnknown` with the nearest name."""
    row = _named(await task_rows(driver, declared, only=name), name)
    calendar = _calendar(row.cron, row.tz)
    upcoming: list[datetime] = []
    if calendar is not None and row.next is not None:
        tick = timedelta(microseconds=1)
        upcoming = list(
            islice(calendar.between(row.next.astimezone(UTC) - tick, datetime.max.replace(tzinfo=UTC)), count)
        )
    slots = await driver.schedule.slots(name, limit=SLOTS)
    states = {state.task: state for state in await driver.schedule.states()}
    return TaskDetail(row, upcoming, slots, states[name].leader if name in states else None)


async def around(
    driver: Driver, name: str, day: datetime, count: int, declared: Sequence[CatalogEntry] = ()
) -> list[Occurrence]:
    """The occurrences of the local day of `day`, with the one before and the one after; `count` at the most.

    A `day` without a zone is in the task's. Raises `DeclarationUnknown`, and `CronInvalid` for what cannot be read.
    """
    row = _named(await task_rows(driver, declared, only=name), name)
    calendar = Calendar(cron.normalise(row.cron, f"task {name}: cron"), cron.zone(row.tz, f"task {name}: tz"))
    local = day.replace(tzinfo=calendar.zone) if day.tzinfo is None else day.astimezone(calendar.zone)
    begin = local.replace(hour=0, minute=0, second=0, microsecond=0, fold=0)
    first, last = begin.astimezone(UTC) - _TICK, (begin + timedelta(days=1)).astimezone(UTC) - _TICK
    of_day = islice(calendar.between(first, last), max(1, count - 2))
    found = [each for each in (calendar.latest(first), *of_day, calendar.after(last)) if each is not None]
    offsets = [each.utcoffset() or timedelta(0) for each in found]
    shifts = [timedelta(0), *(later - earlier for earlier, later in pairwise(offsets))]
    return [Occurrence(at, shift) for at, shift in zip(found, shifts, strict=False)]


def _named(rows: Sequence[TaskRow], name: str) -> TaskRow:
    for row in rows:
        if row.name == name:
            return row
    names = [row.name for row in rows]
    near = get_close_matches(name, names, 1, 0.4)
    raise DeclarationUnknown(
        f"no task is called {name!r:.100}; there {'are ' + ', '.join(names[:20]) if names else 'is none'}",
        fix=f"ultijobs tasks show {near[0]}" if near else "ultijobs tasks ls",
    )


def _row(entry: CatalogEntry, state: TaskState | None, now: datetime, runs: tuple[TaskRun, ...]) -> TaskRow:
    said: Mapping[str, Any] = entry.declaration
    text, tz = str(said.get("cron", "")), str(said.get("tz", ""))
    calendar = _calendar(text, tz)
    following = None
    if calendar is not None:
        following = calendar.after(now if state is None else max(now, state.watermark))
    return TaskRow(
        name=entry.name,
        cron=text,
        tz=tz,
        catch_up=str(said.get("catch_up", "")),
        max_catch_up=int(said.get("max_catch_up", 0)),
        next=following,
        last_fired=None if state is None else state.last_fired,
        late_since=None if state is None else late_since(state, now),
        watermark=None if state is None else state.watermark,
        armed_at=None if state is None else state.armed_at,
        last_error=None if state is None else state.last_error,
        meaning=None if calendar is None else cron.meaning(calendar.schedule),
        runs=runs,
    )


def late_since(state: TaskState, now: datetime) -> datetime | None:
    """The first occurrence that nobody has decided about, when it is more than a minute old."""
    calendar = None if state.retired else _calendar(state.cron, state.tz)
    first = None if calendar is None else calendar.after(state.watermark)
    if first is None or now - first.astimezone(UTC) < LATE:
        return None
    return first.astimezone(UTC)


def _calendar(text: str, tz: str) -> Calendar | None:
    try:
        return Calendar(cron.normalise(text, "cron"), cron.zone(tz, "tz"))
    except UltijobsError:
        return None
