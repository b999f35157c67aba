"""What a backfill can meet."""

from __future__ import annotations

from ultijobs.errors.base import UltijobsError

__all__ = [
    "BackfillApplied",
    "BackfillEnvironment",
    "BackfillMigrationPending",
    "BackfillPending",
    "BackfillRunning",
    "BackfillStalled",
    "BackfillUnknown",
]


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
    retry = "terminal"
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
