"""`scheduler`: dispatches an application's tasks, until it is told to stop."""

from __future__ import annotations

from typing import Annotated

import typer

from ultijobs import _log
from ultijobs_cli import options
from ultijobs_cli.command import Invocation
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import Report
from ultijobs_cli.roles import leaving_early, run_role

__all__ = ["scheduler"]


def scheduler(
    call: Invocation,
    interval: Annotated[
        str, typer.Option("--interval", "--poll", metavar="TIME", help="How often to look for what is due.")
    ] = "1s",
    lease: Annotated[
        str, typer.Option("--lease", metavar="TIME", help="How long after the leader's death another takes over.")
    ] = "30s",
    metrics_port: options.MetricsPort = None,
    metrics_host: options.MetricsHost = "0.0.0.0",  # noqa: S104 - whoever scrapes is on another machine
) -> Report:
    """Dispatches the tasks of an application.

    Of several schedulers one leads and the others stand by. Workers do the same besides their jobs, unless started
    with --no-scheduler. It waits while the database is unreachable. SIGTERM or ctrl-c ends it and gives up the lead
    at once, exit 0; a second signal exits 130.

    $ ultijobs scheduler --app shop.main:app
    $ ultijobs scheduler --app shop.main:app --lease 10s --log-format json
    """
    every, span = options.positive_span_of("--interval", interval), options.positive_span_of("--lease", lease)
    _log.configure(call.flags.log_format or "text")
    with leaving_early():
        app = load_app(call)
    from ultijobs import Scheduler  # noqa: PLC0415 - no other command schedules

    run_role(
        Scheduler(app, interval=every, lease=span, metrics_port=metrics_port, metrics_host=metrics_host).run,
        "jobs.scheduler.failed",
    )
    return Report("the scheduler has ended")
