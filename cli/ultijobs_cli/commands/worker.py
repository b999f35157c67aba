"""`worker`: claims and runs an application's jobs until it is told to stop."""

from __future__ import annotations

import asyncio
import gc
import logging
import signal
import sys
from collections.abc import Callable, Generator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Annotated

import typer

from ultijobs import _log
from ultijobs.errors import UltijobsError
from ultijobs_cli import options
from ultijobs_cli.command import Invocation
from ultijobs_cli.commands.later import refuse
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import CommandFailed, Report
from ultijobs_cli.settings import application

if TYPE_CHECKING:
    from ultijobs import Worker

__all__ = ["worker"]


def worker(
    call: Invocation,
    queues: Annotated[
        list[str] | None,
        typer.Option("--queues", metavar="A,B", help="Serve these; without it, all that are declared."),
    ] = None,
    concurrency: Annotated[
        int, typer.Option("--concurrency", metavar="N", min=1, max=10_000, help="Jobs at once, in each process.")
    ] = 20,
    processes: Annotated[
        int, typer.Option("--processes", metavar="N", min=1, max=1_000, help="Processes, watched and restarted.")
    ] = 1,
    lease: Annotated[
        str, typer.Option("--lease", metavar="TIME", help="A claim outlives its process by at most this.")
    ] = "30s",
    grace: Annotated[
        str, typer.Option("--grace", metavar="TIME", help="What running jobs get to end in a drain.")
    ] = "25s",
    poll: Annotated[str, typer.Option("--poll", metavar="TIME", help="How often it looks without being woken.")] = "1s",
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Its worker_id; without it, host and pid.")
    ] = None,
    metrics_port: Annotated[int | None, typer.Option("--metrics-port", metavar="PORT", hidden=True)] = None,
    no_scheduler: Annotated[bool, typer.Option("--no-scheduler", hidden=True)] = False,
    no_relay: Annotated[bool, typer.Option("--no-relay", hidden=True)] = False,
) -> Report:
    """Claims and runs the jobs of an application.

    It waits for a database that is away. SIGTERM or the first ctrl-c drains: running jobs get --grace to end, the rest
    is handed back, exit 0. A second signal hands back at once, exit 130.

    $ ultijobs worker --app shop.main:app
    $ ultijobs worker --app shop.main:app --queues billing,mail --concurrency 50
    $ ultijobs worker --app shop.main:app --processes 4 --log-format json
    """
    asked = {"--metrics-port": metrics_port is not None, "--no-scheduler": no_scheduler, "--no-relay": no_relay}
    for flag, given in asked.items():
        if given:
            raise refuse(f"{flag} has nothing behind it yet", fix=f"leave {flag} out")
    served = _queues(queues)
    spans = {
        key: options.span_of(f"--{key}", text) for key, text in (("lease", lease), ("grace", grace), ("poll", poll))
    }
    form = call.flags.log_format or "text"
    _log.configure(form)
    with _leaving_early():
        app = load_app(call)
    if processes == 1:
        from ultijobs import Worker  # noqa: PLC0415 - no other command runs jobs

        return _run(Worker(app, queues=served, concurrency=concurrency, name=name, **spans))
    from ultijobs._worker.processes import supervise  # noqa: PLC0415 - as the worker

    words = [f"--app={application(call.flags)}", f"--log-format={form}", f"--concurrency={concurrency}"]
    words += [f"--lease={lease}", f"--grace={grace}", f"--poll={poll}"]
    words += [] if served is None else [f"--queues={','.join(served)}"]
    words += [] if name is None else [f"--name={name}"]
    code = supervise([sys.executable, "-m", "ultijobs_cli", "worker", *words], processes)
    return Report(f"{processes} worker processes ended", exit_code=ExitCode(code))


def _run(working: Worker) -> Report:
    """Until it drains. What keeps it from starting is exit 4; a second signal is a KeyboardInterrupt."""
    # What the application imported stays for good: the collector need not walk it again for every few hundred jobs.
    gc.collect()
    gc.freeze()
    try:
        with asyncio.Runner(loop_factory=_loop_factory()) as runner:
            runner.run(working.run())
    except UltijobsError as error:
        raise CommandFailed.because(error, exit_code=ExitCode.CANNOT_START) from error
    except Exception as error:
        _log.emit(logging.CRITICAL, "jobs.worker.failed", "the worker ends", exc_info=error)
        raise
    return Report(f"worker {working.worker_id} drained", {"worker_id": working.worker_id})


def _loop_factory() -> Callable[[], asyncio.AbstractEventLoop] | None:
    try:
        import uvloop  # noqa: PLC0415 - there is none for Windows
    except ModuleNotFoundError:
        return None
    return uvloop.new_event_loop


def _queues(given: list[str] | None) -> list[str] | None:
    if not given:
        return None
    named = [name.strip() for text in given for name in text.split(",")]
    if not all(named):
        raise options.bad("--queues", "names an empty queue", "write --queues billing,mail")
    return list(dict.fromkeys(named))


class _LeftEarlyError(BaseException):
    """Passes through an application's import, whatever that catches."""


@contextmanager
def _leaving_early() -> Generator[None]:
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
