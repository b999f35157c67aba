"""What an operator, or a script, can ask in vain."""

from __future__ import annotations

from ultijobs.errors.base import UltijobsError

__all__ = [
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


class MoveRefused(UltijobsError):
    """Jobs cannot be moved there."""

    code = "X_MOVE_REFUSED"
    title = "Jobs cannot be moved there"
    default_fix = "name another PostgreSQL database with --to"


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


class LifespanFailed(UltijobsError):
    """The application's lifespan failed."""

    code = "X_LIFESPAN_FAILED"
    title = "The application's lifespan failed"
    default_fix = "mend the lifespan: its traceback is in the log of the worker"


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
