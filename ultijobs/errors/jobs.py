"""What a job or a run can meet."""

from __future__ import annotations

from uuid import UUID

from ultijobs.errors.base import UltijobsError

__all__ = [
    "Aborted",
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
    "JobTimeout",
    "JobUnknown",
    "RunCodeChanged",
    "StepDuplicate",
    "StepUnknown",
]


class JobDuplicate(UltijobsError):
    """A live job holds the key, or two handles claim one name."""

    code = "X_JOB_DUPLICATE"
    title = "A live job holds the key, or two handles claim one name"
    default_fix = "ultijobs jobs show ID"

    @property
    def existing_id(self) -> UUID | None:
        """The live job that holds the key, as `Enqueued.id` would name it; None when two handles claim one name."""
        value = self.meta.get("existing_id")
        return None if value is None else UUID(str(value))

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


class JobMoved(UltijobsError):
    """The job moves, or has moved, to another database."""

    code = "X_JOB_MOVED"
    title = "The job moves, or has moved, to another database"
    retry = "terminal"
    default_fix = "ultijobs jobs show ID, with --database-url of where it went"


class JobNotMovable(UltijobsError):
    """The job cannot be moved as it is."""

    code = "X_JOB_NOT_MOVABLE"
    title = "The job cannot be moved as it is"
    retry = "terminal"
    default_fix = "wait until it has ended, then drain the queue again"


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


class JobSlotLost(JobLeaseLost):
    """The claim of a capped job is not held any more, nor its slot."""

    code = "X_JOB_SLOT_LOST"
    title = "The claim of a capped job is not held any more, nor its slot"
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


class Aborted(UltijobsError):
    """The attempt was cancelled and may write no more."""

    code = "X_ABORTED"
    title = "The attempt was cancelled and may write no more"
    default_fix = "return when ctx.signal is set"
