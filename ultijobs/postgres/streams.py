"""Streams (queue, lane, rank) that hold waiting work, and for each the place that everything claimable lies behind.

A scan finds them by stepping over the claim index, so that its cost is the number of streams and not of rows.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.lanes import capped_name
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["Stream", "StreamBook", "lower_bound", "readable"]

_SCAN_EVERY: Final = 1.0
_SHARE: Final = 0.05
_BUDGET: Final = 0.25
"""Scans, and claims that find nothing, may take this share of the time, and so many seconds of it at once."""

_FORGET_AFTER: Final = 60.0
_STREAMS_A_SCAN: Final = 1_000
"""Of a queue that has more, the next scan finds those behind them."""
_PLAIN: Final = 20
"""Streams that such a scan looks at again from the beginning: the plain lane is the first of all."""

_LEAST_RANK: Final = -(2**31)

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
    return at if at > _EARLIEST else datetime.min  # noqa: DTZ901 - asyncpg sends the naive one as -infinity


# $1 queues, $2 lanes and $3 ranks behind which to begin, $4 streams of each at the most
STREAMS: Final = f"""\
select now() as at, clock_timestamp() - now() as spent, q.part, q.queue, {readable("p.resume_at")} as resume_at,
       s.lane, s.rank, {readable("s.run_at")} as run_at, s.id, s.tenant_id
  from unnest($1::text[], $2::text[], $3::int[], $4::int[]) with ordinality q(queue, lane, rank, most, part)
  left join {{schema}}.x_queues p
    on p.queue = q.queue and p.paused_at is not null and (p.resume_at is null or p.resume_at > now())
  left join lateral (
    with recursive t as (
      (select j.lane, (-j.priority) as rank, j.run_at, j.id, j.tenant_id, 1 as k from {{schema}}.x_jobs j
        where j.state in ('ready', 'suspended') and j.behind is null and j.queue = q.queue
          and (j.lane, (-j.priority)) > (q.lane, q.rank)
        order by j.lane, (-j.priority), j.run_at, j.id limit 1)
      union all
      select n.lane, n.rank, n.run_at, n.id, n.tenant_id, t.k + 1 from t cross join lateral (
        select j.lane, (-j.priority) as rank, j.run_at, j.id, j.tenant_id from {{schema}}.x_jobs j
         where j.state in ('ready', 'suspended') and j.behind is null and j.queue = q.queue
           and (j.lane, (-j.priority)) > (t.lane, t.rank)
         order by j.lane, (-j.priority), j.run_at, j.id limit 1) n
       where t.k < q.most)
    select t.lane, t.rank, t.run_at, t.id, t.tenant_id from t) s on p.queue is null"""


@dataclass(slots=True)
class Stream:
    """`from_at`, `from_id`: nothing before it is claimable, as far as this process knows."""

    queue: str
    lane: str
    rank: int
    from_at: datetime
    from_id: UUID
    head_at: datetime | None
    """When its first row is due, as of the last look; None when that did not meet any."""
    head_id: UUID
    seen: float
    head_tenant: str | None = None

    @property
    def key(self) -> tuple[str, str, int]:
        return (self.queue, self.lane, self.rank)

    @property
    def head(self) -> tuple[datetime, UUID]:
        return (self.from_at, self.from_id) if self.head_at is None else (self.head_at, self.head_id)


class StreamBook:
    """What one process knows of the streams. One claimer at a time uses it.

    Streams of lanes are known while rows wait in them, and of very many those of the last two scans.
    """

    def __init__(self, links: Links, sql: Sql) -> None:
        self._links: Final = links
        self._sql: Final = sql
        self._streams: Final[dict[tuple[str, str, int], Stream]] = {}
        self._resumes: Final[dict[str, datetime]] = {}
        self._behind: Final[dict[str, tuple[str, int]]] = {}
        """Where the next scan of a queue begins, when the last one did not come to its end."""
        self._queues: frozenset[str] = frozenset()
        self._scanned_at = 0.0
        self._scan_at = 0.0
        self._budget = _BUDGET
        self._budget_at = time.monotonic()
        self._clock: tuple[datetime, float] | None = None

    def __len__(self) -> int:
        return len(self._streams)

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

    def is_whole(self, queues: Iterable[str]) -> bool:
        """False while there are streams that the last scan did not come to."""
        return self._behind.keys().isdisjoint(queues)

    async def scan(self, queues: Sequence[str]) -> None:
        """Finds the streams of `queues` and where each begins. Raises `DriverUnavailable`."""
        parts = [part for queue in queues for part in self._parts(queue)]
        began = time.monotonic()
        columns = [list(column) for column in zip(*parts, strict=True)]
        rows = await self._links.fetch(self._sql(STREAMS), *columns)
        now = self._scanned_at = time.monotonic()
        self._clock = (rows[0]["at"], began)
        self._resumes.clear()
        met = [list[Stream]() for _ in parts]
        for row in rows:
            if row["resume_at"] is not None:
                self._resumes[row["queue"]] = row["resume_at"]
            if row["lane"] is not None:
                part: int = row["part"]
                met[part - 1].append(self._met(row, now))
        for looked_at, found in zip(parts, met, strict=True):
            self._forget(looked_at, found)
        for stream in [known for known in self._streams.values() if now - known.seen > _FORGET_AFTER]:
            del self._streams[stream.key]
        self._streams.update((stream.key, stream) for found in met for stream in found)
        self._queues = frozenset(queues)
        self._scan_at = now + _SCAN_EVERY
        self.spend(rows[-1]["spent"])

    def _parts(self, queue: str) -> list[tuple[str, str, int, int]]:
        whole = (queue, "", _LEAST_RANK, _STREAMS_A_SCAN)
        behind = self._behind.get(queue)
        return [whole] if behind is None else [(*whole[:3], _PLAIN), (queue, *behind, _STREAMS_A_SCAN)]

    def _met(self, row: Record, now: float) -> Stream:
        edge = row["at"] - _LATE
        head_at, head_id = row["run_at"], row["id"]
        from_at, from_id = (head_at, head_id) if head_at < edge else (edge, _LOWEST_ID)
        return Stream(row["queue"], row["lane"], row["rank"], from_at, from_id, head_at, head_id, now, row["tenant_id"])

    def _forget(self, part: tuple[str, str, int, int], met: Sequence[Stream]) -> None:
        """Streams in the part that was looked at, and were not met, are empty."""
        queue, lane, rank, most = part
        last = met[-1].key[1:] if len(met) >= most else None
        if most == _STREAMS_A_SCAN:
            if last is None:
                self._behind.pop(queue, None)
            else:
                self._behind[queue] = last
                self._forget_oldest(queue)
        for known in [one for one in self._streams.values() if one.queue == queue]:
            if known.key[1:] > (lane, rank) and (last is None or known.key[1:] <= last):
                known.head_at = None
                if known.lane:
                    del self._streams[known.key]

    def _forget_oldest(self, queue: str) -> None:
        known = sorted((one for one in self._streams.values() if one.queue == queue and one.lane), key=_by_sight)
        for stream in known[: max(0, len(known) - _STREAMS_A_SCAN)]:
            del self._streams[stream.key]

    def now(self) -> datetime:
        """The database's clock as of the last scan, carried on by ours."""
        assert self._clock is not None, "a scan comes before all else"
        at, taken = self._clock
        return at + timedelta(seconds=time.monotonic() - taken)

    def streams(self, queues: Iterable[str]) -> list[Stream]:
        """Known streams of `queues`."""
        wanted = set(queues)
        return [stream for stream in self._streams.values() if stream.queue in wanted]

    def due(self, queues: Iterable[str]) -> list[Stream]:
        """Of those, the ones whose first row was due at the last look, or is by now."""
        now = self.now()
        return [stream for stream in self.streams(queues) if stream.head_at is not None and stream.head_at <= now]

    def likely(self, queues: Iterable[str]) -> list[Stream]:
        """Those that are due, and the plain ones, in which a row may have come up since the last look."""
        now = self.now()
        return [
            stream
            for stream in self.streams(queues)
            if not stream.lane or (stream.head_at is not None and stream.head_at <= now)
        ]

    def upcoming(self, queues: Iterable[str], names: Collection[str], caps: Collection[str]) -> list[datetime]:
        """When streams that were not due at the last look begin to be, and when paused queues resume.

        A capped lane counts where its name is among `names` and `caps`.
        """
        wanted = set(queues)
        now = self.now()
        heads = [
            stream.head_at
            for stream in self.streams(wanted)
            if stream.head_at is not None
            and ((name := capped_name(stream.lane)) is None or (name in names and name in caps))
        ]
        resumes = [at for queue, at in self._resumes.items() if queue in wanted]
        return [at for at in (*heads, *resumes) if at > now]

    def took(self, stream: Stream, last: tuple[datetime, UUID]) -> None:
        """Rows up to `last` were claimed, and more may lie right behind."""
        edge = self.now() - _LATE
        stream.from_at, stream.from_id = last if last[0] < edge else (edge, _LOWEST_ID)
        stream.head_at, stream.head_id = last
        stream.seen = time.monotonic()

    def drained(self, stream: Stream, asked_at: datetime) -> None:
        """At `asked_at` nothing claimable was left in the stream."""
        stream.from_at, stream.from_id = max(stream.from_at, asked_at - _LATE), _LOWEST_ID
        if stream.lane:
            stream.head_at = None

    def default(self, queues: Iterable[str]) -> None:
        """Makes the plain stream of each queue known, so that a first row is found without a scan."""
        for queue in queues:
            if (queue, "", 0) not in self._streams:
                edge = self.now() - _LATE
                self._streams[queue, "", 0] = Stream(queue, "", 0, edge, _LOWEST_ID, None, _LOWEST_ID, time.monotonic())


def _by_sight(stream: Stream) -> float:
    return stream.seen
