"""The one door for the command line, the cockpit and scripts: reads, reasons, plans and acts."""

from __future__ import annotations

from ultijobs._durations import parse as parse_duration
from ultijobs._queue.backfills import PassRow, PassStatus
from ultijobs._queue.events import EventPage, EventRow
from ultijobs._queue.outbox import OutboxDepth, OutboxPage, OutboxRow, OutboxState
from ultijobs._queue.records import (
    AttemptRecord,
    CatalogEntry,
    JobState,
    Outcome,
    Progress,
    StepRecord,
    StepStatus,
    StopReason,
)
from ultijobs._queue.schedule import Leader, Slot, SlotOutcome
from ultijobs._queue.views import (
    ActivityEntry,
    ActivityRow,
    Cause,
    Count,
    Health,
    JobPage,
    JobRow,
    LeaseRow,
    QueueRow,
    Snapshot,
    Sort,
    Stats,
    TableHealth,
    WaitingOn,
    WorkerRow,
)
from ultijobs._queue.where import ANY, Field, Op, Term, Where
from ultijobs._text import inert
from ultijobs.inspection.backfills import BackfillRow, BackfillState
from ultijobs.inspection.commands import equivalent
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
from ultijobs.inspection.schedule import Occurrence, TaskDetail, TaskRow

__all__ = [
    "ANY",
    "ActOutcome",
    "Action",
    "ActivityEntry",
    "ActivityRow",
    "AttemptRecord",
    "BackfillRow",
    "BackfillState",
    "CatalogEntry",
    "Cause",
    "Count",
    "EventPage",
    "EventRow",
    "Field",
    "Health",
    "Inspector",
    "JobDetail",
    "JobPage",
    "JobRow",
    "JobState",
    "Leader",
    "LeaseRow",
    "Occurrence",
    "Op",
    "OutboxDepth",
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
    "Published",
    "QueueRow",
    "Refusal",
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
    "TableHealth",
    "Target",
    "TaskDetail",
    "TaskRow",
    "Term",
    "WaitingOn",
    "Where",
    "Why",
    "WorkerRow",
    "equivalent",
    "format_where",
    "inert",
    "parse_duration",
    "parse_where",
]
