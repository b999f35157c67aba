"""The demo's composition root: `ultijobs worker --app ultijobs_cli.demo.app:app`."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass

import asyncpg

from ultijobs import App
from ultijobs_cli.demo import audit, incidents

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


@dataclass(frozen=True)
class AuditServices:
    """The application's own connections, made once per process."""

    pool: asyncpg.Pool[asyncpg.Record]

    async def store(self, report: audit.Report) -> None:
        """Writes the report; once more is the same row again."""
        await self.pool.execute(
            STORE_REPORT,
            report.distribution,
            report.round,
            report.version,
            report.files,
            report.bytes,
            report.unlisted,
        )


@asynccontextmanager
async def services() -> AsyncGenerator[AuditServices]:
    """Opens the application's pool on the database that the queue lives in."""
    async with asyncpg.create_pool(database_url(), min_size=1, max_size=4) as pool:
        yield AuditServices(pool)


def database_url() -> str:
    return os.environ["ULTIJOBS_DATABASE_URL"]


app = App(jobs=[audit, incidents], lifespan=services, classify={json.JSONDecodeError: "terminal"})
