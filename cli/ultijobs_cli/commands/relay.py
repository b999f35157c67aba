"""`relay`: publishes what an application staged in its outbox, until it is told to stop."""

from __future__ import annotations

from typing import Annotated

import typer

from ultijobs import _log
from ultijobs_cli import options
from ultijobs_cli.command import Invocation
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import Report
from ultijobs_cli.roles import leaving_early, run_role

__all__ = ["relay"]


def relay(
    call: Invocation,
    batch: Annotated[
        int, typer.Option("--batch", metavar="N", min=1, max=10_000, help="How many rows to publish at once.")
    ] = 100,
    interval: Annotated[
        str, typer.Option("--interval", "--poll", metavar="TIME", help="How often to look for rows.")
    ] = "200ms",
    lease: Annotated[
        str, typer.Option("--lease", metavar="TIME", help="How long after a relay's death another takes over.")
    ] = "30s",
    name: Annotated[
        str | None, typer.Option("--name", metavar="NAME", help="Shown as claimed_by; by default host and pid.")
    ] = None,
    metrics_port: options.MetricsPort = None,
    metrics_host: options.MetricsHost = "0.0.0.0",  # noqa: S104 - whoever scrapes is on another machine
) -> Report:
    """Publishes the outbox of an application into its queue.

    Any number of relays may run. Workers do the same besides their jobs, unless started with --no-relay. It waits
    while a database is unreachable. SIGTERM or the first ctrl-c ends it after the current batch, exit 0; a second
    signal hands that batch back at once, exit 130.

    $ ultijobs relay --app shop.main:app
    $ ultijobs relay --app shop.main:app --lease 10s --log-format json
    """
    every, span = options.positive_span_of("--interval", interval), options.positive_span_of("--lease", lease)
    _log.configure(call.flags.log_format or "text")
    with leaving_early():
        app = load_app(call)
    from ultijobs import Relay  # noqa: PLC0415 - no other command relays

    relaying = Relay(
        app,
        batch=batch,
        interval=every,
        claim_lease=span,
        relay_id=name,
        metrics_port=metrics_port,
        metrics_host=metrics_host,
    )
    run_role(relaying.run, "jobs.outbox.failed")
    return Report(f"relay {relaying.relay_id} has ended", {"relay_id": relaying.relay_id})
