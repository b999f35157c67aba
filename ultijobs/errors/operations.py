"""What an operator, or a script, can ask in vain."""

from __future__ import annotations

from ultijobs.errors.base import UltijobsError

__all__ = [
    "ActUnknown",
    "AppUnusable",
    "CliBadFlag",
    "CliUnexpected",
    "DeclarationUnknown",
    "FilterInvalid",
    "LifespanFailed",
    "MoveRefused",
    "QueueUnknown",
    "WorkerUnknown",
]


class FilterInvalid(UltijobsError):
    """A filter cannot be read; `position` counts characters from 0."""

    code = "X_FILTER_INVALID"
    title = "A filter cannot be read"
    default_fix = "ultijobs jobs ls --help"

    @property
    def position(self) -> int:
        value = self.meta.get("position")
        return value if isinstance(value, int) else 0


class QueueUnknown(UltijobsError):
    """No job, worker or declaration names the queue."""

    code = "X_QUEUE_UNKNOWN"
    title = "There is no such queue"
    default_fix = "ultijobs queues ls"


class WorkerUnknown(UltijobsError):
    """No live worker has the id."""

    code = "X_WORKER_UNKNOWN"
    title = "There is no such worker"
    default_fix = "ultijobs workers ls"


class ActUnknown(UltijobsError):
    """There is no such act in the activity table."""

    code = "X_ACT_UNKNOWN"
    title = "There is no such act in the activity table"
    default_fix = "ultijobs activity"


class MoveRefused(UltijobsError):
    """The target of a move cannot hold jobs, or is the database that they are in. Nothing is changed there or here."""

    code = "X_MOVE_REFUSED"
    title = "Jobs cannot be moved there"
    default_fix = "name another PostgreSQL database with --to"


class DeclarationUnknown(UltijobsError):
    """No job, task, backfill or error code has the name; the message offers the nearest."""

    code = "X_DECLARATION_UNKNOWN"
    title = "Nothing of that name is declared"
    default_fix = "ultijobs manifest"


class AppUnusable(UltijobsError):
    """`--app` names a module that does not import, or no `App` in it."""

    code = "X_APP_UNUSABLE"
    title = "The application cannot be loaded"
    default_fix = "correct the module that the cause names"


class LifespanFailed(UltijobsError):
    """`App(lifespan=…)` raised: before the first claim, or after everything had been handed back."""

    code = "X_LIFESPAN_FAILED"
    title = "The application's lifespan failed"
    default_fix = "fix the lifespan: its traceback is in the log of the worker"


class CliBadFlag(UltijobsError):
    """A flag, an argument or a setting is missing or cannot be used; nothing was read or changed."""

    code = "X_CLI_BAD_FLAG"
    title = "A flag or an argument cannot be used"
    default_fix = "run the command with --help"


class CliUnexpected(UltijobsError):
    """An error that no command expects: a fault of ultijobs, or of the application's code."""

    code = "X_CLI_UNEXPECTED"
    title = "An unexpected error"
    default_fix = "run the command again with --log-format json and report what it prints"
