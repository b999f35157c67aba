"""The tree of commands, whole: what there is, under which name."""

from __future__ import annotations

from typing import Final

import typer

from ultijobs_cli.command import command, group_body
from ultijobs_cli.commands import (
    backfill,
    cockpit,
    demo,
    doctor,
    events,
    explain,
    jobs_act,
    jobs_drain,
    jobs_enqueue,
    jobs_read,
    manifest,
    migrate,
    outbox,
    overview,
    prune,
    queues,
    relay,
    scheduler,
    tasks,
    tasks_run,
    worker,
    workers,
)
from ultijobs_cli.help import Group
from ultijobs_cli.root import Root, beginning

__all__ = ["app"]


_HELP: Final = "Durable background jobs on Postgres: run workers, see what is stuck and why, and fix it."
_EXAMPLES: Final = """\
ultijobs demo
ultijobs migrate --database-url postgresql://localhost/shop
ultijobs worker --app shop.main:app
ultijobs stats
ultijobs jobs ls --state dead
ultijobs jobs why 1f3a9c20"""


def _tree() -> typer.Typer:
    tree = _group(Root, bare=True)
    tree.callback(help=_HELP, epilog=_EXAMPLES)(beginning())
    command(tree, "demo", demo.demo)
    command(tree, "migrate", migrate.migrate)
    command(tree, "worker", worker.worker)
    command(tree, "scheduler", scheduler.scheduler)
    command(tree, "relay", relay.relay)
    command(tree, "tui", cockpit.tui)
    tree.add_typer(_jobs(), name="jobs")
    tree.add_typer(_queues(), name="queues")
    tree.add_typer(_workers(), name="workers")
    tree.add_typer(_events(), name="events")
    tree.add_typer(_outbox(), name="outbox")
    tree.add_typer(_tasks(), name="tasks")
    command(tree, "backfill", backfill.backfill)
    command(tree, "stats", overview.stats)
    command(tree, "causes", overview.causes)
    command(tree, "leases", overview.leases)
    command(tree, "activity", overview.activity)
    command(tree, "prune", prune.prune)
    command(tree, "doctor", doctor.doctor)
    command(tree, "explain", explain.explain)
    command(tree, "manifest", manifest.manifest)
    return tree


def _jobs() -> typer.Typer:
    group = _group(Group)
    group_body(group, jobs_read.ls, help="Lists, shows and acts on jobs; lists them by default.")
    command(group, "ls", jobs_read.ls)
    command(group, "show", jobs_read.show)
    command(group, "why", jobs_read.why)
    command(group, "enqueue", jobs_enqueue.enqueue)
    command(group, "retry", jobs_act.retry)
    command(group, "cancel", jobs_act.cancel)
    command(group, "drain", jobs_drain.drain)
    return group


def _queues() -> typer.Typer:
    group = _group(Group)
    group_body(group, queues.ls, help="Lists, pauses and resumes queues; lists them by default.")
    command(group, "ls", queues.ls)
    command(group, "pause", queues.pause)
    command(group, "resume", queues.resume)
    return group


def _outbox() -> typer.Typer:
    group = _group(Group)
    group_body(group, outbox.ls, help="Lists and retries rows of the outbox; lists them by default.")
    command(group, "ls", outbox.ls)
    command(group, "retry", outbox.retry)
    return group


def _workers() -> typer.Typer:
    group = _group(Group)
    group_body(group, workers.ls, help="Lists, drains and resumes workers; lists them by default.")
    command(group, "ls", workers.ls)
    command(group, "drain", workers.drain)
    command(group, "resume", workers.resume)
    return group


def _events() -> typer.Typer:
    group = _group(Group)
    group_body(group, events.ls, help="Lists and publishes events; lists them by default.")
    command(group, "ls", events.ls)
    command(group, "publish", events.publish)
    return group


def _tasks() -> typer.Typer:
    group = _group(Group)
    group_body(group, tasks.ls, help="Lists, previews and runs tasks; lists them by default.")
    command(group, "ls", tasks.ls)
    command(group, "show", tasks.show)
    command(group, "preview", tasks.preview)
    command(group, "run", tasks_run.run)
    return group


def _group(kind: type[Group], *, bare: bool = False) -> typer.Typer:
    return typer.Typer(cls=kind, rich_markup_mode=None, pretty_exceptions_enable=False, invoke_without_command=bare)


app = _tree()
