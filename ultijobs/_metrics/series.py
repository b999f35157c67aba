"""Every series that is exported: its name, its labels, what it means. `docs/metrics.md` is made from this table."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final, Literal

__all__ = [
    "BACKFILL_ROWS",
    "BACKFILL_RUNNING",
    "CLAIM_SECONDS",
    "EVENTS_DELIVERED",
    "EVENTS_PUBLISHED",
    "JOBS",
    "JOBS_RETURNED",
    "JOBS_SUSPENDED",
    "LEASES_LOST",
    "OUTBOX_OLDEST",
    "OUTBOX_PUBLISHED",
    "OUTBOX_REFUSED",
    "OUTBOX_SET_ASIDE",
    "OUTBOX_STAGED",
    "PUBLISHER",
    "QUEUE_DEAD",
    "QUEUE_DEPTH",
    "QUEUE_OLDEST",
    "RUN_SECONDS",
    "SCHEDULER_LEADER",
    "SERIES",
    "TASK_FAILURES",
    "TASK_SLOTS",
    "WAIT_SECONDS",
    "Series",
]

_QUICK: Final = (0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
_LONG: Final = (0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0, 300.0, 1_800.0, 7_200.0)


# Compared by identity: there is one of each, and it is looked up for every job.
@dataclass(frozen=True, slots=True, eq=False)
class Series:
    """A counter belongs to its process. A gauge `of_fleet` is exported by one process of the fleet at a time."""

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    of_fleet: bool = False
    buckets: tuple[float, ...] = ()


JOBS: Final = Series(
    "ultijobs_jobs_total",
    "counter",
    "Attempts that have ended, by outcome: ok, retried, dead, failed, cancelled, lost.",
    ("queue", "outcome"),
)
LEASES_LOST: Final = Series(
    "ultijobs_job_leases_lost_total",
    "counter",
    "Leases lost while a job ran, each counted once in the fleet: by its worker, or by the one that takes over.",
    ("queue",),
)
JOBS_SUSPENDED: Final = Series(
    "ultijobs_jobs_suspended_total", "counter", "Runs parked by a sleep or a wait; no attempt has ended.", ("queue",)
)
JOBS_RETURNED: Final = Series(
    "ultijobs_jobs_returned_total", "counter", "Claims handed back at no cost, by a drain for instance.", ("queue",)
)
WAIT_SECONDS: Final = Series(
    "ultijobs_wait_seconds",
    "histogram",
    "From the time at which a job was due to its claim, by the database's clock.",
    ("queue",),
    buckets=_LONG,
)
RUN_SECONDS: Final = Series(
    "ultijobs_run_seconds",
    "histogram",
    "How long the code of an attempt ran, whatever its outcome.",
    ("queue",),
    buckets=_LONG,
)
CLAIM_SECONDS: Final = Series(
    "ultijobs_claim_seconds", "histogram", "How long a claim took to be answered.", buckets=_QUICK
)
QUEUE_DEPTH: Final = Series(
    "ultijobs_queue_depth",
    "gauge",
    "Jobs that are due and wait; counted up to 10,000.",
    ("queue",),
    of_fleet=True,
)
QUEUE_OLDEST: Final = Series(
    "ultijobs_queue_oldest_ready_seconds",
    "gauge",
    "For how long the oldest job that waits has been due; 0 when none waits.",
    ("queue",),
    of_fleet=True,
)
QUEUE_DEAD: Final = Series(
    "ultijobs_queue_dead_jobs", "gauge", "Dead jobs; counted up to 10,000 in all.", ("queue",), of_fleet=True
)
PUBLISHER: Final = Series(
    "ultijobs_metrics_publisher", "gauge", "1 in the process that exports the gauges of the whole fleet, else 0."
)
OUTBOX_STAGED: Final = Series(
    "ultijobs_outbox_staged", "gauge", "Rows that wait for a relay; counted up to 10,000.", of_fleet=True
)
OUTBOX_OLDEST: Final = Series(
    "ultijobs_outbox_oldest_staged_seconds",
    "gauge",
    "How far the relays lag: the age of the oldest row that waits; 0 when none does.",
    of_fleet=True,
)
OUTBOX_SET_ASIDE: Final = Series(
    "ultijobs_outbox_set_aside",
    "gauge",
    "Rows left alone after too many failures, until `ultijobs outbox retry`.",
    of_fleet=True,
)
OUTBOX_PUBLISHED: Final = Series("ultijobs_outbox_published_total", "counter", "Rows published into the queue.")
OUTBOX_REFUSED: Final = Series(
    "ultijobs_outbox_refused_total", "counter", "Tries of a row that the queue refused; the eighth sets it aside."
)
SCHEDULER_LEADER: Final = Series("ultijobs_scheduler_leader", "gauge", "1 in the scheduler that leads, else 0.")
TASK_SLOTS: Final = Series(
    "ultijobs_task_slots_total",
    "counter",
    "Slots of the schedule that were decided, by outcome: fired, caught-up, skipped, missed.",
    ("task", "outcome"),
)
TASK_FAILURES: Final = Series(
    "ultijobs_task_failures_total", "counter", "Tries to dispatch a task that failed.", ("task",)
)
BACKFILL_ROWS: Final = Series(
    "ultijobs_backfill_rows_total", "counter", "Rows that passes of a backfill have handled and marked.", ("backfill",)
)
BACKFILL_RUNNING: Final = Series(
    "ultijobs_backfill_running", "gauge", "1 while this process runs a pass of the backfill, else 0.", ("backfill",)
)
EVENTS_PUBLISHED: Final = Series(
    "ultijobs_events_published_total",
    "counter",
    "Events that this process published; one in a transaction that rolls back is counted too.",
)
EVENTS_DELIVERED: Final = Series(
    "ultijobs_events_delivered_total", "counter", "Waiting runs that this process made due with events."
)

SERIES: Final = tuple(value for value in list(globals().values()) if isinstance(value, Series))
"""All of them, in the order of the table."""
