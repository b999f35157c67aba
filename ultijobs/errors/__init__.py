"""Every error that ultijobs raises: a stable code, a cause, one line that fixes it.

UltijobsError
├── Invariant                    X_INVARIANT
├── Aborted                      X_ABORTED
├── NotImplementedYet            X_NOT_IMPLEMENTED
├── ValidationFailed             X_VALIDATION_FAILED
├── PayloadInvalid               X_PAYLOAD_INVALID
├── DurationInvalid              X_DURATION_INVALID
├── CronInvalid                  X_CRON_INVALID
├── TimezoneInvalid              X_TIMEZONE_INVALID
├── RateLimited                  X_RATE_LIMITED
├── Overloaded                   X_OVERLOADED
├── TimedOut                     X_TIMEOUT
├── Draining                     X_DRAINING
├── AppAmbiguous                 X_APP_AMBIGUOUS
├── TenantMismatch               X_TENANT_MISMATCH
├── IdempotencyRequired          X_IDEMPOTENCY_REQUIRED
├── JobTenantRequired            X_JOB_TENANT_REQUIRED
├── JobDuplicate                 X_JOB_DUPLICATE
├── JobUnknown                   X_JOB_UNKNOWN
├── JobNotCancellable            X_JOB_NOT_CANCELLABLE
├── JobNotRetryable              X_JOB_NOT_RETRYABLE
├── NotUndoable                  X_NOT_UNDOABLE
├── JobMoved                     X_JOB_MOVED
├── JobNotMovable                X_JOB_NOT_MOVABLE
├── JobTimeout                   X_JOB_TIMEOUT
├── JobMaxAttempts               X_JOB_MAX_ATTEMPTS
├── JobLeaseLost                 X_JOB_LEASE_LOST
├── JobSlotLost                  X_JOB_SLOT_LOST
├── JobConcurrencyUnenforceable  X_JOB_CONCURRENCY_UNENFORCEABLE
├── JobRowStatusUnknown          X_JOB_ROW_STATUS_UNKNOWN
├── StepDuplicate                X_STEP_DUPLICATE
├── StepUnknown                  X_STEP_UNKNOWN
├── RunCodeChanged               X_RUN_CODE_CHANGED
├── ActionJobUnbridged           X_ACTION_JOB_UNBRIDGED
├── DriverUnavailable            X_DRIVER_UNAVAILABLE
├── MetricsUnavailable           X_METRICS_UNAVAILABLE
├── SchemaOutdated               X_SCHEMA_OUTDATED
├── RightsMissing                X_RIGHTS_MISSING
├── FilterInvalid                X_FILTER_INVALID
├── QueueUnknown                 X_QUEUE_UNKNOWN
├── MoveRefused                  X_MOVE_REFUSED
├── WorkerUnknown                X_WORKER_UNKNOWN
├── OutboxConflict               X_OUTBOX_CONFLICT
├── OutboxMisplaced              X_OUTBOX_MISPLACED
├── ActUnknown                   X_ACT_UNKNOWN
├── OutboxNoTx                   X_OUTBOX_NO_TX
├── BackfillPending              X_BACKFILL_PENDING
├── BackfillApplied              X_BACKFILL_APPLIED
├── BackfillEnvironment          X_BACKFILL_ENVIRONMENT
├── BackfillMigrationPending     X_BACKFILL_MIGRATION_PENDING
├── BackfillRunning              X_BACKFILL_RUNNING
├── BackfillStalled              X_BACKFILL_STALLED
├── BackfillUnknown              X_BACKFILL_UNKNOWN
├── DeclarationUnknown           X_DECLARATION_UNKNOWN
├── AppUnusable                  X_APP_UNUSABLE
├── LifespanFailed               X_LIFESPAN_FAILED
├── CliBadFlag                   X_CLI_BAD_FLAG
├── CliUnexpected                X_CLI_UNEXPECTED
└── an application's own, by subclassing with `code` and `retry`
"""

from __future__ import annotations

from ultijobs.errors.backfills import (
    BackfillApplied,
    BackfillEnvironment,
    BackfillMigrationPending,
    BackfillPending,
    BackfillRunning,
    BackfillStalled,
    BackfillUnknown,
)
from ultijobs.errors.base import (
    CATALOGUE,
    Invariant,
    Retry,
    UltijobsError,
)
from ultijobs.errors.calls import (
    ActionJobUnbridged,
    AppAmbiguous,
    CronInvalid,
    DurationInvalid,
    IdempotencyRequired,
    JobTenantRequired,
    NotImplementedYet,
    OutboxConflict,
    OutboxMisplaced,
    OutboxNoTx,
    PayloadInvalid,
    TenantMismatch,
    TimezoneInvalid,
    ValidationFailed,
)
from ultijobs.errors.jobs import (
    Aborted,
    JobConcurrencyUnenforceable,
    JobDuplicate,
    JobLeaseLost,
    JobMaxAttempts,
    JobMoved,
    JobNotCancellable,
    JobNotMovable,
    JobNotRetryable,
    JobRowStatusUnknown,
    JobSlotLost,
    JobTimeout,
    JobUnknown,
    NotUndoable,
    RunCodeChanged,
    StepDuplicate,
    StepUnknown,
)
from ultijobs.errors.operations import (
    ActUnknown,
    AppUnusable,
    CliBadFlag,
    CliUnexpected,
    DeclarationUnknown,
    FilterInvalid,
    LifespanFailed,
    MoveRefused,
    QueueUnknown,
    WorkerUnknown,
)
from ultijobs.errors.services import (
    Draining,
    DriverUnavailable,
    MetricsUnavailable,
    Overloaded,
    RateLimited,
    RightsMissing,
    SchemaOutdated,
    TimedOut,
)

__all__ = [
    "CATALOGUE",
    "Aborted",
    "ActUnknown",
    "ActionJobUnbridged",
    "AppAmbiguous",
    "AppUnusable",
    "BackfillApplied",
    "BackfillEnvironment",
    "BackfillMigrationPending",
    "BackfillPending",
    "BackfillRunning",
    "BackfillStalled",
    "BackfillUnknown",
    "CliBadFlag",
    "CliUnexpected",
    "CronInvalid",
    "DeclarationUnknown",
    "Draining",
    "DriverUnavailable",
    "DurationInvalid",
    "FilterInvalid",
    "IdempotencyRequired",
    "Invariant",
    "JobConcurrencyUnenforceable",
    "JobDuplicate",
    "JobLeaseLost",
    "JobMaxAttempts",
    "JobMoved",
    "JobNotCancellable",
    "JobNotMovable",
    "JobNotRetryable",
    "JobRowStatusUnknown",
    "JobSlotLost",
    "JobTenantRequired",
    "JobTimeout",
    "JobUnknown",
    "LifespanFailed",
    "MetricsUnavailable",
    "MoveRefused",
    "NotImplementedYet",
    "NotUndoable",
    "OutboxConflict",
    "OutboxMisplaced",
    "OutboxNoTx",
    "Overloaded",
    "PayloadInvalid",
    "QueueUnknown",
    "RateLimited",
    "Retry",
    "RightsMissing",
    "RunCodeChanged",
    "SchemaOutdated",
    "StepDuplicate",
    "StepUnknown",
    "TenantMismatch",
    "TimedOut",
    "TimezoneInvalid",
    "UltijobsError",
    "ValidationFailed",
    "WorkerUnknown",
]
