"""Roles at the command line: a process that runs until it is told to stop, and ends with the right code."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any

from ultijobs import _log
from ultijobs.errors import UltijobsError
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.loops import new_loop
from ultijobs_cli.report import CommandFailed, Report

__all__ = ["leaving_early", "run_role"]


def run_role(run: Callable[[], Coroutine[Any, Any, None]], event: str) -> None:
    """Until it ends. What keeps it from starting is exit 4; a second signal is a KeyboardInterrupt."""
    # What the application imported stays for good: the collector need not walk it again for every few hundred jobs.
    gc.collect()
    gc.freeze()
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            runner.run(run())
    except UltijobsError as error:
        raise CommandFailed.because(error, exit_code=ExitCode.CANNOT_START) from error
    except Exception as error:
        _log.emit(logging.CRITICAL, event, "the process ends", exc_info=error)
        raise


class _LeftEarlyError(BaseException):
    """Passes through an application's import, whatever that catches."""


@contextmanager
def leaving_early() -> Generator[None]:
    """A signal before there is anything to drain ends the process as a drain does: with 0."""

    def leave(_number: int, _frame: FrameType | None) -> None:
        raise _LeftEarlyError

    before = {number: signal.signal(number, leave) for number in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    except _LeftEarlyError:
        raise CommandFailed(Report("stopped before it had begun")) from None
    finally:
        for number, former in before.items():
            signal.signal(number, former)
