"""What the process says when it ends. No other module knows the numbers."""

from __future__ import annotations

from enum import IntEnum
from typing import Final

from ultijobs import errors

__all__ = ["ExitCode", "exit_code_of"]


class ExitCode(IntEnum):
    DONE = 0
    FAILED = 1
    """The check or the operation failed, or was refused."""
    USAGE = 2
    NOT_FOUND = 3
    CANNOT_START = 4
    """The database, its schema, the driver or the application cannot be used."""
    INTERRUPTED = 130


_BY_CODE: Final[dict[str, ExitCode]] = {
    **dict.fromkeys(
        (
            errors.CliBadFlag.code,
            errors.FilterInvalid.code,
            errors.DurationInvalid.code,
            errors.Invariant.code,
        ),
        ExitCode.USAGE,
    ),
    **dict.fromkeys(
        (
            errors.JobUnknown.code,
            errors.StepUnknown.code,
            errors.QueueUnknown.code,
            errors.WorkerUnknown.code,
            errors.ActUnknown.code,
            errors.BackfillUnknown.code,
            errors.DeclarationUnknown.code,
        ),
        ExitCode.NOT_FOUND,
    ),
    **dict.fromkeys(
        (
            errors.DriverUnavailable.code,
            errors.SchemaOutdated.code,
            errors.RightsMissing.code,
            errors.NotImplementedYet.code,
            errors.AppUnusable.code,
            errors.LifespanFailed.code,
            errors.AppAmbiguous.code,
            errors.JobConcurrencyUnenforceable.code,
        ),
        ExitCode.CANNOT_START,
    ),
}


def exit_code_of(code: str) -> ExitCode:
    """The exit code that an error's code stands for; one that nobody listed is a failure."""
    return _BY_CODE.get(code, ExitCode.FAILED)
