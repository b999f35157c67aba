"""Events: stored in the publisher's transaction, delivered when it has committed, taken by waiting steps.

An event stays undelivered until a statement that began after its commit has woken the runs whose wait was recorded by
then; a wait that is recorded later is followed by a look of its own. So none slips through, whoever commits when.
"""

from __future__ import annotations

import contextlib
from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ultijobs._queue.events import EventPage, EventRow, Look, NewEvent, Seen, Sight
from ultijobs._tx.connections import connection_of
from ultijobs.errors import DriverUnavailable
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["DELIVER", "DELIVER_THESE", "LOOK", "PAGE", "PAGE_OF_NAME", "PUBLISH", "PostgresEvents", "event_columns"]

_LIMIT: Final = 30.0
_CHUNK: Final = 1_000
_FRESH_ONES: Final = 500
"""Events that one statement delivers."""
_WAKES: Final = 5_000
"""Runs that one statement makes due; an event with more is delivered by several."""

# The clock of each row, not of its transaction: that may have begun before the run that waits was there.
PUBLISH: Final = """\
with n as (
  select t.id::uuid as id, t.name, t.key, t.payload::json as payload, t.ttl::interval as ttl, t.published_by,
         clock_timestamp() as at, t.ord
    from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
         with ordinality t(id, name, key, payload, ttl, published_by, ord)),
i as (
  insert into {schema}.x_job_events (id, name, key, payload, published_at, expires_at, published_by)
  select n.id, n.name, n.key, n.payload, n.at, n.at + n.ttl, n.published_by from n order by n.ord
  on conflict (id) do nothing
  returning id)
select count(i.id)::text as stored, case when $7::text = 'tell' then pg_notify('{channel}', 'e:')::text end as told
  from i"""

_FRESH: Final = "select e.id, e.name, e.key from {schema}.x_job_events e where not e.delivered"

_WAKE: Final = f"""\
waits as materialized (
  select distinct x.run_id from fresh f cross join lateral (
    select s.run_id from {{schema}}.x_job_steps s
     where s.status = 'waiting' and s.event = f.name and s.match = f.key
    union all
    select s.run_id from {{schema}}.x_job_steps s
     where s.status = 'waiting' and s.event = f.name and s.match is null) x
   order by x.run_id),
hit as materialized (
  select x.id from waits w cross join lateral (
    select j.id from {{schema}}.x_jobs j
     where j.id = w.run_id and j.run_id = w.run_id
       and (j.state = 'suspended' and j.run_at > now() or j.state = 'running' and j.woken is distinct from j.lease_no)
       for no key update) x
   limit {_WAKES}),
woken as (
  update {{schema}}.x_jobs j
     set run_at = case when j.lease_until is null then now() else j.run_at end,
         woken = case when j.lease_until is null then j.woken else j.lease_no end
   where j.id = any(array(select hit.id from hit)) returning j.queue, j.run_at),
marked as (
  update {{schema}}.x_job_events e set delivered = true
   where e.id = any(array(select fresh.id from fresh)) and (select count(*) from hit) < {_WAKES} returning e.id),
told as (
  select pg_notify('{{channel}}', 'q:' || d.queue)::text as said
    from (select distinct woken.queue from woken where woken.run_at <= now()) d)
select (select count(*) from woken) as woken, (select count(*) from marked) as delivered,
       (select count(told.said) from told) as told"""

# A run that is running is marked: its claim, when it parks, finds that it was woken meanwhile.
DELIVER: Final = f"""\
with fresh as materialized (
  {_FRESH} order by e.id limit {_FRESH_ONES} for no key update skip locked),
{_WAKE}"""

DELIVER_THESE: Final = f"""\
with fresh as materialized (
  {_FRESH} and e.id = any($1::text[]::uuid[]) order by e.id for no key update),
{_WAKE}"""

_FITS: Final = """\
e.published_at >= a.since and e.expires_at > now()
             and not exists (select from {schema}.x_job_steps c where c.run_id = a.run_id and c.event_id = e.id)
           order by e.published_at, e.id limit 1"""

_EVENT: Final = """\
e.id, json_build_object('id', e.id, 'name', e.name, 'key', e.key, 'published_at',
                                   to_char(e.published_at at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"'),
                                   'payload', e.payload) as output"""

# One wait of a run at a time: two would both see the same event as free.
LOOK: Final = f"""\
with asked as materialized (
  select t.run_id, t.step, t.required, t.again, s.status, s.event, s.match, s.wake_at, s.event_id,
         s.output::text as output, case when t.since_run then x.created_at else s.started_at end as since
    from unnest($1::uuid[], $2::bigint[], $3::uuid[], $4::text[], $5::boolean[], $6::boolean[], $7::interval[])
         t(job_id, lease_no, run_id, step, since_run, required, again)
   cross join lateral (
    select j.created_at from {{schema}}.x_jobs j
     where j.id = t.job_id and j.lease_no = t.lease_no and j.lease_until is not null for share) x
   cross join lateral (
    select r.* from {{schema}}.x_job_steps r where r.run_id = t.run_id and r.name = t.step limit 1) s),
found as materialized (
  select a.run_id, a.step, x.id, x.output
    from asked a
    left join lateral (
      (select {_EVENT} from {{schema}}.x_job_events e
        where a.match is not null and e.name = a.event and e.key = a.match and {_FITS})
      union all
      (select {_EVENT} from {{schema}}.x_job_events e
        where a.match is null and e.name = a.event and {_FITS})) x on true
   where a.status = 'waiting' and (x.id is not null or a.wake_at <= now() and not a.required)),
ended as (
  update {{schema}}.x_job_steps s
     set status = 'completed', completed_at = now(), event_id = f.id, output = coalesce(f.output, 'null'::json)
    from found f
   where s.run_id = f.run_id and s.name = f.step and s.status = 'waiting'
  returning s.run_id, s.name, s.event_id, s.output::text as output)
select a.run_id, a.step,
       case when coalesce(d.event_id, a.event_id) is not null then 'event'
            when d.run_id is not null or a.status = 'completed' or a.wake_at <= now() then 'over'
            else 'nothing' end as sight,
       coalesce(d.output, a.output) as output, least(a.wake_at, now() + a.again) as wake_at
  from asked a left join ended d on d.run_id = a.run_id and d.name = a.step"""

_ROW: Final = "e.id, e.name, e.key, e.published_at, e.expires_at, e.published_by"

PAGE: Final = f"""\
select {_ROW} from {{schema}}.x_job_events e
 where ($1::uuid is null or e.id < $1::uuid) order by e.id desc limit $2::int"""

PAGE_OF_NAME: Final = f"""\
select {_ROW} from {{schema}}.x_job_events e
 where e.name = $1::text and ($2::text is null or e.key = $2::text)
   and ($3::uuid is null or (e.published_at, e.id) < (select p.published_at, p.id from {{schema}}.x_job_events p
                                                      where p.id = $3::uuid))
 order by e.published_at desc, e.id desc limit $4::int"""


class PostgresEvents:
    """`EventStore` on Postgres."""

    __slots__ = ("_looks", "_publishes", "_reads", "_sql")

    def __init__(self, publishes: Links, looks: Links, reads: Links, sql: Sql) -> None:
        self._publishes: Final = publishes
        self._looks: Final = looks
        self._reads: Final = reads
        self._sql: Final = sql

    async def publish(self, events: Sequence[NewEvent], *, tx: object | None = None) -> int:
        if not events:
            return 0
        if tx is not None:
            connection = await connection_of(tx)
            await connection.fetch(self._sql(PUBLISH), *event_columns(events), "tell", timeout=_LIMIT)
            return 0
        await self._publishes.fetch(self._sql(PUBLISH), *event_columns(events), "hush")
        # Stored: whoever delivers it, now or at a worker's next poll, the publish has succeeded.
        with contextlib.suppress(DriverUnavailable):
            return await self._deliver(DELIVER_THESE, [str(event.id) for event in events])
        return 0

    async def deliver(self) -> int:
        return await self._deliver(DELIVER)

    async def look(self, looks: Sequence[Look]) -> list[Seen]:
        seen = [Seen(Sight.LOST)] * len(looks)
        for turn in _turns(looks):
            place = {(looks[at].run_id, looks[at].step): at for at in turn}
            for row in await self._looks.fetch(self._sql(LOOK), *_asked([looks[at] for at in turn])):
                seen[place[row["run_id"], row["step"]]] = Seen(Sight(row["sight"]), row["output"], row["wake_at"])
        return seen

    async def page(
        self, *, name: str | None = None, key: str | None = None, after: UUID | None = None, limit: int = 100
    ) -> EventPage:
        if name is None:
            rows = await self._reads.fetch(self._sql(PAGE), after, limit + 1)
        else:
            rows = await self._reads.fetch(self._sql(PAGE_OF_NAME), name, key, after, limit + 1)
        found = [EventRow(**row) for row in rows[:limit]]
        return EventPage(found, found[-1].id if len(rows) > limit else None, await self._reads.fetchval("select now()"))

    async def _deliver(self, statement: str, *arguments: object) -> int:
        woken = 0
        while True:
            (row,) = await self._publishes.fetch(self._sql(statement), *arguments)
            woken += int(row["woken"])
            if row["delivered"] < _FRESH_ONES and (row["delivered"] or not row["woken"]):
                return woken


def event_columns(events: Sequence[NewEvent]) -> tuple[list[str | None], ...]:
    """As texts: id, name, key, payload, time to live, publisher."""
    return (
        [str(event.id) for event in events],
        [event.name for event in events],
        [event.key for event in events],
        [event.payload for event in events],
        [f"{event.ttl.total_seconds()!r} s" for event in events],
        [event.published_by for event in events],
    )


def _asked(looks: Sequence[Look]) -> tuple[list[object], ...]:
    return (
        [look.job_id for look in looks],
        [look.lease_no for look in looks],
        [look.run_id for look in looks],
        [look.step for look in looks],
        [look.since_run for look in looks],
        [look.required for look in looks],
        [look.again for look in looks],
    )


def _turns(looks: Sequence[Look]) -> list[list[int]]:
    """Places in `looks`, sorted by job and cut so that one statement has one wait of a run."""
    order = sorted(range(len(looks)), key=lambda at: looks[at].job_id)
    turns: list[list[int]] = []
    nth: dict[UUID, int] = {}
    for at in order:
        turn = nth[looks[at].run_id] = nth.get(looks[at].run_id, -1) + 1
        while turn < len(turns) and len(turns[turn]) >= _CHUNK:
            turn = nth[looks[at].run_id] = turn + 1
        if turn == len(turns):
            turns.append([])
        turns[turn].append(at)
    return turns
