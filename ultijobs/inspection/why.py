"""Why a job is where it is: one of the closed list of reasons, who holds it, since when, and what frees it."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from ultijobs._queue.records import JobState
from ultijobs._queue.steps import StepRecord, StepStatus
from ultijobs._queue.views import JobRow, QueueRow, SlotRow, WaitingOn, WorkerRow
from ultijobs.errors import JobMoved
from ultijobs.inspection.commands import instant
from ultijobs.inspection.models import Why

__all__ = ["Gates", "explain", "lapsed"]

_LIVE_WORKERS = frozenset({"healthy", "idle", "wedged"})


@dataclass(frozen=True, slots=True)
class Gates:
    """What can keep a due job from being claimed, read once for any number of jobs."""

    queues: Sequence[QueueRow] = ()
    workers: Sequence[WorkerRow] = ()
    slots: Sequence[SlotRow] = ()
    """Who holds the slots of the name, where it has a cap."""

    def queue(self, name: str) -> QueueRow | None:
        return next((q for q in self.queues if q.queue == name), None)

    def serving(self, queue: str, name: str) -> list[WorkerRow]:
        """Live workers that claim from `queue` and know `name`."""
        return [w for w in self.workers if w.state in _LIVE_WORKERS and queue in w.queues and name in w.names]


def explain(row: JobRow, steps: Sequence[StepRecord], gates: Gates, now: datetime) -> Why:
    """Holder, since and the way out, for the reason that the store gave for this row."""
    since, holder, frees = _told(_Case(row, steps, gates, now), row.waiting_on)
    return Why(row.id, row.state, row.waiting_on, since, holder, frees)


def lapsed(row: JobRow, now: datetime) -> bool:
    """True when the row runs on a claim whose lease has ended: nobody keeps it, and any worker takes it back."""
    return row.state == JobState.RUNNING and row.lease_until is not None and row.lease_until < now


@dataclass(frozen=True, slots=True)
class _Case:
    row: JobRow
    steps: Sequence[StepRecord]
    gates: Gates
    now: datetime


_Told = tuple[datetime, str | None, str]
"""Since when, the holder, what frees it."""


def _told(case: _Case, reason: WaitingOn | None) -> _Told:
    row = case.row
    tellers: Mapping[WaitingOn | None, Callable[[_Case], _Told]] = {
        WaitingOn.SLEEP: _sleeping,
        WaitingOn.EVENT: _event,
        WaitingOn.DELAY: lambda _: (row.created_at, None, f"it is due at {instant(row.run_at)}"),
        WaitingOn.BACKOFF: lambda _: (
            row.updated_at,
            f"attempt {row.attempt} of {row.max_attempts} ended with {row.error_code or 'an error'}",
            f"it is tried again at {instant(row.run_at)}",
        ),
        WaitingOn.BEHIND: _behind,
        WaitingOn.PAUSED: _paused,
        WaitingOn.NO_WORKER: _unserved,
        WaitingOn.SLOT: _no_slot,
        WaitingOn.TENANT: _tenant,
        WaitingOn.RATE: _rate,
    }
    return tellers.get(reason, _ungated)(case)


def _sleeping(case: _Case) -> _Told:
    step = next((s for s in reversed(case.steps) if s.status == StepStatus.SLEEPING), None)
    frees = f"it wakes at {instant(case.row.run_at)}"
    if step is None:
        return case.row.updated_at, "a sleep", frees
    return step.started_at, f"step {step.name!r}", frees


def _event(case: _Case) -> _Told:
    step = next((s for s in reversed(case.steps) if s.status == StepStatus.WAITING), None)
    if step is None:
        return case.row.updated_at, "an event", f"it looks again at {instant(case.row.run_at)}"
    words = ["ultijobs", "events", "publish", step.event or step.name]
    if step.match is not None:
        words += ["--key", step.match]
    matching = "" if step.match is None else f" matching {step.match!r}"
    return step.started_at, f"step {step.name!r}, event {step.event!r}{matching}", shlex.join(words)


def _behind(case: _Case) -> _Told:
    row = case.row
    if row.behind != row.id:
        return row.due_at, f"job {row.behind}", f"ultijobs jobs why {row.behind}"
    # A job that waits for itself is held by a move that was broken off, or is under way.
    words = ["ultijobs", "jobs", "drain", "--queue", row.queue, "--to", _elsewhere(row)]
    return row.due_at, f"a move: it is {row.cancel_reason}", shlex.join(words)


def _elsewhere(row: JobRow) -> str:
    """The address in `moving to ADDRESS [PLACE]`."""
    return (row.cancel_reason or "").partition(" to ")[2].rpartition(" [")[0]


def _cancelled(row: JobRow, stopped_at: datetime) -> _Told:
    if row.error_code == JobMoved.code:
        words = ["ultijobs", "jobs", "show", str(row.id), "--database-url", _elsewhere(row)]
        return stopped_at, row.cancel_reason, shlex.join(words)
    return stopped_at, row.cancel_reason, f"ultijobs jobs retry {row.id}"


def _paused(case: _Case) -> _Told:
    row, queue = case.row, case.gates.queue(case.row.queue)
    holder = f"queue {row.queue}"
    if queue is not None and queue.paused_by:
        holder += f", paused by {queue.paused_by}"
    if queue is not None and queue.pause_reason:
        holder += f" ({queue.pause_reason})"
    paused_at = queue.paused_at if queue is not None else None
    since = max(row.due_at, paused_at) if paused_at is not None else row.due_at
    return since, holder, shlex.join(["ultijobs", "queues", "resume", row.queue])


def _unserved(case: _Case) -> _Told:
    row = case.row
    live = [w for w in case.gates.workers if w.state in _LIVE_WORKERS]
    if any(row.queue in w.queues for w in live):
        holder = f"no worker of queue {row.queue} knows the name {row.name}"
    elif live:
        holder = f"no worker serves queue {row.queue}"
    else:
        holder = "no worker is running"
    return row.due_at, holder, _start(row.queue)


def _start(queue: str) -> str:
    return shlex.join(["ultijobs", "worker", "--queues", queue])


def _no_slot(case: _Case) -> _Told:
    row, slots = case.row, sorted(case.gates.slots, key=lambda slot: slot.started_at)
    serving = case.gates.serving(row.queue, row.name)
    has_room = any(w.free_slots > 0 and row.queue not in w.full_queues for w in serving)
    if not slots or not has_room:
        return _busy(case, serving)
    first = slots[0]
    holder = f"job {first.job_id} on {first.worker_id}, since {instant(first.started_at)}"
    if len(slots) > 1:
        holder = f"all {len(slots)} slots of {row.name} are held, the first by {holder}"
    return row.due_at, holder, f"ultijobs jobs show {first.job_id}"


def _tenant(case: _Case) -> _Told:
    tenant = case.row.tenant_id or ""
    names = ", ".join(_limiting(case))
    holder = f"tenant {tenant} runs as many jobs as it may on {names}"
    return case.row.due_at, holder, shlex.join(["ultijobs", "jobs", "ls", "--state", "running", "--tenant", tenant])


def _rate(case: _Case) -> _Told:
    tenant = case.row.tenant_id or ""
    limiting = _limiting(case)
    opens = [w.heartbeat_at + timedelta(milliseconds=w.limited[tenant]) for w in limiting.values()]
    frees = f"it may start at {instant(min(opens))}" if opens else "it may start when the rate of its tenant allows"
    return case.row.due_at, f"tenant {tenant} started as many jobs as its rate allows on {', '.join(limiting)}", frees


def _limiting(case: _Case) -> dict[str, WorkerRow]:
    """By name, the workers that start nothing of the row's tenant."""
    row = case.row
    return {w.worker_id: w for w in case.gates.serving(row.queue, row.name) if (row.tenant_id or "") in w.limited}


def _busy(case: _Case, serving: Sequence[WorkerRow]) -> _Told:
    slots = sum(w.concurrency for w in serving)
    names = ", ".join(w.worker_id for w in serving[:3]) + (" …" if len(serving) > 3 else "")  # noqa: PLR2004 - a line
    if any(w.free_slots > 0 for w in serving):
        return case.row.due_at, f"queue {case.row.queue} runs as many jobs as it may on {names}", "ultijobs leases"
    return case.row.due_at, f"all {slots} slots of {names} are busy", "ultijobs leases"


def _ungated(case: _Case) -> _Told:
    row = case.row
    stopped_at = row.finished_at or row.updated_at
    told: Mapping[str, _Told] = {
        JobState.RUNNING: _running(case),
        JobState.DEAD: (stopped_at, _stopped_by(row), f"ultijobs jobs retry {row.id}"),
        JobState.FAILED: (stopped_at, _stopped_by(row), f"ultijobs jobs retry {row.id}"),
        JobState.CANCELLED: _cancelled(row, stopped_at),
        JobState.DONE: (stopped_at, None, "nothing: it is done"),
        JobState.READY: (row.due_at, None, "a worker claims it at its next poll"),
        JobState.DELAYED: (row.due_at, None, "a worker claims it at its next poll"),
        JobState.SUSPENDED: (row.run_at, None, "a worker claims it at its next poll"),
    }
    newer = f"a newer release, which wrote the state {row.state!r}"
    return told.get(row.state, (row.updated_at, newer, f"ultijobs jobs show {row.id}"))


def _stopped_by(row: JobRow) -> str | None:
    return ", ".join(filter(None, (row.stop_reason, row.error_code))) or None


def _running(case: _Case) -> _Told:
    row = case.row
    since = row.started_at or row.updated_at
    if lapsed(row, case.now):
        holder = f"worker {row.worker_id}, whose lease ended"
        # A worker that was killed looks alive until its beats are missed, and takes nothing back from itself.
        if any(w.state in _LIVE_WORKERS and w.worker_id != row.worker_id for w in case.gates.workers):
            return since, holder, "another worker takes it back at its next look"
        return since, f"{holder}; no other worker is running", _start(row.queue)
    return since, f"worker {row.worker_id}", f"ultijobs jobs cancel {row.id}"
