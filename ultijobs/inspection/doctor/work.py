"""Checks on the work itself: leases, names, queues, workers, outbox, schedule."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ultijobs._queue.views import LeaseRow, QueueRow
from ultijobs._queue.where import Field, Op, Term, Where
from ultijobs.inspection.doctor.facts import Facts, Thresholds
from ultijobs.inspection.doctor.symptoms import Check, Symptom
from ultijobs.inspection.doctor.wording import age, line, many
from ultijobs.inspection.filter import format_where
from ultijobs.inspection.late import NO_LEADER
from ultijobs.inspection.models import Stuck

__all__ = ["WORK"]


def _lapsed(facts: Facts, limits: Thresholds) -> list[Symptom]:
    by_worker: dict[str, list[LeaseRow]] = {}
    for lease in facts.leases or ():
        if facts.now - lease.lease_until > limits.lapsed:
            by_worker.setdefault(lease.worker_id or "a worker", []).append(lease)
    nobody = "" if facts.live else ": no worker is running"
    return [
        Symptom(
            "X_LEASES_LAPSED",
            "error",
            f"the leases of {many(len(held), 'job')} of {worker} lapsed, the first "
            f"{age(facts.now - min(lease.lease_until for lease in held))} ago, and nobody takes them over{nobody}",
            line("leases") if facts.live else line("worker", "--app", "MODULE:NAME"),
            at=worker,
        )
        for worker, held in by_worker.items()
    ]


def _unknown_names(facts: Facts, _: Thresholds) -> list[Symptom]:
    return [
        Symptom(
            "X_NAMES_UNSERVED",
            "error",
            f"{many(count, 'due job')} of the name {name}, which no running worker knows",
            line("jobs", "ls", "--where", _due(name)),
            at=name,
        )
        for name, count in (facts.names or {}).items()
    ]


def _due(name: str) -> str:
    return format_where(Where((Term(Field.STATE, Op.IS, ("ready",)), Term(Field.JOB, Op.IS, (name,)))))


def _paused(facts: Facts, _: Thresholds) -> list[Symptom]:
    return [
        Symptom(
            "X_QUEUE_PAUSED",
            "warning",
            f"queue {queue.queue} is paused{_by(queue)}; {many(queue.ready, 'due job waits', 'due jobs wait')}",
            line("queues", "resume", queue.queue),
            at=queue.queue,
        )
        for queue in _queues(facts)
        if queue.state == "paused"
    ]


def _by(queue: QueueRow) -> str:
    who = f" by {queue.paused_by}" if queue.paused_by else ""
    return f'{who} "{queue.pause_reason}"' if queue.pause_reason else who


def _unserved(facts: Facts, _: Thresholds) -> list[Symptom]:
    return [
        Symptom(
            "X_QUEUE_UNSERVED",
            "error",
            f"queue {queue.queue} has {many(queue.ready, 'due job')} and no worker that serves it",
            line("worker", "--app", "MODULE:NAME", "--queues", queue.queue),
            at=queue.queue,
        )
        for queue in _queues(facts)
        if queue.state == "unserved" and queue.ready.value
    ]


def _wedged(facts: Facts, _: Thresholds) -> list[Symptom]:
    return [
        Symptom(
            "X_WORKER_WEDGED",
            "error",
            f"worker {worker.worker_id} does not get on: its event loop is blocked, or a body outlived its deadline",
            line("workers", "drain", worker.worker_id, "--exit"),
            at=worker.worker_id,
        )
        for worker in facts.live
        if worker.state == "wedged"
    ]


def _deaf(facts: Facts, _: Thresholds) -> list[Symptom]:
    return [
        Symptom(
            "X_LISTENER_LOST",
            "warning",
            f"worker {worker.worker_id} hears no notifications and finds new jobs by polling alone",
            "let it connect without a pooler, or through one in session mode: transaction pooling carries no LISTEN",
            at=worker.worker_id,
        )
        for worker in facts.live
        if not worker.listening
    ]


def _outbox_late(facts: Facts, limits: Thresholds) -> list[Symptom]:
    depth = facts.outbox
    if depth is None or depth.oldest is None or facts.now - depth.oldest <= limits.outbox:
        return []
    rows = many(depth.staged, "row is", "rows are")
    cause = f"{rows} staged in the outbox, the oldest for {age(facts.now - depth.oldest)}, and no relay takes them"
    return [Symptom("X_OUTBOX_LATE", "error", cause, line("relay", "--app", "MODULE:NAME"))]


def _set_aside(facts: Facts, _: Thresholds) -> list[Symptom]:
    depth = facts.outbox
    if depth is None or not depth.set_aside.value:
        return []
    cause = f"{many(depth.set_aside, 'row')} of the outbox failed too often, or stood behind one that did"
    return [Symptom("X_OUTBOX_SET_ASIDE", "error", cause, line("outbox", "ls", "--state", "set-aside"))]


def _late(facts: Facts, _: Thresholds) -> list[Symptom]:
    return [
        Symptom("X_TASK_LATE", "error", f"task {late.why}", _decider(late, name), at=name)
        for late in facts.tasks or ()
        for name in [late.key.removeprefix("task:")]
    ]


def _decider(late: Stuck, name: str) -> str:
    """The scheduler that is missing, or what the one that leads says."""
    if late.why.endswith(NO_LEADER):
        return line("scheduler", "--app", "MODULE:NAME")
    return line("tasks", "show", name)


def _queues(facts: Facts) -> Sequence[QueueRow]:
    return () if facts.stats is None else facts.stats.queues


WORK: Final[Sequence[Check]] = (
    Check("leases", "X_LEASES_LAPSED", "Leases lapsed and nobody takes their jobs over", "leases", _lapsed),
    Check("names", "X_NAMES_UNSERVED", "Jobs are due whose name no worker knows", "names", _unknown_names),
    Check("paused-queues", "X_QUEUE_PAUSED", "A queue is paused", "stats", _paused),
    Check("unserved-queues", "X_QUEUE_UNSERVED", "Jobs are due in a queue that no worker serves", "stats", _unserved),
    Check("wedged-workers", "X_WORKER_WEDGED", "A worker does not get on", "workers", _wedged),
    Check("listener", "X_LISTENER_LOST", "A worker hears no notifications", "workers", _deaf),
    Check("outbox", "X_OUTBOX_LATE", "Nobody relays the outbox", "outbox", _outbox_late),
    Check("outbox-set-aside", "X_OUTBOX_SET_ASIDE", "Rows of the outbox are set aside", "outbox", _set_aside),
    Check("scheduler", "X_TASK_LATE", "A scheduled task is late", "tasks", _late),
)
