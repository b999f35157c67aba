"""The tree of commands, whole: what there is, under which name."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from ultijobs_cli.branches import Branch, Branches, typer_of
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

_TREE: Final[Mapping[str, str | Branch]] = {
    "demo": "demo.demo",
    "migrate": "migrate.migrate",
    "worker": "worker.worker",
    "scheduler": "scheduler.scheduler",
    "relay": "relay.relay",
    "tui": "cockpit.tui",
    "jobs": Branch(
        "Lists, shows and acts on jobs; lists them by default.",
        "jobs_read.ls",
        {
            "ls": "jobs_read.ls",
            "show": "jobs_read.show",
            "why": "jobs_read.why",
            "enqueue": "jobs_enqueue.enqueue",
            "retry": "jobs_act.retry",
            "cancel": "jobs_act.cancel",
            "undo": "jobs_undo.undo",
            "drain": "jobs_drain.drain",
        },
    ),
    "queues": Branch(
        "Lists, pauses and resumes queues; lists them by default.",
        "queues.ls",
        {
            "ls": "queues.ls",
            "pause": "queues.pause",
            "resume": "queues.resume",
        },
    ),
    "workers": Branch(
        "Lists, drains and resumes workers; lists them by default.",
        "workers.ls",
        {
            "ls": "workers.ls",
            "drain": "workers.drain",
            "resume": "workers.resume",
        },
    ),
    "events": Branch(
        "Lists and publishes events; lists them by default.",
        "events.ls",
        {
            "ls": "events.ls",
            "publish": "events.publish",
        },
    ),
    "outbox": Branch(
        "Lists and retries rows of the outbox; lists them by default.",
        "outbox.ls",
        {
            "ls": "outbox.ls",
            "retry": "outbox.retry",
        },
    ),
    "tasks": Branch(
        "Lists, previews and runs tasks; lists them by default.",
        "tasks.ls",
        {
            "ls": "tasks.ls",
            "show": "tasks.show",
            "preview": "tasks.preview",
            "run": "tasks_run.run",
        },
    ),
    "backfill": "backfill.backfill",
    "stats": "overview.stats",
    "causes": "overview.causes",
    "leases": "overview.leases",
    "activity": "overview.activity",
    "prune": "prune.prune",
    "doctor": "doctor.doctor",
    "explain": "explain.explain",
    "manifest": "manifest.manifest",
}


class Tree(Root):
    """The root, with its commands."""

    def __init__(self, **attributes: Any) -> None:
        super().__init__(**attributes)
        self.commands = Branches(_TREE)


app = typer_of(Tree, invoke_without_command=True)
app.callback(help=_HELP, epilog=_EXAMPLES)(beginning())
