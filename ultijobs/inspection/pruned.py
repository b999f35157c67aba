"""What an `Inspector` says and does about retention: a part of its class."""

from __future__ import annotations

import shlex
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Literal
from uuid import UUID

from ultijobs._definitions.bounds import Retention
from ultijobs._durations import milliseconds
from ultijobs._queue.activity import ActivityEntry
from ultijobs._queue.driver import Driver
from ultijobs._queue.retention import Kept, Windows
from ultijobs._queue.telling import CatalogEntry
from ultijobs._queue.views import Count
from ultijobs._retention.declared import declared as milliseconds_of
from ultijobs._retention.declared import windows_in
from ultijobs._retention.sweeping import sweep
from ultijobs.inspection.applying import Actor, write_result
from ultijobs.inspection.said import reason_of

__all__ = ["Expired", "KeptRow", "PruneOutcome", "Pruned"]


@dataclass(frozen=True, slots=True)
class KeptRow:
    """One kind of what is kept: for how long, how much is over that, how much a prune has removed."""

    kind: Kept
    keep_ms: int | None
    """None where each row has a time of its own."""
    expired: Count
    deleted: int


@dataclass(frozen=True, slots=True)
class Expired:
    """What is over its time, by kind, and whose times these are."""

    windows: Windows
    source: Literal["application", "catalogue", "defaults"]
    counts: Mapping[Kept, Count]
    as_of: datetime

    @property
    def total(self) -> Count:
        """At least so many where a single count is capped."""
        capped = any(count.kind == "capped" for count in self.counts.values())
        return Count(sum(count.value for count in self.counts.values()), "capped" if capped else "exact")

    def rows(self, deleted: Mapping[Kept, int]) -> list[KeptRow]:
        """Every kind, also those of which nothing is over its time."""
        return [KeptRow(kind, _ms(self.windows.of(kind)), self.counts[kind], deleted.get(kind, 0)) for kind in Kept]


def _ms(window: timedelta | None) -> int | None:
    return None if window is None else milliseconds(window)


@dataclass(frozen=True, slots=True)
class PruneOutcome:
    """How many rows of each kind a prune removed. What was removed stays removed when it is stopped or cut off."""

    deleted: Mapping[Kept, int]
    stopped: bool
    activity_id: UUID


class Pruned:
    """The calls of `Inspector` about retention."""

    _driver: Driver
    _actor: Actor

    async def expired(
        self, retention: Windows | None = None, declared: Sequence[CatalogEntry] = (), *, cap: int = 10_000
    ) -> Expired:
        """How much of each kind is over its time, each counted up to `cap`.

        The times are those of `retention`, the application's own, or longer where another application of the schema
        asks for longer; `declared` are the application's entries of the catalogue. Without it they are those of the
        catalogue, else the defaults.
        """
        store = self._driver.inspect
        now = await store.now()
        names = {(entry.kind, entry.name) for entry in declared}
        windows = windows_in(await store.catalog(), retention, names, now)
        source: Literal["application", "catalogue", "defaults"] = "catalogue" if windows else "defaults"
        if retention is not None:
            source = "application"
        windows = windows or Retention()
        return Expired(windows, source, await self._driver.retention.expired(windows, cap=cap), now)

    async def prune(
        self,
        expired: Expired,
        *,
        reason: str | None = None,
        on_progress: Callable[[Mapping[Kept, int]], None] | None = None,
        stop: Callable[[], bool] | None = None,
    ) -> PruneOutcome:
        """Removes what is over its time by now, in batches that wait for nobody, with a row in the activity table.

        Each batch stays done whatever happens after it; `stop` is asked after each.
        """
        reason = reason_of(reason)
        entry = ActivityEntry(
            actor=self._actor.name,
            source=self._actor.source,
            action="prune",
            target="retention",
            reason=reason,
            as_of=expired.as_of,
            matched=expired.total.value,
            equivalent=shlex.join(["ultijobs", "prune", *([] if reason is None else ["--reason", reason])]),
            detail={"keep": milliseconds_of(expired.windows), "source": expired.source},
        )
        activity = await self._driver.open_activity(entry)
        gone: Counter[Kept] = Counter()
        stopped = False

        def swept(so_far: Mapping[Kept, int]) -> bool:
            nonlocal stopped
            gone.clear()
            gone.update(so_far)
            if on_progress is not None:
                on_progress(so_far)
            stopped = stop is not None and stop()
            return not stopped

        try:
            await sweep(self._driver.retention, expired.windows, swept=swept)
        finally:
            done = gone.total()
            matched = max(expired.total.value, done)
            await write_result(self._driver, activity, matched=matched, done=done, refused=0, failed=0)
        return PruneOutcome({kind: gone[kind] for kind in Kept}, stopped, activity)
