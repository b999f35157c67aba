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
    "OutboxNoTx",
    "PayloadInvalid",
    "TenantMismatch",
    "TimezoneInvalid",
    "ValidationFailed",
]


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


class OutboxNoTx(UltijobsError):
    """An enqueue outside of a transaction where one is required."""

    code = "X_OUTBOX_NO_TX"
    title = "An enqueue outside of a transaction where one is required"
    default_fix = "pass tx=, or open `async with app.transaction(tx):`"


class NotImplementedYet(UltijobsError):
    """This part is not built yet."""

    code = "X_NOT_IMPLEMENTED"
    title = "This part is not built yet"
    retry = "terminal"
    default_fix = "use what `ultijobs --help` lists, on a postgresql:// database"
