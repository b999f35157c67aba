"""Roles at the command line: a process that runs until it is told to stop, and ends with the right code."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
from collections.abc import Callable, Coroutine, Generator
from contextlib import contextmanager
from types import FrameType
from typing import Any, Final

from ultijobs import _log
from ultijobs.errors import UltijobsError
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.loops import new_loop
from ultijobs_cli.report import CommandFailed, Report

__all__ = ["leaving_early", "run_role"]

SIGNALS_EVERY: Final = 1.0


def run_role(run: Callable[[], Coroutine[Any, Any, None]], event: str) -> None:
    """Until it ends. What keeps it from starting is exit 4; a second signal is a KeyboardInterrupt."""
    # What the application imported stays for good: the collector need not walk it again for every few hundred jobs.
    gc.collect()
    gc.freeze()
    try:
        with asyncio.Runner(loop_factory=new_loop) as runner:
            _run_to_its_end(runner.get_loop(), run)
    except UltijobsError as error:
        raise CommandFailed.because(error, exit_code=ExitCode.CANNOT_START) from error
    except asyncio.CancelledError:
        raise CommandFailed(Report("its tasks were cancelled from within", exit_code=ExitCode.FAILED)) from None
    except Exception as error:
        _log.emit(logging.CRITICAL, event, "the process ends", exc_info=error)
        raise


def _run_to_its_end(loop: asyncio.AbstractEventLoop, run: Callable[[], Coroutine[Any, Any, None]]) -> None:
    """Lets the loop go on when a callback of the application's code has stopped it, or has called `sys.exit`."""
    role = loop.create_task(run())
    keeping = loop.create_task(_keep_signals())
    said = _log.RateLimit(1.0)
    while not role.done():
        try:
            loop.run_until_complete(role)
        except (RuntimeError, SystemExit, KeyboardInterrupt) as error:
            if not role.done() and said.admit("stopped") is not None:
                _log.emit(
                    logging.ERROR,
                    "jobs.worker.loop-stopped",
                    f"a callback of the application's code would have ended the event loop, which goes on: {error!r}",
                    exc_info=error,
                )
    keeping.cancel()
    role.result()


async def _keep_signals() -> None:
    """Takes the signals back that a handler has taken: else nothing but a kill would end the process."""
    own = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    while True:
        await asyncio.sleep(SIGNALS_EVERY)
        for number, handler in own.items():
            if signal.getsignal(number) is not handler:
                signal.signal(number, handler)
                said = f"a handler took {number.name}, which ends this process; it is taken back"
                _log.emit(logging.WARNING, "jobs.worker.signal-taken", said)


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
