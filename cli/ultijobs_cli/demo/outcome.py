"""What the demo ends with: the facts, read from the tables, and the two invariants."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

import asyncpg

from ultijobs import JobState

__all__ = ["Outcome", "Progress", "last_round", "progress_of", "read_outcome", "workers_up"]

LAST_ROUND = "select coalesce(max(round), 0) from audit_reports"
UNFINISHED = "select count(*) from x_jobs where id = any($1::uuid[]) and state in ('ready', 'running', 'suspended')"
BY_STATE = "select state, count(*) from x_jobs_all where id = any($1::uuid[]) group by state"
STEPS = "select count(*) from x_job_steps where run_id = any($1::uuid[]) and status = 'completed'"
WORKERS = """
select count(*) as workers, coalesce(sum((counters ->> 'steps_replayed')::bigint), 0)::bigint as replayed
  from x_workers where started_at >= $1
"""
WORKING = "select count(*) from x_workers where started_at >= $1 and state = 'running'"
LOST = """
select count(*) from unnest($1::uuid[]) acknowledged(id)
 where not exists (select from x_jobs_all j where j.id = acknowledged.id)
"""
RUNNING = "select count(*) from x_jobs where state = 'running'"
FILES = """
select coalesce(sum(files), 0)::bigint as files, coalesce(sum(bytes), 0)::bigint as bytes
  from audit_reports where round >= $1
"""


@dataclass(frozen=True, slots=True)
class Progress:
    unfinished: int
    files: int
    bytes: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The object that `demo --json` prints."""

    jobs: dict[str, int]
    steps: dict[str, int]
    files: int
    bytes: int
    rounds: int
    workers: int
    wall_s: float
    invariants: dict[str, int]

    @property
    def kept(self) -> bool:
        return not any(self.invariants.values())


async def workers_up(connection: asyncpg.Connection[asyncpg.Record], since: datetime) -> int:
    """How many workers have registered since then."""
    return int(await connection.fetchval(WORKING, since))


async def last_round(connection: asyncpg.Connection[asyncpg.Record]) -> int:
    """The last round that an earlier demo has stored a report of."""
    return int(await connection.fetchval(LAST_ROUND))


async def progress_of(
    connection: asyncpg.Connection[asyncpg.Record], ids: Sequence[UUID], first_round: int
) -> Progress:
    """How many of these are unfinished, and what has been audited since `first_round`."""
    done = await connection.fetchrow(FILES, first_round)
    unfinished = await connection.fetchval(UNFINISHED, list(ids))
    return Progress(unfinished, done["files"] if done else 0, done["bytes"] if done else 0)


async def read_outcome(
    connection: asyncpg.Connection[asyncpg.Record],
    ids: Sequence[UUID],
    *,
    started_at: datetime,
    first_round: int,
    rounds: int,
    wall_s: float,
) -> Outcome:
    """Reads everything from the tables; call it when the workers have ended."""
    ids = list(ids)
    states = {state.value: 0 for state in JobState}
    states |= {row["state"]: row["count"] for row in await connection.fetch(BY_STATE, ids)}
    files = await connection.fetchrow(FILES, first_round)
    workers = await connection.fetchrow(WORKERS, started_at)
    return Outcome(
        jobs=states,
        steps={"run": await connection.fetchval(STEPS, ids), "replayed": workers["replayed"] if workers else 0},
        files=files["files"] if files else 0,
        bytes=files["bytes"] if files else 0,
        rounds=rounds,
        workers=workers["workers"] if workers else 0,
        wall_s=round(wall_s, 2),
        invariants={
            "lost": await connection.fetchval(LOST, ids),
            "running_without_worker": await connection.fetchval(RUNNING),
        },
    )
