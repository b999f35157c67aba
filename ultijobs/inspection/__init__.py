"""The one door for the command line, the cockpit and scripts: reads, reasons, plans and acts."""

from __future__ import annotations

from ultijobs._durations import parse as parse_duration
from ultijobs._queue.activity import ActivityEntry, ActivityRow
from ultijobs._queue.backfills import PassRow, PassStatus
from ultijobs._queue.claims import Progress
from ultijobs._queue.events import EventPage, EventRow
from ultijobs._queue.health import Blocked, Health, Snapshot, TableHealth
from ultijobs._queue.outbox import OutboxDepth, OutboxKind, OutboxPage, OutboxRow, OutboxState
from ultijobs._queue.records import Enqueued, JobState, Outcome, StopReason
from ultijobs._queue.retention import Kept
from ultijobs._queue.schedule import Leader, Slot, SlotOutcome
from ultijobs._queue.steps import AttemptRecord, StepRecord, StepStatus
from ultijobs._queue.telling import CatalogEntry
from ultijobs._queue.views import (
    Cause,
    Count,
    JobPage,
    JobRow,
    LeaseRow,
    QueueRow,
    Sort,
    Stats,
    Tally,
    WaitingOn,
    WorkerRow,
)
from ultijobs._queue.where import ANY, Field, Op, Term, Where
from ultijobs._text import inert
from ultijobs.inspection.backfills import ALARMING, BackfillRow, BackfillState, remaining_of
from ultijobs.inspection.commands import equivalent
from ultijobs.inspection.doctor import CHECKS, Check, Checked, Diagnosis, Symptom, Thresholds
from ultijobs.inspection.filter import format_where, parse_where
from ultijobs.inspection.inspector import Inspector
from ultijobs.inspection.models import (
    Action,
    ActOutcome,
    JobDetail,
    Overview,
    Plan,
    PlanOptions,
    Published,
    Refusal,
    Stuck,
    StuckKind,
    Target,
    Why,
)
from ultijobs.inspection.moving import whither
from ultijobs.inspection.pacing import parse_pace
from ultijobs.inspection.pruned import Expired, KeptRow, PruneOutcome
from ultijobs.inspection.runs import RunResult, TaskRun
from ultijobs.inspection.schedule import Occurrence, TaskDetail, TaskRow
from ultijobs.inspection.starting import Condition, Forecast
from ultijobs.inspection.undoing import undone_by
from ultijobs.inspection.unheard import Unheard

__all__ = [
    "ALARMING",
    "ANY",
    "CHECKS",
    "ActOutcome",
    "Action",
    "ActivityEntry",
    "ActivityRow",
    "AttemptRecord",
    "BackfillRow",
    "BackfillState",
    "Blocked",
    "CatalogEntry",
    "Cause",
    "Check",
    "Checked",
    "Condition",
    "Count",
    "Diagnosis",
    "Enqueued",
    "EventPage",
    "EventRow",
    "Expired",
    "Field",
    "Forecast",
    "Health",
    "Inspector",
    "JobDetail",
    "JobPage",
    "JobRow",
    "JobState",
    "Kept",
    "KeptRow",
    "Leader",
    "LeaseRow",
    "Occurrence",
    "Op",
    "OutboxDepth",
    "OutboxKind",
    "OutboxPage",
    "OutboxRow",
    "OutboxState",
    "Outcome",
    "Overview",
    "PassRow",
    "PassStatus",
    "Plan",
    "PlanOptions",
    "Progress",
    "PruneOutcome",
    "Published",
    "QueueRow",
    "Refusal",
    "RunResult",
    "Slot",
    "SlotOutcome",
    "Snapshot",
    "Sort",
    "Stats",
    "StepRecord",
    "StepStatus",
    "StopReason",
    "Stuck",
    "StuckKind",
    "Symptom",
    "TableHealth",
    "Tally",
    "Target",
    "TaskDetail",
    "TaskRow",
    "TaskRun",
    "Term",
    "Thresholds",
    "Unheard",
    "WaitingOn",
    "Where",
    "Why",
    "WorkerRow",
    "equivalent",
    "format_where",
    "inert",
    "parse_duration",
    "parse_pace",
    "parse_where",
    "remaining_of",
    "undone_by",
    "whither",
]
