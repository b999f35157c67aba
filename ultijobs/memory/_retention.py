"""Retention in memory, by the store's clock: what is over its time goes row by row."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from datetime import datetime
from itertools import islice

from ultijobs._queue.retention import Forgotten, Kept, Shelf, Windows
from ultijobs._queue.views import Count
from ultijobs.memory._outbox import MemoryOutbox
from ultijobs.memory._rows import Row
from ultijobs.memory._schedule import MemorySchedule
from ultijobs.memory._store import Store

__all__ = ["MemoryRetention"]

_ENDED = {
    Shelf.HISTORY: (Kept.DONE, Kept.CANCELLED),
    Shelf.STOPPED: (Kept.FAILED, Kept.DEAD),
}


class MemoryRetention:
    """See `RetentionStore`."""

    def __init__(self, store: Store, outbox: MemoryOutbox, schedule: MemorySchedule) -> None:
        self._store = store
        self._outbox = outbox
        self._schedule = schedule

    async def expired(self, windows: Windows, *, cap: int = 10_000) -> Mapping[Kept, Count]:
        with self._store.lock:
            now = self._store.now()
            ended = Counter(row.state for row in self._over(self._store.rows(), tuple(Kept), windows, now))
            found = {kind: ended[kind] for kinds in _ENDED.values() for kind in kinds}
            found[Kept.EVENTS] = len(self._events(now))
            found[Kept.OUTBOX] = self._outbox.published(now - windows.outbox)
            found[Kept.SCHEDULE] = len(self._schedule.decided(now - windows.schedule))
            found[Kept.ACTIVITY] = sum(row.at < now - windows.activity for row in self._store.activity.values())
            return {kind: Count(min(found[kind], cap), "capped" if found[kind] > cap else "exact") for kind in Kept}

    async def forget(self, shelf: Shelf, windows: Windows, *, after: str | None = None, limit: int = 500) -> Forgotten:  # noqa: ARG002 - what is over its time is found from the front
        if shelf is Shelf.OUTBOX:
            return _told(Counter({Kept.OUTBOX: await self._outbox.forget(windows.outbox, limit=limit)}), limit)
        with self._store.lock:
            now = self._store.now()
            if shelf is Shelf.EVENTS:
                return _told(Counter({Kept.EVENTS: self._forget_events(now, limit)}), limit)
            if shelf is Shelf.SCHEDULE:
                gone = self._schedule.forget(now - windows.schedule, limit)
                return _told(Counter({Kept.SCHEDULE: gone}), limit)
            if shelf is Shelf.ACTIVITY:
                return _told(Counter({Kept.ACTIVITY: self._forget_activity(now, windows, limit)}), limit)
            rows = self._store.done if shelf is Shelf.HISTORY else self._store.jobs
            over = list(islice(self._over(rows.values(), _ENDED[shelf], windows, now), limit))
            for row in over:
                self._store.forget(row)
            return _told(Counter(Kept(row.state) for row in over), limit)

    def _over(self, rows: Iterable[Row], kinds: tuple[Kept, ...], windows: Windows, now: datetime) -> Iterable[Row]:
        for row in rows:
            if row.finished_at is None or row.state not in kinds:
                continue
            window = windows.of(Kept(row.state))
            if window is not None and row.finished_at < now - window:
                yield row

    def _events(self, now: datetime) -> list[object]:
        return [event for event in self._store.events.values() if event.row.expires_at < now]

    def _forget_events(self, now: datetime, limit: int) -> int:
        over = [id for id, event in self._store.events.items() if event.row.expires_at < now][:limit]  # noqa: A001 - the word of the field
        for id in over:  # noqa: A001 - as above
            del self._store.events[id]
        return len(over)

    def _forget_activity(self, now: datetime, windows: Windows, limit: int) -> int:
        over = [id for id, row in self._store.activity.items() if row.at < now - windows.activity][:limit]  # noqa: A001 - the word of the field
        for id in over:  # noqa: A001 - as above
            del self._store.activity[id]
        return len(over)


def _told(rows: Counter[Kept], limit: int) -> Forgotten:
    return Forgotten(dict(+rows), after="more" if rows.total() >= limit else None)
