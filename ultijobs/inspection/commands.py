"""The command that does the same as an act: shown before it is applied, and kept in the activity table."""

from __future__ import annotations

import shlex
from datetime import datetime

from ultijobs import _durations
from ultijobs._queue.where import Where
from ultijobs.inspection.filter import format_where
from ultijobs.inspection.models import Action, PlanOptions, Target

__all__ = ["equivalent", "instant", "target_text"]

_IDS_SHOWN = 50


def equivalent(action: Action, target: Target, options: PlanOptions, as_of: datetime) -> str:
    """One line for a shell, with every value quoted."""
    match action:
        case Action.PAUSE:
            lasts = None if options.duration is None else _durations.render(options.duration)
            words = ["queues", "pause", target.queue or "", *_flag("--reason", options.reason), *_flag("--for", lasts)]
        case Action.RESUME:
            words = ["queues", "resume", target.queue or ""]
        case Action.DRAIN_WORKER:
            words = ["workers", "drain", target.worker or "", *(["--exit"] if options.exit else [])]
        case Action.RESUME_WORKER:
            words = ["workers", "resume", target.worker or ""]
        case Action.DRAIN_QUEUE:
            words = ["jobs", "drain", *_moved(target, options, as_of)]
        case Action.START_BACKFILL | Action.FORCE_BACKFILL:
            force = ["--force"] if action is Action.FORCE_BACKFILL else []
            words = ["backfill", target.backfill or "", "--write", *force, *_flag("--reason", options.reason)]
        case Action.OUTBOX_RETRY | Action.RUN_TASK:
            again = ["outbox", "retry", *map(str, target.ids)]
            words = [
                *([*again, *_flag("--tenant", options.tenant)] if target.ids else ["tasks", "run", target.task or ""]),
                *_flag("--reason", options.reason),
            ]
        case Action.UNDO:
            words = ["jobs", "undo", str(target.act), *_flag("--tenant", options.tenant)]
            words += [*_share(options), *_flag("--reason", options.reason)]
        case Action.RETRY | Action.CANCEL:
            words = ["jobs", str(action), *_jobs(action, target, options, as_of)]
    return shlex.join(["ultijobs", *words])


def target_text(target: Target) -> str:
    """What an act is for, as one line of the activity table."""
    if target.where is not None:
        return _text(target.where)
    if target.ids:
        more = len(target.ids) - _IDS_SHOWN
        return " ".join(map(str, target.ids[:_IDS_SHOWN])) + (f" and {more} more" if more > 0 else "")
    named = (
        ("queue", target.queue),
        ("worker", target.worker),
        ("task", target.task),
        ("backfill", target.backfill),
        ("act", None if target.act is None else str(target.act)),
    )
    return next((f"{kind}:{name}" for kind, name in named if name is not None), "")


def instant(at: datetime) -> str:
    """ISO-8601 with a `Z`, as every surface writes times."""
    return at.isoformat().replace("+00:00", "Z")


def _jobs(action: Action, target: Target, options: PlanOptions, as_of: datetime) -> list[str]:
    words = list(map(str, target.ids))
    if target.where is not None:
        words += ["--where", _text(target.where), "--as-of", instant(as_of)]
    words += _flag("--tenant", options.tenant)
    if action is Action.RETRY:
        words += _flag("--from-step", options.from_step) + _flag("--only-step", options.only_step)
        words += ["--done"] if options.allow_done else []
    return [*words, *_share(options), *_flag("--reason", options.reason)]


def _moved(target: Target, options: PlanOptions, as_of: datetime) -> list[str]:
    words = ["--where", _text(target.where or Where())] if target.queue is None else ["--queue", target.queue]
    words += ["--to", options.to or "", *([] if options.to_schema == "public" else ["--to-schema", options.to_schema])]
    words += [*_flag("--tenant", options.tenant), "--as-of", instant(as_of)]
    return [*words, *_share(options), *_flag("--reason", options.reason)]


def _share(options: PlanOptions) -> list[str]:
    """How many of them, and how fast."""
    pace = f"{options.batch}/{_durations.render(options.pause)}" if options.pause else None
    return [*_flag("--limit", None if options.limit is None else str(options.limit)), *_flag("--pace", pace)]


def _text(where: Where) -> str:
    return format_where(where)


def _flag(name: str, value: str | None) -> list[str]:
    return [] if value is None else [name, value]
