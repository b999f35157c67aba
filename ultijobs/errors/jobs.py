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
    "NotUndoable",
    "RunCodeChanged",
    "StepDuplicate",
    "StepUnknown",
]


class JobDuplicate(UltijobsError):
    """A live job holds the key and `on_conflict="error"` was given, or two handles of an application share a name."""

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
    """No job has the id, or it belongs to another tenant than the one asked for."""

    code = "X_JOB_UNKNOWN"
    title = "There is no such job"
    default_fix = "ultijobs jobs ls"


class JobNotCancellable(UltijobsError):
    """The job has ended already; its row is left as it is."""

    code = "X_JOB_NOT_CANCELLABLE"
    title = "Only a live job can be cancelled"
    default_fix = "ultijobs jobs ls --where state:running"


class JobNotRetryable(UltijobsError):
    """The job is live, or it is done and done jobs were not asked for; it is left as it is."""

    code = "X_JOB_NOT_RETRYABLE"
    title = "Only a stopped job can be retried"
    default_fix = "ultijobs jobs ls --where state:dead"


class NotUndoable(UltijobsError):
    """The act cannot be taken back."""

    code = "X_NOT_UNDOABLE"
    title = "The act cannot be taken back"
    default_fix = "ultijobs activity"


class JobMoved(UltijobsError):
    """The job is moving, or has moved, to another database: it can no longer be claimed, retried or cancelled here."""

    code = "X_JOB_MOVED"
    title = "The job is moving, or has moved, to another database"
    retry = "terminal"
    default_fix = "ultijobs jobs show ID, with --database-url of where it went"


class JobNotMovable(UltijobsError):
    """The job stays where it is when its queue is drained: it runs, has ended, or belongs to what stays."""

    code = "X_JOB_NOT_MOVABLE"
    title = "The job cannot be moved as it is"
    retry = "terminal"
    default_fix = "wait until it has ended, then drain the queue again"


class JobTimeout(UltijobsError):
    """A job or a step exceeded its deadline: the body was cancelled before the attempt was settled."""

    code = "X_JOB_TIMEOUT"
    title = "A job or a step exceeded its deadline"
    retry = "retryable"
    default_fix = "raise timeout=, or split the work into steps"


class JobMaxAttempts(UltijobsError):
    """Every attempt of the job ended with its worker gone, so that it is claimed no more."""

    code = "X_JOB_MAX_ATTEMPTS"
    title = "A job took down its workers until its attempts were used up"
    default_fix = "ultijobs jobs ls --where reason:lease-exhausted"


class JobLeaseLost(UltijobsError):
    """The claim ended before the handler did. Whatever the attempt still writes is refused; the job runs elsewhere."""

    code = "X_JOB_LEASE_LOST"
    title = "The claim is no longer held"
    default_fix = "ultijobs leases"


class JobSlotLost(JobLeaseLost):
    """As `JobLeaseLost`, for a job with `concurrency=`: its slot may belong to another job now."""

    code = "X_JOB_SLOT_LOST"
    title = "The claim of a capped job is no longer held, nor its slot"
    default_fix = "ultijobs leases"


class JobConcurrencyUnenforceable(UltijobsError):
    """A worker refuses to start: its driver cannot count the runs of a capped job over the whole fleet."""

    code = "X_JOB_CONCURRENCY_UNENFORCEABLE"
    title = "A cap over the fleet cannot be enforced here"
    default_fix = "remove concurrency= from the jobs that the cause names"


class JobRowStatusUnknown(UltijobsError):
    """A row holds a state or a status that a newer release wrote. The job is handed back and no attempt is used up."""

    code = "X_JOB_ROW_STATUS_UNKNOWN"
    title = "A stored state or status is newer than this release"
    default_fix = "deploy the newer release to every worker"


class StepDuplicate(UltijobsError):
    """An attempt used a step name twice: the second would replay the first one's result. It stops the job."""

    code = "X_STEP_DUPLICATE"
    title = "A step name is used twice in one attempt"
    retry = "terminal"
    default_fix = "give each step of a run a name of its own"


class StepUnknown(UltijobsError):
    """The run has recorded no step of this name; nothing is changed."""

    code = "X_STEP_UNKNOWN"
    title = "The run has no such step"
    default_fix = "ultijobs jobs show ID"


class RunCodeChanged(UltijobsError):
    """The handler no longer asks for a step that the run recorded, or asks for it as another kind. It stops the job."""

    code = "X_RUN_CODE_CHANGED"
    title = "The code no longer fits what the run recorded"
    retry = "terminal"
    default_fix = "ultijobs explain X_RUN_CODE_CHANGED"


class Aborted(UltijobsError):
    """The attempt was cancelled, lost its lease or ran out of time: nothing that it still writes is stored."""

    code = "X_ABORTED"
    title = "The attempt was cancelled and can no longer write"
    default_fix = "return when ctx.signal is set"
