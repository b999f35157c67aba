"""Every error that ultijobs raises: a stable code, a cause, one line that mends it.

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
├── SchemaOutdated               X_SCHEMA_OUTDATED
├── FilterInvalid                X_FILTER_INVALID
├── QueueUnknown                 X_QUEUE_UNKNOWN
├── WorkerUnknown                X_WORKER_UNKNOWN
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
├── CliBadFlag                   X_CLI_BAD_FLAG
├── CliUnexpected                X_CLI_UNEXPECTED
└── an application's own, by subclassing with `code` and `retry`
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

__all__ = [
    "CATALOGUE",
    "Aborted",
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
    "JobNotCancellable",
    "JobNotRetryable",
    "JobRowStatusUnknown",
    "JobSlotLost",
    "JobTenantRequired",
    "JobTimeout",
    "JobUnknown",
    "NotImplementedYet",
    "OutboxNoTx",
    "Overloaded",
    "PayloadInvalid",
    "QueueUnknown",
    "RateLimited",
    "Retry",
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

Retry = Literal["terminal", "retryable", "retry-after"]

CATALOGUE: Final[dict[str, type[UltijobsError]]] = {}
"""The built-in class of each code."""


class UltijobsError(Exception):
    """A failure with a code, its cause and one line that mends it.

    Subclass it with `code` (and `retry`) for an application's own errors: a subclass counts as registered. `retry` says
    what a worker does when a handler raises it: stop (`terminal`), try again by the policy (`retryable`, None), or try
    again after `meta["retry_after_seconds"]` (`retry-after`). A code of the library cannot be taken by a second class.
    """

    code: ClassVar[str] = "X_ERROR"
    title: ClassVar[str] = "An error"
    docs: ClassVar[str] = "docs/errors/README.md"
    retry: ClassVar[Retry | None] = None
    default_fix: ClassVar[str] = "ultijobs explain X_ERROR"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        holder = CATALOGUE.get(cls.code)
        if holder is not None and "code" in cls.__dict__:
            raise Invariant(
                f"{cls.__qualname__} takes the code {cls.code}, which belongs to {holder.__qualname__}",
                fix=f"give {cls.__qualname__} a code of its own",
            )
        if cls.retry not in (None, "terminal", "retryable", "retry-after"):
            raise Invariant(
                f"{cls.__qualname__}.retry is {cls.retry!r}", fix='use "terminal", "retryable", "retry-after" or None'
            )
        if cls.__module__ == __name__:
            cls.docs = f"docs/errors/{cls.code}.md"
            CATALOGUE[cls.code] = cls

    def __init__(self, cause: str, *, fix: str | None = None, meta: Mapping[str, object] | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = self.default_fix if fix is None else fix
        self.meta: dict[str, object] = dict(meta or {})

    def __str__(self) -> str:
        return f"{self.code}: {self.cause}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.cause, self.fix, self.meta))

    def lines(self) -> tuple[str, str, str]:
        """The three lines that a person reads: code and cause, the fix, where more is written."""
        return (str(self), f"fix: {self.fix}", f"docs: {self.docs}")


def _rebuild(cls: type[UltijobsError], cause: str, fix: str, meta: Mapping[str, object]) -> UltijobsError:
    return cls(cause, fix=fix, meta=meta)


class Invariant(UltijobsError):
    """An argument or a call breaks a rule of the library."""

    code = "X_INVARIANT"
    title = "An argument or a call breaks a rule of the library"
    retry = "terminal"
    default_fix = "correct the argument that the cause names"


class Aborted(UltijobsError):
    """The attempt was cancelled and may write no more."""

    code = "X_ABORTED"
    title = "The attempt was cancelled and may write no more"
    default_fix = "return when ctx.signal is set"


class NotImplementedYet(UltijobsError):
    """This part is not built yet."""

    code = "X_NOT_IMPLEMENTED"
    title = "This part is not built yet"
    retry = "terminal"
    default_fix = "use what `ultijobs --help` lists, on a postgresql:// database"


class ValidationFailed(UltijobsError):
    """A value does not fit its declared type."""

    code = "X_VALIDATION_FAILED"
    title = "A value does not fit its declared type"
    retry = "terminal"
    default_fix = "correct the fields that the cause names"


class PayloadInvalid(UltijobsError):
    """A value cannot be stored and read back unchanged."""

    code = "X_PAYLOAD_INVALID"
    title = "A value cannot be stored and read back unchanged"
    retry = "terminal"
    default_fix = "return and pass only JSON values, or annotate the type"

    @property
    def path(self) -> str | None:
        value = self.meta.get("path")
        return None if value is None else str(value)


class DurationInvalid(UltijobsError):
    """A duration cannot be read."""

    code = "X_DURATION_INVALID"
    title = "A duration cannot be read"
    retry = "terminal"
    default_fix = 'write a timedelta, a number of seconds, or a text such as "1h30m"'


class CronInvalid(UltijobsError):
    """A cron text cannot be read."""

    code = "X_CRON_INVALID"
    title = "A cron text cannot be read"
    retry = "terminal"
    default_fix = 'write 5 fields, or 6 with leading seconds, such as "0 3 * * *"'


class TimezoneInvalid(UltijobsError):
    """A time zone is not an IANA zone."""

    code = "X_TIMEZONE_INVALID"
    title = "A time zone is not an IANA zone"
    retry = "terminal"
    default_fix = 'name a zone such as tz="Europe/Berlin"'


class RateLimited(UltijobsError):
    """The other side asks for fewer requests."""

    code = "X_RATE_LIMITED"
    title = "The other side asks for fewer requests"
    retry = "retry-after"
    default_fix = 'raise it with meta={"retry_after_seconds": n}'


class Overloaded(UltijobsError):
    """The other side is overloaded."""

    code = "X_OVERLOADED"
    title = "The other side is overloaded"
    retry = "retry-after"
    default_fix = 'raise it with meta={"retry_after_seconds": n}'


class TimedOut(UltijobsError):
    """Something took too long."""

    code = "X_TIMEOUT"
    title = "Something took too long"
    retry = "retryable"
    default_fix = "raise the limit, or split the work"


class Draining(UltijobsError):
    """The process is shutting down."""

    code = "X_DRAINING"
    title = "The process is shutting down"
    retry = "retryable"
    default_fix = "nothing to do: the work is delivered again"


class AppAmbiguous(UltijobsError):
    """It is not clear which application is meant."""

    code = "X_APP_AMBIGUOUS"
    title = "It is not clear which application is meant"
    default_fix = "enqueue inside `async with app:`, or call app.enqueue(handle, …)"


class TenantMismatch(UltijobsError):
    """An actor of another tenant."""

    code = "X_TENANT_MISMATCH"
    title = "An actor of another tenant"
    default_fix = "enqueue as an actor of the tenant that the job declares"


class IdempotencyRequired(UltijobsError):
    """A job declares no idempotency key."""

    code = "X_IDEMPOTENCY_REQUIRED"
    title = "A job declares no idempotency key"
    retry = "terminal"
    default_fix = 'add idempotency_key=lambda i: f"…:{i.id}"'


class JobTenantRequired(UltijobsError):
    """A job declares no tenant."""

    code = "X_JOB_TENANT_REQUIRED"
    title = "A job declares no tenant"
    retry = "terminal"
    default_fix = 'add tenant=lambda i: i.org_id, or tenant="none"'


class JobDuplicate(UltijobsError):
    """A live job holds the key, or two handles claim one name."""

    code = "X_JOB_DUPLICATE"
    title = "A live job holds the key, or two handles claim one name"
    default_fix = "ultijobs jobs show ID"

    @property
    def existing_id(self) -> str | None:
        value = self.meta.get("existing_id")
        return None if value is None else str(value)

    @property
    def state(self) -> str | None:
        value = self.meta.get("state")
        return None if value is None else str(value)


class JobUnknown(UltijobsError):
    """There is no such job."""

    code = "X_JOB_UNKNOWN"
    title = "There is no such job"
    default_fix = "ultijobs jobs ls"


class JobNotCancellable(UltijobsError):
    """Only a live job can be cancelled."""

    code = "X_JOB_NOT_CANCELLABLE"
    title = "Only a live job can be cancelled"
    default_fix = "ultijobs jobs ls --where state:running"


class JobNotRetryable(UltijobsError):
    """Only a stopped job can be retried."""

    code = "X_JOB_NOT_RETRYABLE"
    title = "Only a stopped job can be retried"
    default_fix = "ultijobs jobs ls --where state:dead"


class JobTimeout(UltijobsError):
    """A job or a step ran over its deadline."""

    code = "X_JOB_TIMEOUT"
    title = "A job or a step ran over its deadline"
    retry = "retryable"
    default_fix = "raise timeout=, or split the work into steps"


class JobMaxAttempts(UltijobsError):
    """A job took down its workers until its attempts were used up."""

    code = "X_JOB_MAX_ATTEMPTS"
    title = "A job took down its workers until its attempts were used up"
    default_fix = "ultijobs jobs ls --where reason:lease-exhausted"


class JobLeaseLost(UltijobsError):
    """The claim is not held any more."""

    code = "X_JOB_LEASE_LOST"
    title = "The claim is not held any more"
    default_fix = "ultijobs leases"


class JobSlotLost(UltijobsError):
    """The fleet slot is not held any more."""

    code = "X_JOB_SLOT_LOST"
    title = "The fleet slot is not held any more"
    default_fix = "ultijobs leases"


class JobConcurrencyUnenforceable(UltijobsError):
    """A fleet cap cannot be kept here."""

    code = "X_JOB_CONCURRENCY_UNENFORCEABLE"
    title = "A fleet cap cannot be kept here"
    default_fix = "remove concurrency= from the jobs that the cause names"


class JobRowStatusUnknown(UltijobsError):
    """A stored word is newer than this release."""

    code = "X_JOB_ROW_STATUS_UNKNOWN"
    title = "A stored word is newer than this release"
    default_fix = "deploy the newer release to every worker"


class StepDuplicate(UltijobsError):
    """A step name is used twice in one attempt."""

    code = "X_STEP_DUPLICATE"
    title = "A step name is used twice in one attempt"
    retry = "terminal"
    default_fix = "give each step of a run a name of its own"


class StepUnknown(UltijobsError):
    """The run has no such step."""

    code = "X_STEP_UNKNOWN"
    title = "The run has no such step"
    default_fix = "ultijobs jobs show ID"


class RunCodeChanged(UltijobsError):
    """The code no longer asks for what the run recorded."""

    code = "X_RUN_CODE_CHANGED"
    title = "The code no longer asks for what the run recorded"
    retry = "terminal"
    default_fix = "ultijobs explain X_RUN_CODE_CHANGED"


class ActionJobUnbridged(UltijobsError):
    """An action projection is registered as a job."""

    code = "X_ACTION_JOB_UNBRIDGED"
    title = "An action projection is registered as a job"
    default_fix = "wrap it: declare a job whose body calls the action"


class DriverUnavailable(UltijobsError):
    """The database does not answer."""

    code = "X_DRIVER_UNAVAILABLE"
    title = "The database does not answer"
    retry = "retryable"
    default_fix = "ultijobs doctor"


class SchemaOutdated(UltijobsError):
    """The tables and this release do not fit."""

    code = "X_SCHEMA_OUTDATED"
    title = "The tables and this release do not fit"
    default_fix = "ultijobs migrate"


class FilterInvalid(UltijobsError):
    """A filter cannot be read."""

    code = "X_FILTER_INVALID"
    title = "A filter cannot be read"
    default_fix = "ultijobs jobs ls --help"

    @property
    def position(self) -> int:
        value = self.meta.get("position")
        return value if isinstance(value, int) else 0


class QueueUnknown(UltijobsError):
    """There is no such queue."""

    code = "X_QUEUE_UNKNOWN"
    title = "There is no such queue"
    default_fix = "ultijobs queues ls"


class WorkerUnknown(UltijobsError):
    """There is no such worker."""

    code = "X_WORKER_UNKNOWN"
    title = "There is no such worker"
    default_fix = "ultijobs workers ls"


class OutboxNoTx(UltijobsError):
    """An enqueue outside of a transaction where one is required."""

    code = "X_OUTBOX_NO_TX"
    title = "An enqueue outside of a transaction where one is required"
    default_fix = "pass tx=, or open `async with app.transaction(tx):`"


class BackfillPending(UltijobsError):
    """A declared backfill has not completed here."""

    code = "X_BACKFILL_PENDING"
    title = "A declared backfill has not completed here"
    default_fix = "ultijobs backfill --all --write"


class BackfillApplied(UltijobsError):
    """The backfill has already completed."""

    code = "X_BACKFILL_APPLIED"
    title = "The backfill has already completed"
    retry = "terminal"
    default_fix = "ultijobs backfill NAME --write --force"


class BackfillEnvironment(UltijobsError):
    """The backfill does not belong to this environment."""

    code = "X_BACKFILL_ENVIRONMENT"
    title = "The backfill does not belong to this environment"
    retry = "terminal"
    default_fix = "run it in an environment that it declares"


class BackfillMigrationPending(UltijobsError):
    """The migration that the backfill requires is not applied."""

    code = "X_BACKFILL_MIGRATION_PENDING"
    title = "The migration that the backfill requires is not applied"
    default_fix = "apply the migration that the cause names"


class BackfillRunning(UltijobsError):
    """A pass of the backfill is live."""

    code = "X_BACKFILL_RUNNING"
    title = "A pass of the backfill is live"
    default_fix = "ultijobs backfill --list"


class BackfillStalled(UltijobsError):
    """The source is empty while count() is not."""

    code = "X_BACKFILL_STALLED"
    title = "The source is empty while count() is not"
    retry = "terminal"
    default_fix = "make the predicates of source and count equal"


class BackfillUnknown(UltijobsError):
    """No backfill of that name is declared."""

    code = "X_BACKFILL_UNKNOWN"
    title = "No backfill of that name is declared"
    default_fix = "ultijobs backfill --pending"


class DeclarationUnknown(UltijobsError):
    """Nothing of that name is declared."""

    code = "X_DECLARATION_UNKNOWN"
    title = "Nothing of that name is declared"
    default_fix = "ultijobs manifest"


class AppUnusable(UltijobsError):
    """The application cannot be loaded."""

    code = "X_APP_UNUSABLE"
    title = "The application cannot be loaded"
    default_fix = "correct the module that the cause names"


class CliBadFlag(UltijobsError):
    """A flag or an argument cannot be used."""

    code = "X_CLI_BAD_FLAG"
    title = "A flag or an argument cannot be used"
    default_fix = "run the command with --help"


class CliUnexpected(UltijobsError):
    """An error that nothing expected."""

    code = "X_CLI_UNEXPECTED"
    title = "An error that nothing expected"
    default_fix = "run the command again with --log-format json and report what it prints"
