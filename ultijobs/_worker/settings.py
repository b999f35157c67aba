"""What a worker is told at its start, checked."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Any, Final

from ultijobs._definitions import checks
from ultijobs._durations import Duration, parse
from ultijobs.errors import Invariant

__all__ = ["Settings", "settings"]

LEAST_LEASE: Final = timedelta(milliseconds=300)
LEAST_POLL: Final = timedelta(milliseconds=10)
MOST_CONCURRENCY: Final = 10_000


@dataclass(frozen=True, slots=True)
class Settings:
    """`queues` None: all that the application's jobs declare."""

    worker_id: str
    queues: tuple[str, ...] | None
    concurrency: int
    lease: timedelta
    grace: timedelta
    poll: timedelta


def settings(
    *,
    queues: Sequence[str] | None,
    concurrency: int,
    lease: Duration,
    grace: Duration,
    poll: Duration,
    name: str | None,
) -> Settings:
    """Raises `Invariant` or `DurationInvalid`, naming the option."""
    named = None if queues is None else checks.several(queues, "Worker: queues")
    if named is not None and not all(_is_text(queue) for queue in named):
        raise Invariant(f"Worker: queues is {queues!r:.100}", fix='give queues=["default", …], or leave it out for all')
    if named is not None and not named:
        raise Invariant("Worker: queues is empty", fix="name a queue, or leave queues= out for all of them")
    if type(concurrency) is not int or not 1 <= concurrency <= MOST_CONCURRENCY:
        raise Invariant(
            f"Worker: concurrency is {concurrency!r:.100}; it must be a whole number from 1 to {MOST_CONCURRENCY}",
            fix="set concurrency= to the number of jobs that run at once in this process",
        )
    if name is not None and not _is_text(name):
        raise Invariant(f"Worker: name is {name!r:.100}", fix="give a name, or leave it out for host and pid")
    return Settings(
        worker_id=name or f"{socket.gethostname()}:{os.getpid()}",
        queues=None if named is None else tuple(dict.fromkeys(named)),
        concurrency=concurrency,
        lease=_at_least(lease, LEAST_LEASE, "lease"),
        grace=parse(grace, what="Worker: grace"),
        poll=_at_least(poll, LEAST_POLL, "poll"),
    )


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and bool(value.strip())


def _at_least(value: Duration, least: timedelta, option: str) -> timedelta:
    duration = parse(value, what=f"Worker: {option}")
    if duration < least:
        raise Invariant(
            f"Worker: {option} is {duration.total_seconds():g} s; it must be at least {least.total_seconds():g} s",
            fix=f"raise {option}=",
        )
    return duration
