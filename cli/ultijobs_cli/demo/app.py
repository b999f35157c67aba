"""The demo's composition root: `ultijobs worker --app ultijobs_cli.demo.app:app`."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from ultijobs import App
from ultijobs_cli.demo import audit, closing, incidents, labels, rescans

__all__ = ["CREATE_REPORTS", "AuditServices", "app", "services"]

CREATE_REPORTS = """
create table if not exists audit_reports (
  distribution text        not null,
  round        int         not null,
  version      text        not null,
  files        int         not null,
  bytes        bigint      not null,
  unlisted     int         not null,
  audited_at   timestamptz not null default now(),
  primary key (distribution, round)
)
"""

STORE_REPORT = """
insert into audit_reports (distribution, round, version, files, bytes, unlisted) values ($1, $2, $3, $4, $5, $6)
on conflict (distribution, round) do update
   set version = excluded.version, files = excluded.files, bytes = excluded.bytes, unlisted = excluded.unlisted
"""

READ_AUDITED = "select distribution, version, max(round) as round from audit_reports group by 1, 2"


REPORTED = """
select count(*) as distributions, sum(files)::bigint as files, sum(bytes)::bigint as bytes
  from audit_reports where round = $1
"""

LABEL_FILES = """
update audit_files f set kind = l.kind from unnest($1::bigint[], $2::text[]) l(id, kind) where f.id = l.id
"""

CLOSE_ROUND = """
insert into audit_rounds (round, distributions, closed_at) values ($1, $2, now())
on conflict (round) do update set closed_at = excluded.closed_at
"""


@dataclass(frozen=True)
class AuditServices:
    """The application's own connections, made once per process."""

    pool: asyncpg.Pool[asyncpg.Record]

    async def store(self, report: audit.Report, of: int) -> None:
        """Writes report and files; once more is the same rows again. The last of a round publishes that it is."""
        files = [path for path, _ in audit.parse_record(report.distribution).files]
        await self.pool.execute(labels.STORE_FILES, report.distribution, files)
        async with self.pool.acquire() as connection, connection.transaction():
            # One after the other: whoever comes last sees the reports of all others.
            await connection.execute("select pg_advisory_xact_lock(hashtext('audit_reports'), $1)", report.round)
            await connection.execute(
                STORE_REPORT,
                report.distribution,
                report.round,
                report.version,
                report.files,
                report.bytes,
                report.unlisted,
            )
            reported = await connection.fetchrow(REPORTED, report.round)
            if reported is not None and reported["distributions"] == of:
                totals = closing.Totals(round=report.round, **reported)
                await app.publish(closing.AUDITED, totals, key=str(report.round), tx=connection)

    async def label(self, kinds: Mapping[int, str]) -> None:
        """Writes what each of these files is."""
        await self.pool.execute(LABEL_FILES, list(kinds), list(kinds.values()))

    async def close(self, totals: closing.Totals) -> None:
        """Writes down when the round ended; once more is the same row again."""
        await self.pool.execute(CLOSE_ROUND, totals.round, totals.distributions)

    async def audited(self) -> rescans.Audited:
        """What has a report, whoever asked for it."""
        rows = await self.pool.fetch(READ_AUDITED)
        return rescans.Audited(
            round=max((row["round"] for row in rows), default=1),
            versions={(row["distribution"], row["version"]) for row in rows},
        )


@asynccontextmanager
async def services() -> AsyncGenerator[AuditServices]:
    """Opens the application's pool on the database that the queue lives in."""
    named = {"application_name": "ultijobs-demo"}
    async with asyncpg.create_pool(database_url(), min_size=1, max_size=4, server_settings=named) as pool:
        yield AuditServices(pool)


def database_url() -> str:
    return os.environ["ULTIJOBS_DATABASE_URL"]


app = App(
    jobs=[audit, closing, incidents, labels, rescans],
    tasks=[rescans],
    lifespan=services,
    limits=incidents.LIMITS,
    classify={json.JSONDecodeError: "terminal"},
)
