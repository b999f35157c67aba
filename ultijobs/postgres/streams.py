"""Streams (queue, lane, rank) that hold waiting work, and for each the place that everything claimable lies behind.

A scan finds them by stepping over the claim index, so that its cost is the number of streams and not of rows.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final
from uuid import UUID

from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["CAPPED", "Stream", "StreamBook", "lower_bound", "readable"]

CAPPED: Final = "n:"
"""Lanes that begin so belong to jobs with a cap across the fleet; only who holds a slot may claim from them."""

_SCAN_EVERY: Final = 1.0
_SHARE: Final = 0.05
_BUDGET: Final = 0.25
"""Scans, and claims that find nothing, may take this share of the time, and so many seconds of it at once."""

_FORGET_AFTER: Final = 60.0
_STREAMS_A_QUEUE: Final = 1_000
_LATE: Final = timedelta(seconds=0.5)
"""How much later than its `run_at` a row may become visible and still be found before the next scan."""

_LOWEST_ID: Final = UUID(int=0)

# SQL may set times that no datetime holds, infinity too; one such row must not stop the claims of all others.
_EARLIEST: Final = datetime(1, 1, 2, tzinfo=UTC)
_LATEST: Final = datetime(9999, 12, 30, tzinfo=UTC)


def readable(column: str) -> str:
    """SQL: the time in `column`, moved into what a datetime holds."""
    early, late = (f"timestamptz '{at.isoformat()}'" for at in (_EARLIEST, _LATEST))
    return f"case when {column} < {early} then {early} when {column} > {late} then {late} else {column} end"


def lower_bound(at: datetime) -> datetime:
    """As a parameter, what lies before every row that was read as `at` or later."""
    # asyncpg sends the naive least datetime as -infinity.
    return at if at > _EARLIEST else datetime.min  # noqa: DTZ901


STREAMS: Final = f"""\
select now() as at, clock_timestamp() - now() as spent, q.queue, {readable("p.resume_at")} as resume_at, s.lane, s.rank,
       {readable("s.run_at")} as run_at, s.id
  from unnest($1::text[]) q(queue)
  left join {{schema}}.x_queues p
    on p.queue = q.queue and p.paused_at is not null and (p.resume_at is null or p.resume_at > now())
  left join lateral (
    with recursive t as (
      (select j.lane, (-j.priority) as rank, j.run_at, j.id, 1 as k from {{schema}}.x_jobs j
        where j.state in ('ready', 'suspended') and j.behind is null and j.queue = q.queue
        order by j.lane, (-j.priority), j.run_at, j.id limit 1)
      union all
      select n.lane, n.rank, n.run_at, n.id, t.k + 1 from t cross join lateral (
        select j.lane, (-j.priority) as rank, j.run_at, j.id from {{schema}}.x_jobs j
         where j.state in ('ready', 'suspended') and j.behind is null and j.queue = q.queue
           and (j.lane, (-j.priority)) > (t.lane, t.rank)
         order by j.lane, (-j.priority), j.run_at, j.id limit 1) n
       where t.k < $2::int)
    select t.lane, t.rank, t.run_at, t.id from t) s on p.queue is null"""


@dataclass(slots=True)
class Stream:
    """`from_at`, `from_id`: nothing before it is claimable, as far as this process knows."""

    queue: str
    lane: str
    rank: int
    from_at: datetime
    from_id: UUID
    head_at: datetime | None
    """When its first row is due, as of the last scan; None when that scan did not meet it."""
    seen: float

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.queue, self.lane, self.rank)


class StreamBook:
    """What one process knows of the streams. One claimer at a time uses it."""

    def __init__(self, links: Links, sql: Sql) -> None:
        self._links: Final = links
        self._sql: Final = sql
        self._streams: Final[dict[tuple[str, str, int], Stream]] = {}
        self._resumes: Final[dict[str, datetime]] = {}
        self._queues: frozenset[str] = frozenset()
        self._scanned_at = 0.0
        self._scan_at = 0.0
        self._budget = _BUDGET
        self._budget_at = time.monotonic()
        self._clock: tuple[datetime, float] | None = None

    def is_stale(self, queues: Iterable[str]) -> bool:
        """True when a scan is due, or these queues were never looked at."""
        if not self._queues.issuperset(queues):
            return True
        return time.monotonic() >= self._scan_at and self.affordable()

    def affordable(self) -> bool:
        """False while searches that found nothing have had more than their share of the time."""
        now = time.monotonic()
        self._budget = min(_BUDGET, self._budget + (now - self._budget_at) * _SHARE)
        self._budget_at = now
        return self._budget > 0

    def spend(self, cost: timedelta) -> None:
        """Takes `cost`, by the clock of the database, from what searches may take."""
        self._budget -= cost.total_seconds()

    def rescan_soon(self) -> None:
        """A claim found less than it asked for: what is elsewhere is not known yet."""
        self._scan_at = self._scanned_at

    async def scan(self, queues: Sequence[str]) -> None:
        """Finds the streams of `queues` and where each begins. Raises `DriverUnavailable`."""
        began = time.monotonic()
        rows = await self._links.fetch(self._sql(STREAMS), list(queues), _STREAMS_A_QUEUE)
        now = self._scanned_at = time.monotonic()
        at: datetime = rows[0]["at"]
        self._clock = (at, began)
        self._resumes.clear()
        for stream in [known for known in self._streams.values() if now - known.seen > _FORGET_AFTER]:
            del self._streams[stream.key]
        for known in self._streams.values():
            known.head_at = None
        for row in rows:
            if row["resume_at"] is not None:
                self._resumes[row["queue"]] = row["resume_at"]
            if row["lane"] is None or row["lane"].startswith(CAPPED):
                continue
            start = (row["run_at"], row["id"]) if row["run_at"] < at - _LATE else (at - _LATE, _LOWEST_ID)
            found = Stream(row["queue"], row["lane"], row["rank"], start[0], start[1], row["run_at"], now)
            self._streams[found.key] = found
        self._queues = frozenset(queues)
        self._scan_at = now + _SCAN_EVERY
        self.spend(rows[-1]["spent"])

    def now(self) -> datetime:
        """The database's clock as of the last scan, carried on by ours."""
        assert self._clock is not None, "a scan comes before all else"
        at, taken = self._clock
        return at + timedelta(seconds=time.monotonic() - taken)

    def streams(self, queues: Iterable[str]) -> list[Stream]:
        """Known streams of `queues`, in claim order: queue as given, then rank, then lane."""
        place = {queue: at for at, queue in enumerate(queues)}
        known = [stream for stream in self._streams.values() if stream.queue in place]
        return sorted(known, key=lambda stream: (place[stream.queue], stream.rank, stream.lane))

    def due(self, queues: Iterable[str]) -> list[Stream]:
        """Of those, the ones whose first row was due at the last scan, or is by now."""
        now = self.now()
        return [stream for stream in self.streams(queues) if stream.head_at is not None and stream.head_at <= now]

    def upcoming(self, queues: Iterable[str]) -> list[datetime]:
        """When streams that were not due at the last scan begin to be, and when paused queues resume."""
        wanted = set(queues)
        now = self.now()
        heads = [s.head_at for s in self._streams.values() if s.queue in wanted and s.head_at is not None]
        resumes = [at for queue, at in self._resumes.items() if queue in wanted]
        return [at for at in (*heads, *resumes) if at > now]

    def took(self, stream: Stream, last: tuple[datetime, UUID]) -> None:
        """Rows up to `last` were claimed, and more may lie right behind."""
        edge = self.now() - _LATE
        stream.from_at, stream.from_id = last if last[0] < edge else (edge, _LOWEST_ID)
        stream.seen = time.monotonic()

    def drained(self, stream: Stream, asked_at: datetime) -> None:
        """At `asked_at` nothing claimable was left in the stream."""
        stream.from_at, stream.from_id = max(stream.from_at, asked_at - _LATE), _LOWEST_ID

    def default(self, queues: Iterable[str]) -> None:
        """Makes the plain stream of each queue known, so that a first row is found without a scan."""
        for queue in queues:
            if (queue, "", 0) not in self._streams:
                edge = self.now() - _LATE
                self._streams[queue, "", 0] = Stream(queue, "", 0, edge, _LOWEST_ID, None, time.monotonic())
