"""What a call, a value or a declaration can break."""

from __future__ import annotations

from ultijobs.errors.base import UltijobsError

__all__ = [
    "ActionJobUnbridged",
    "AppAmbiguous",
    "CronInvalid",
    "DurationInvalid",
    "IdempotencyRequired",
    "JobTenantRequired",
    "NotImplementedYet",
    "OutboxConflict",
    "OutboxMisplaced",
    "OutboxNoTx",
    "PayloadInvalid",
    "TenantMismatch",
    "TimezoneInvalid",
    "ValidationFailed",
]


class ValidationFailed(UltijobsError):
    """Raised by an enqueue when the input does not fit the job's model: nothing is stored. In a run it stops the job.

    `meta["errors"]` is what pydantic says, without the values.
    """

    code = "X_VALIDATION_FAILED"
    title = "A value does not fit its declared type"
    retry = "terminal"
    default_fix = "correct the fields that the cause names"


class PayloadInvalid(UltijobsError):
    """A value would not come back from storage as it is: NaN, a set, U+0000, too many bytes. Nothing is stored."""

    code = "X_PAYLOAD_INVALID"
    title = "A value cannot be stored and read back unchanged"
    retry = "terminal"
    default_fix = "return and pass only JSON values, or annotate the type"

    @property
    def path(self) -> str | None:
        value = self.meta.get("path")
        return None if value is None else str(value)


class DurationInvalid(UltijobsError):
    """A value is no timedelta, no number of seconds and no text such as `1h30m`, or it is out of range."""

    code = "X_DURATION_INVALID"
    title = "A duration cannot be read"
    retry = "terminal"
    default_fix = 'write a timedelta, a number of seconds, or a text such as "1h30m"'


class CronInvalid(UltijobsError):
    """A cron expression has the wrong number of fields, a field out of range, or names a date that never comes."""

    code = "X_CRON_INVALID"
    title = "A cron expression cannot be read"
    retry = "terminal"
    default_fix = 'write 5 fields, or 6 with leading seconds, such as "0 3 * * *"'


class TimezoneInvalid(UltijobsError):
    """A task's `tz` is not the name of an IANA zone; fixed offsets are refused."""

    code = "X_TIMEZONE_INVALID"
    title = "A time zone is not an IANA zone"
    retry = "terminal"
    default_fix = 'name a zone such as tz="Europe/Berlin"'


class AppAmbiguous(UltijobsError):
    """`handle.enqueue` finds no open application here, or several that registered the handle. Nothing is stored."""

    code = "X_APP_AMBIGUOUS"
    title = "It is not clear which application is meant"
    default_fix = "enqueue inside `async with app:`, or call app.enqueue(handle, …)"


class TenantMismatch(UltijobsError):
    """An actor of one tenant enqueues a job of another. Nothing is stored."""

    code = "X_TENANT_MISMATCH"
    title = "The actor belongs to another tenant"
    default_fix = "enqueue as an actor of the tenant that the job declares"


class IdempotencyRequired(UltijobsError):
    """A job is declared without `idempotency_key`; raised when its module is imported."""

    code = "X_IDEMPOTENCY_REQUIRED"
    title = "A job declares no idempotency key"
    retry = "terminal"
    default_fix = 'add idempotency_key=lambda i: f"…:{i.id}"'


class JobTenantRequired(UltijobsError):
    """A job is declared without `tenant`; raised when its module is imported."""

    code = "X_JOB_TENANT_REQUIRED"
    title = "A job declares no tenant"
    retry = "terminal"
    default_fix = 'add tenant=lambda i: i.org_id, or tenant="none"'


class ActionJobUnbridged(UltijobsError):
    """An action projection is registered as a job."""

    code = "X_ACTION_JOB_UNBRIDGED"
    title = "An action projection is registered as a job"
    default_fix = "wrap it: declare a job whose body calls the action"


class OutboxConflict(UltijobsError):
    """A conflict of keys cannot be told where rows are staged."""

    code = "X_OUTBOX_CONFLICT"
    title = "A conflict of keys cannot be told where rows are staged"
    default_fix = "leave on_conflict out, or pass tx=False to ask the queue at once"


class OutboxMisplaced(UltijobsError):
    """The transaction is on another database than the outbox, where no relay would look. Nothing is stored.

    `meta["database"]` is where the transaction is. It stays usable.
    """

    code = "X_OUTBOX_MISPLACED"
    title = "The transaction is on another database than the outbox"
    default_fix = "pass a connection to the database of App(outbox=…) as tx, or tx=False to ask the queue at once"


class OutboxNoTx(UltijobsError):
    """`App(transactions="required")` refuses an enqueue outside of a transaction. Nothing is stored."""

    code = "X_OUTBOX_NO_TX"
    title = "An enqueue needs a transaction and has none"
    default_fix = "pass tx=, or open `async with app.transaction(tx):`"


class NotImplementedYet(UltijobsError):
    """A driver, command or declaration that this release knows and does not implement: refused, never ignored."""

    code = "X_NOT_IMPLEMENTED"
    title = "This is not implemented yet"
    retry = "terminal"
    default_fix = "use what `ultijobs --help` lists, on a postgresql:// database"
