"""Tasks of the schedule: when each fires next, what is late, and the ledger of what became of each occurrence."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from typing import Final

from ultijobs.inspection import RunResult, Slot, SlotOutcome, TaskDetail, TaskRow, TaskRun
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.look import Look
from ultijobs_tui.present.finding import holds, nothing_found, unread
from ultijobs_tui.present.worker import leader_words
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, cell, line, rule

__all__ = ["TASK_SORTS", "slot_key", "slot_table", "task_panel", "task_table", "tasks_summary", "upcoming_text"]

TASK_SORTS: Final = ("trouble", "next", "last", "name")
_FAR: Final = float("inf")
_RUNS: Final = 15
_OUTCOMES: Final = {
    SlotOutcome.FIRED: Tone.GOOD,
    SlotOutcome.CAUGHT_UP: Tone.WARN,
    SlotOutcome.SKIPPED: Tone.MUTED,
    SlotOutcome.MISSED: Tone.BAD,
}

_SIGNS: Final = {
    RunResult.DONE: "✓",
    RunResult.RUNNING: "▶",
    RunResult.DEAD: "✗",
    RunResult.CANCELLED: "c",
    RunResult.SKIPPED: "–",
    RunResult.MISSED: "!",
    RunResult.UNKNOWN: "·",
}
_RESULTS: Final = {
    RunResult.DONE: Tone.GOOD,
    RunResult.RUNNING: Tone.ACCENT,
    RunResult.DEAD: Tone.BAD,
    RunResult.CANCELLED: Tone.WARN,
    RunResult.SKIPPED: Tone.MUTED,
    RunResult.MISSED: Tone.BAD,
    RunResult.UNKNOWN: Tone.MUTED,
}


def task_table(frame: Frame, look: Look, *, sort: str = TASK_SORTS[0], find: str = "") -> Table:
    """One row per declared task; those that fail or are late lead unless told otherwise."""
    columns = (
        Column("TASK", 10, 26, sort="name"),
        Column("CRON", 9, 16),
        Column("MEANING", 16, grow=True, drop=3),
        Column("ZONE", 4, 18, drop=5),
        Column("NEXT", 8, 11, align="right", sort="next"),
        Column("LAST", 6, 11, align="right", sort="last"),
        Column("LATE", 6, align="right", sort="trouble"),
        Column("CATCH-UP", 8, drop=4),
        Column("LAST RESULT", 12, 24, drop=1),
        Column(f"{_RUNS} RUNS", _RUNS, drop=2),
    )
    tasks = frame.tasks
    if tasks is None:
        return unread(columns, frame.failures.get("tasks"))
    shown = [task for task in tasks if holds(find, _fields(task))]
    if (said := nothing_found(columns, find, tasks if not shown else (), "task")) is not None:
        return said
    shown.sort(key=lambda task: (_ORDERS[sort](task), task.name))
    empty = (
        line("No task is declared. ", Span("ultijobs tasks ls --app MODULE:NAME", Tone.KEY), " says what an app has;"),
        line("a worker, a scheduler or ", Span("ultijobs migrate --app", Tone.KEY), " makes it known here."),
    )
    return Table(columns, tuple(_row(task, look) for task in shown), empty)


_ORDERS: Final[Mapping[str, Callable[[TaskRow], tuple[float, float]]]] = {
    "trouble": lambda task: (
        0.0 if task.last_error else 1.0 if task.late_since else 2.0,
        _stamp(task.late_since or task.next),
    ),
    "next": lambda task: (_stamp(task.next), 0.0),
    "last": lambda task: (-(task.last_fired.timestamp() if task.last_fired else 0.0), 0.0),
    "name": lambda task: (0.0, 0.0),  # noqa: ARG005 - names alone decide
}


def _stamp(at: datetime | None) -> float:
    return _FAR if at is None else at.timestamp()


def _fields(task: TaskRow) -> dict[str, str | None]:
    return {"task": task.name, "cron": task.cron, "zone": task.tz, "error": task.last_error}


def _row(task: TaskRow, look: Look) -> Row:
    return Row(
        task.name,
        (
            cell(task.name, Tone.STRONG),
            cell(task.cron),
            cell(task.meaning or "unknown", Tone.MUTED if task.meaning else Tone.WARN),
            cell(task.tz, Tone.MUTED),
            _next(task, look),
            cell(look.since(task.last_fired), Tone.MUTED),
            cell(look.since(task.late_since), Tone.BAD if task.late_since else Tone.MUTED),
            cell(task.catch_up, Tone.MUTED),
            _result(task),
            cell("".join(_SIGNS[run.result] for run in reversed(task.runs)), _tone_of(task.runs)),
        ),
    )  # fmt: skip


def _result(task: TaskRow) -> Cell:
    """How the latest run went; before it, what keeps the task from running at all."""
    if task.last_error:
        return cell(task.last_error.strip().partition("\n")[0], Tone.BAD)
    if task.watermark is None:
        return cell("never armed", Tone.WARN)
    run = next(iter(task.runs), None)
    if run is None:
        return cell(fmt.NEVER, Tone.MUTED)
    said = run.error_code if run.result is RunResult.DEAD else None
    took = None if run.took_ms is None else fmt.took(run.took_ms)
    words = " ".join(filter(None, (_SIGNS[run.result], run.result, said or took)))
    return cell(words, _RESULTS[run.result])


def _tone_of(runs: Sequence[TaskRun]) -> Tone:
    """That of the latest that has an end: what went wrong long ago is over."""
    ended = (run for run in runs if run.result is not RunResult.RUNNING)
    return _RESULTS[next(ended).result] if any(run.result is not RunResult.RUNNING for run in runs) else Tone.MUTED


def _next(task: TaskRow, look: Look) -> Cell:
    if task.next is None:
        return cell("unknown", Tone.WARN)
    return cell(look.until(task.next))


def tasks_summary(frame: Frame | None) -> list[str | Span]:
    """`4 tasks · 1 late · scheduler node-1 lease 22s`."""
    if frame is None or frame.tasks is None:
        return []
    parts: list[str | Span] = [f"{len(frame.tasks)} task{'' if len(frame.tasks) == 1 else 's'}"]
    if late := sum(task.late_since is not None for task in frame.tasks):
        parts += [" · ", Span(f"{late} late", Tone.BAD)]
    if failing := sum(task.last_error is not None for task in frame.tasks):
        parts += [" · ", Span(f"{failing} failing", Tone.BAD)]
    if "leader" not in frame.failures:
        parts += [" · ", *leader_words(frame.leader, frame.as_of)]
    return parts


def task_panel(task: TaskRow | None, frame: Frame | None, look: Look) -> list[Line]:
    """The task under the cursor: when, in whose time, decided up to where, and what keeps it."""
    if task is None or frame is None:
        return []
    local = fmt.NEVER if task.next is None else f"{task.next:%a %Y-%m-%d %H:%M %Z}"
    decided = "never: no scheduler has seen it" if task.watermark is None else fmt.clock(task.watermark, now=look.now)
    return [
        rule(task.name, f"{task.cron} · {task.meaning or 'unknown'} ({task.tz})"),
        line(
            Span(" next ", Tone.MUTED), local, Span("   last ", Tone.MUTED), fmt.clock(task.last_fired, now=look.now),
            Span("   decided to ", Tone.MUTED), decided,
            Span("   catch up ", Tone.MUTED), f"{task.catch_up}, {task.max_catch_up} at the most",
        ),
        _trouble(task, frame, look),
    ]  # fmt: skip


def _trouble(task: TaskRow, frame: Frame, look: Look) -> Line:
    leader = frame.leader
    led = leader is not None and leader.lease_until > look.now
    if task.last_error:
        return line(Span(" error ", Tone.MUTED), Span(task.last_error.strip().partition("\n")[0], Tone.BAD))
    if task.late_since is not None:
        why = "the leader does not declare it" if led else "no scheduler leads: ultijobs scheduler --app MODULE:NAME"
        since = fmt.clock(task.late_since, now=look.now)
        return line(Span(" late ", Tone.MUTED), Span(f"since {since} · {why}", Tone.BAD))
    if task.next is None:
        return line(Span(" next ", Tone.MUTED), Span("unknown: this release cannot read the text", Tone.WARN))
    if task.watermark is None:
        how = "not armed: a worker or ultijobs scheduler that has it begins to count from then on"
        return line(Span(f" {how}", Tone.WARN))
    return line(Span(" on time ", Tone.GOOD))


def slot_key(slot: Slot) -> str:
    return f"{slot.task}@{slot.occurrence.isoformat()}"


def slot_table(slots: Sequence[Slot] | None, failure: str | None, look: Look) -> Table:
    """What became of the occurrences of one task, the latest first."""
    columns = (
        Column("OCCURRENCE", 11, 25),
        Column("OUTCOME", 9, 10),
        Column("AFTER", 6, align="right", drop=2),
        Column("SLOTS", 5, align="right", drop=4),
        Column("JOBS", 9, 20),
        Column("TERM", 4, align="right", drop=3),
        Column("REASON", 12, grow=True),
    )
    if slots is None:
        return unread(columns, failure)
    empty = line("Nothing is decided yet: its first occurrence is still to come.")
    return Table(columns, tuple(_slot(slot, look) for slot in slots), (empty,))


def _slot(slot: Slot, look: Look) -> Row:
    when = fmt.clock(slot.occurrence, now=look.now)
    through = f" to {fmt.clock(slot.through, now=look.now)}" if slot.through is not None else ""
    known = slot.outcome in set(SlotOutcome)
    jobs = ", ".join(fmt.short_id(job) for job in slot.job_ids[:1])
    more = f" and {len(slot.job_ids) - 1} more" if len(slot.job_ids) > 1 else ""
    return Row(
        slot_key(slot),
        (
            cell(f"{when}{through}"),
            cell(slot.outcome, _OUTCOMES[SlotOutcome(slot.outcome)] if known else Tone.WARN),
            cell(fmt.took(fmt.ms_between(slot.through or slot.occurrence, slot.decided_at)), Tone.MUTED),
            cell(f"{slot.slots:,}", Tone.MUTED),
            cell(f"{jobs}{more}" or fmt.NEVER),
            cell(str(slot.term) if slot.term is not None else fmt.NEVER, Tone.MUTED),
            cell(slot.reason or fmt.NEVER, None if slot.reason else Tone.MUTED),
        ),
    )


def upcoming_text(detail: TaskDetail) -> str:
    """The occurrences to come, in the task's own zone and in UTC."""
    if not detail.upcoming:
        return "unknown: this release cannot read the text" if detail.row.next is None else "none"
    times = ((at, at.astimezone(fmt.EPOCH.tzinfo)) for at in detail.upcoming)
    return "\n".join(f"{local:%a %Y-%m-%d %H:%M:%S %Z}   {utc:%H:%M:%SZ}" for local, utc in times)
