"""What the catalogue says of a job's retry policy, and the delays that are still to come for one row of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import cast

from ultijobs import _durations
from ultijobs._queue.records import JobState
from ultijobs._queue.telling import CatalogEntry
from ultijobs._queue.views import JobRow
from ultijobs._retry import MOST_ATTEMPTS, RetryPolicy
from ultijobs.errors import UltijobsError

__all__ = ["policy_of", "remaining_delays"]

_STOPPED = frozenset({JobState.DONE, JobState.FAILED, JobState.DEAD, JobState.CANCELLED})


def policy_of(name: str, catalog: Iterable[CatalogEntry]) -> RetryPolicy | None:
    """The policy that a worker last declared for `name`; None when it is not in the catalogue or cannot be read."""
    for entry in catalog:
        if entry.name == name and entry.kind in {"job", "backfill"}:
            given = entry.declaration.get("retry")
            return _read(cast("Mapping[str, object]", given)) if isinstance(given, Mapping) else None
    return None


def remaining_delays(row: JobRow, policy: RetryPolicy | None) -> list[int]:
    """Milliseconds of each wait still to come, without jitter, should every further attempt fail.

    A wait that has begun is not among them. The row's own maximum decides; a stopped row has none.
    """
    if policy is None or row.state in _STOPPED:
        return []
    failed = row.attempt - 1 if row.state == JobState.RUNNING else row.attempt
    most = min(max(1, row.max_attempts), MOST_ATTEMPTS)
    plain = RetryPolicy(most, policy.backoff, policy.delay, policy.max_delay, jitter=False).schedule()
    return [_durations.milliseconds(delay) for delay in plain[max(0, failed) :]]


def _read(given: Mapping[str, object]) -> RetryPolicy | None:
    backoff, delay, most = given.get("backoff"), given.get("delay_ms"), given.get("max_delay_ms")
    if backoff not in ("fixed", "linear", "exponential") or type(delay) is not int or type(most) is not int:
        return None
    try:
        return RetryPolicy(
            backoff=backoff, delay=timedelta(milliseconds=delay), max_delay=timedelta(milliseconds=most), jitter=False
        )
    except UltijobsError:
        return None
