"""x_jobs_done: its days are made ahead of the clock, and taken out whole when all of them is over.

Days are tables that the migrating role owns; what makes and drops them are functions of that role, so that a worker
needs no right to create anything.
"""

from __future__ import annotations

from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Final
from uuid import UUID

from ultijobs._queue.retention import Forgotten, Kept, Windows
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = [
    "AHEAD",
    "CUT",
    "DETACH",
    "OVER_CANCELLED",
    "OVER_DEFAULT",
    "OVER_DONE",
    "SWEEP",
    "forget",
    "make_days_ahead",
    "place",
    "place_of",
]

AHEAD: Final = "select {schema}.x_history_ahead(7)"

CUT: Final = """\
case when {window} >= interval '1 day' then date_trunc('day', now() - {window}, 'UTC') else now() - {window} end"""
"""Until when rows of history with this time are over."""

_DAY: Final = timedelta(days=1)
_ROWS_A_BLOCK: Final = 20
_FIRST: Final = UUID(int=0)
_LONG_AGO: Final = datetime(1, 1, 2, tzinfo=UTC)

DETACH: Final = """\
select {schema}.x_history_detach((date_trunc('day', now() - $1::interval, 'UTC') at time zone 'UTC')::date)"""
SWEEP: Final = "select done, cancelled, stands from {schema}.x_history_sweep($1::text, $2::bigint, $3::int)"

_GONE: Final = """\
steps as (delete from {schema}.x_job_steps s where s.run_id = any(array(select g.run_id from gone g))),
attempts as (delete from {schema}.x_job_attempts a where a.run_id = any(array(select g.run_id from gone g)))
select (select count(*) from gone g where g.state = 'done') as done,
       (select count(*) from gone g where g.state = 'cancelled') as cancelled,
       (select count(*) from seen) as seen,
       (select s.id from seen s order by s.id desc limit 1) as id"""

# $1 where to go on, $2 how many to look at, $3 and $4 the times of done and cancelled. Rows whose day had no table.
OVER_DEFAULT: Final = f"""\
with seen as materialized (
  select d.id, d.state, d.finished_at from {{schema}}.x_jobs_done_default d
   where d.id > $1::uuid order by d.id limit $2::int),
held as materialized (
  select d.id from {{schema}}.x_jobs_done_default d
   where d.id = any(array(
           select s.id from seen s
            where (s.state = 'done' and s.finished_at < now() - $3::interval)
               or (s.state = 'cancelled' and s.finished_at < now() - $4::interval)))
     for update skip locked),
gone as (
  delete from {{schema}}.x_jobs_done_default d where d.id = any(array(select h.id from held h))
  returning d.run_id, d.state),
{_GONE}"""

_OVER: Final = f"""\
with cut as materialized (select {CUT.format(window="$3::interval")} as at),
seen as materialized (
  select d.id, d.state, d.finished_at from {{schema}}.x_jobs_done d
   where <of> d.id > $1::uuid and d.finished_at < date_trunc('day', ({CUT.format(window="$3::interval")})
             - interval '1 us', 'UTC') + interval '1 day'
   order by d.id limit $2::int),
held as materialized (
  select d.id from {{schema}}.x_jobs_done d
   where d.id = any(array(
           select s.id from seen s where s.state = '<state>' and s.finished_at < (select c.at from cut c)))
     and d.state = '<state>' and d.finished_at < (select c.at from cut c)
     for update skip locked),
gone as (
  delete from {{schema}}.x_jobs_done d
   where d.id = any(array(select h.id from held h)) and d.finished_at < (select c.at from cut c)
  returning d.run_id, d.state),
{_GONE}"""

# Rows of days that stay for the sake of the other state, or until their end.
OVER_DONE: Final = _OVER.replace("<of> ", "").replace("<state>", "done")
OVER_CANCELLED: Final = _OVER.replace("<of>", "d.state = 'cancelled' and").replace("<state>", "cancelled")


async def make_days_ahead(links: Links, sql: Sql) -> None:
    """Makes the partitions of the next 7 days; rows of a day without one go to the default partition."""
    await links.fetch(sql(AHEAD))


async def forget(links: Links, sql: Sql, windows: Windows, after: str | None, limit: int) -> Forgotten:
    """One batch: days first, whole; then rows of no day; then rows whose time is shorter than their day's.

    A day leaves the table before the steps of its runs are removed, so that no run is ever without its steps. A crash
    leaves a table that nobody reads; the next to come goes on with it.
    """
    stage, _, rest = ("days" if after is None else after).partition(" ")
    if stage == "days":
        day = await _take_day(links, sql, max(windows.done, windows.cancelled))
        if day is not None:
            return Forgotten(after=f"day {day} 0")
        stage, rest = "default", ""
    if stage == "day":
        name, _, block = rest.partition(" ")
        return await _sweep(links, sql, name, int(block), max(1, limit // _ROWS_A_BLOCK))
    return await _rows(links, sql, windows, stage, rest, limit)


async def _take_day(links: Links, sql: Sql, longest: timedelta) -> str | None:
    """The oldest day that is over, now out of the table; None when there is none, or somebody holds the table."""
    day: str | None = await links.fetchval(sql(DETACH), longest)
    return day


async def _sweep(links: Links, sql: Sql, name: str, block: int, blocks: int) -> Forgotten:
    told = await links.fetchrow(sql(SWEEP), name, block, blocks)
    assert told is not None
    # What somebody reads stands until the next sweep.
    after = {"more": f"day {name} {block + blocks}", "gone": "days"}.get(told["stands"], "default")
    return Forgotten(_counted(told), after)


async def _rows(links: Links, sql: Sql, windows: Windows, stage: str, rest: str, limit: int) -> Forgotten:
    at = UUID(rest) if rest else _FIRST
    if stage == "default":
        told = await links.fetchrow(sql(OVER_DEFAULT), at, limit, windows.done, windows.cancelled)
    elif stage == "done":
        told = await links.fetchrow(sql(OVER_DONE), at, limit, windows.done)
    else:
        told = await links.fetchrow(sql(OVER_CANCELLED), at, limit, windows.cancelled)
    assert told is not None
    return Forgotten(_counted(told), f"{stage} {told['id']}" if told["seen"] >= limit else _next(windows, stage))


def _next(windows: Windows, stage: str) -> str | None:
    longest = max(windows.done, windows.cancelled)
    stages = ["default"]
    # The days of the longest time go whole; of a time shorter than a day, nobody waits for the day's end.
    stages += [kind for kind in ("done", "cancelled") if getattr(windows, kind) < max(longest, _DAY)]
    return next(iter(stages[stages.index(stage) + 1 :]), None)


def _counted(told: Record) -> Counter[Kept]:
    return +Counter({Kept.DONE: told["done"], Kept.CANCELLED: told["cancelled"]})


def place(told: Record) -> str:
    """Where the next batch goes on, behind a row with `finished_at` and `id`."""
    return f"{told['finished_at'].isoformat()} {told['id']}"


def place_of(after: str | None) -> tuple[datetime, UUID]:
    at, _, id = (after or "").partition(" ")  # noqa: A001 - the word of the column
    return (datetime.fromisoformat(at), UUID(id)) if at else (_LONG_AGO, _FIRST)
