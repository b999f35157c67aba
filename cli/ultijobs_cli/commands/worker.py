"""`worker`: claims and runs an application's jobs until it is told to stop."""

from __future__ import annotations

import sys
from functools import partial
from typing import Annotated, Final

import typer

from ultijobs import _log
from ultijobs_cli import options
from ultijobs_cli.command import Invocation
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import Report
from ultijobs_cli.roles import leaving_early, run_role
from ultijobs_cli.settings import application

__all__ = ["worker"]

_LAST_PORT: Final = 65_535


def worker(
    call: Invocation,
    queues: Annotated[
        list[str] | None,
        typer.Option("--queues", metavar="A,B", help="Serve these queues; by default all that are declared."),
    ] = None,
    concurrency: Annotated[
        int,
        typer.Option("--concurrency", metavar="N", min=1, max=10_000, help="How many jobs each process runs at once."),
    ] = 20,
    processes: Annotated[
        int,
        typer.Option(
            "--processes",
            metavar="N",
            min=1,
            max=1_000,
            help="How many processes to run; those that die are restarted.",
        ),
    ] = 1,
    lease: Annotated[
        str, typer.Option("--lease", metavar="TIME", help="How long a claim may outlive its process.")
    ] = "30s",
    grace: Annotated[
        str, typer.Option("--grace", metavar="TIME", help="How long running jobs may take to end in a drain.")
    ] = "25s",
    poll: Annotated[
        str, typer.Option("--poll", metavar="TIME", help="How often to look for work without being notified.")
    ] = "1s",
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Its worker_id; by default host and pid.")
    ] = None,
    metrics_port: options.MetricsPort = None,
    metrics_host: options.MetricsHost = "0.0.0.0",  # noqa: S104 - whoever scrapes is on another machine
    no_scheduler: Annotated[
        bool, typer.Option("--no-scheduler", help="Leave the application's tasks to other processes.")
    ] = False,
    no_relay: Annotated[
        bool, typer.Option("--no-relay", help="Leave the application's outbox to other processes.")
    ] = False,
) -> Report:
    """Claims and runs the jobs of an application.

    It waits while the database is unreachable. SIGTERM or the first ctrl-c drains: running jobs have --grace to end,
    the rest are handed back, exit 0. A second signal hands everything back at once, exit 130. With several processes
    each serves metrics on a port of its own: the first on --metrics-port, the second on the next port, and so on.

    $ ultijobs worker --app shop.main:app
    $ ultijobs worker --app shop.main:app --queues billing,mail --concurrency 50
    $ ultijobs worker --app shop.main:app --processes 4 --log-format json
    """
    if metrics_port is not None and metrics_port + processes - 1 > _LAST_PORT:
        raise options.bad(
            "--metrics-port", f"{processes} processes need as many ports from {metrics_port} on", "give a lower port"
        )
    served = _queues(queues)
    spans = [options.span_of(f"--{key}", text) for key, text in (("lease", lease), ("grace", grace), ("poll", poll))]
    form = call.flags.log_format or "text"
    _log.configure(form)
    with leaving_early():
        app = load_app(call)
    if processes == 1:
        from ultijobs import Worker  # noqa: PLC0415 - no other command runs jobs

        lease_, grace_, poll_ = spans
        working = Worker(
            app,
            queues=served,
            concurrency=concurrency,
            lease=lease_,
            grace=grace_,
            poll=poll_,
            name=name,
            scheduler=not no_scheduler,
            relay=not no_relay,
            metrics_port=metrics_port,
            metrics_host=metrics_host,
        )
        run_role(partial(working.run, alone=True), "jobs.worker.failed")
        return Report(f"worker {working.worker_id} drained", {"worker_id": working.worker_id})
    from ultijobs._worker.processes import supervise  # noqa: PLC0415 - as the worker

    words = [f"--app={application(call.flags)}", f"--log-format={form}", f"--concurrency={concurrency}"]
    words += [f"--lease={lease}", f"--grace={grace}", f"--poll={poll}"]
    words += [] if served is None else [f"--queues={','.join(served)}"]
    words += [] if name is None else [f"--name={name}"]
    words += ["--no-scheduler"] if no_scheduler else []
    words += ["--no-relay"] if no_relay else []
    words += [f"--metrics-host={metrics_host}"]

    def command(number: int) -> list[str]:
        own = [] if metrics_port is None else [f"--metrics-port={metrics_port and metrics_port + number - 1}"]
        return [sys.executable, "-m", "ultijobs_cli", "worker", *words, *own]

    code = supervise(command, processes)
    return Report(f"{processes} worker processes ended", exit_code=ExitCode(code))


def _queues(given: list[str] | None) -> list[str] | None:
    if not given:
        return None
    named = [name.strip() for text in given for name in text.split(",")]
    if not all(named):
        raise options.bad("--queues", "names an empty queue", "write --queues billing,mail")
    return list(dict.fromkeys(named))
