"""The enqueue verb: which way a batch goes, on whose connection, and when workers are told."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Final
from uuid import UUID

from ultijobs._queue.records import Enqueued, JobState, NewJob
from ultijobs._queue.storable import refuse_unstorable
from ultijobs._tx.connections import Joined, connection_of
from ultijobs.errors import DriverUnavailable, Invariant
from ultijobs.postgres.bulk import COPY_FROM, TELL, copy_or_insert, tell
from ultijobs.postgres.jobs import ENQUEUE_LIMIT, Key, insert, key_of
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["FORGET_STORED", "Enqueuer", "distinct", "doubled"]

_TELL_EVERY: Final = 0.005

FORGET_STORED: Final = """\
with ended as materialized (
  select d.id, d.state from {schema}.x_jobs_done d where d.id = any($1::uuid[])),
gone as (delete from {schema}.x_jobs j where j.id = any(array(select ended.id from ended)))
select ended.id, ended.state from ended"""


class Enqueuer:
    """Inserts for one driver. Workers are told of a queue at most once in 5 ms, the last time after the last insert."""

    def __init__(self, links: Links, sql: Sql) -> None:
        self._links: Final = links
        self._sql: Final = sql
        self._told: Final[dict[str, float]] = {}
        self._owed: Final[set[str]] = set()
        self._telling: asyncio.Task[None] | None = None

    async def enqueue(self, jobs: Sequence[NewJob], tx: object | None, *, again: bool) -> list[Enqueued]:
        """See `Driver.enqueue`."""
        if not jobs:
            return []
        refuse_unstorable(jobs)
        if len(jobs) == 1 and tx is None and not again:
            return await self._own(jobs)
        kept, double_of = distinct(jobs)
        if tx is not None:
            answers = await self._joined(kept, await connection_of(tx))
        elif again:
            answers = await self._once(kept)
        else:
            answers = await self._own(kept)
        return doubled(jobs, answers, double_of)

    async def close(self) -> None:
        """Tells what is still owed, as far as the database is there to be told."""
        if self._telling is not None:
            await asyncio.wait({self._telling}, timeout=1)

    async def _own(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        if len(jobs) < COPY_FROM:
            queues = self._due({job.queue for job in jobs})
            if len(jobs) == 1:
                async with self._links.single() as connection:
                    return await insert(connection, self._sql, jobs, queues, ENQUEUE_LIMIT)
            async with self._links.transaction() as connection:
                return await insert(connection, self._sql, jobs, queues, ENQUEUE_LIMIT)
        async with self._links.transaction() as connection:
            answers = await copy_or_insert(connection, self._sql, jobs, ENQUEUE_LIMIT)
            await tell(connection, self._sql, sorted({job.queue for job in jobs}), ENQUEUE_LIMIT)
        return answers

    async def _once(self, jobs: Sequence[NewJob]) -> list[Enqueued]:
        """Inserts what was never stored under its id. A job that ended is found after the insert, when none can end."""
        async with self._links.transaction() as connection:
            answers = await insert(connection, self._sql, jobs, frozenset(job.queue for job in jobs), ENQUEUE_LIMIT)
            fresh = [answer.id for answer in answers if not answer.deduped]
            rows = await connection.fetch(self._sql(FORGET_STORED), fresh, timeout=ENQUEUE_LIMIT)
        ended = {row["id"]: JobState(row["state"]) for row in rows}
        return [replace(a, deduped=True, state=ended[a.id]) if a.id in ended else a for a in answers]

    async def _joined(self, jobs: Sequence[NewJob], connection: Joined) -> list[Enqueued]:
        queues = frozenset(job.queue for job in jobs)
        if len(jobs) == 1 or connection.is_in_transaction():
            return await insert(connection, self._sql, jobs, queues, ENQUEUE_LIMIT)
        async with connection.transaction():
            return await insert(connection, self._sql, jobs, queues, ENQUEUE_LIMIT)

    def _due(self, queues: set[str]) -> frozenset[str]:
        """Those to tell with the insert itself; the others are owed a word when their pause is over."""
        now = time.monotonic()
        due = {queue for queue in queues if now - self._told.get(queue, 0.0) >= _TELL_EVERY}
        for queue in due:
            self._told[queue] = now
        owed = queues - due
        if owed:
            self._owed.update(owed)
            if self._telling is None:
                self._telling = asyncio.get_running_loop().create_task(self._tell_later())
        return frozenset(due)

    async def _tell_later(self) -> None:
        try:
            while self._owed:
                await asyncio.sleep(_TELL_EVERY)
                queues = sorted(self._owed)
                self._owed.clear()
                self._told.update(dict.fromkeys(queues, time.monotonic()))
                await self._links.fetch(self._sql(TELL), queues)
        except (DriverUnavailable, Invariant):
            # A hint alone: who polls finds the rows.
            self._owed.clear()
        finally:
            self._telling = None


def distinct(jobs: Sequence[NewJob]) -> tuple[list[NewJob], dict[int, UUID]]:
    """The first job of each key, and for each later one of the same key the id of that first."""
    first: dict[Key, NewJob] = {}
    kept: list[NewJob] = []
    double_of: dict[int, UUID] = {}
    for at, job in enumerate(jobs):
        key = key_of(job)
        holder = job if key is None else first.setdefault(key, job)
        if holder is job:
            kept.append(job)
        else:
            double_of[at] = holder.id
    return kept, double_of


def doubled(jobs: Sequence[NewJob], answers: Sequence[Enqueued], double_of: Mapping[int, UUID]) -> list[Enqueued]:
    """Answers for `jobs`, from those for the distinct ones among them."""
    firsts = {job.id: at for at, job in enumerate(jobs) if at not in double_of}
    by_place = dict(zip(firsts.values(), answers, strict=True))
    return [
        replace(by_place[firsts[double_of[at]]], deduped=True) if at in double_of else by_place[at]
        for at in range(len(jobs))
    ]
