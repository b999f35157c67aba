"""How a round begins: its own row and its audits are one transaction of SQLAlchemy, where that is installed."""

from __future__ import annotations

from importlib.util import find_spec

from ultijobs import App
from ultijobs._queue.records import Enqueued
from ultijobs_cli.demo.audit import Audit, audit_distribution
from ultijobs_cli.demo.closing import Round, close_round

__all__ = ["CREATE_ROUNDS", "begin"]

CREATE_ROUNDS = """
create table if not exists audit_rounds (
  round         int         primary key,
  distributions int         not null,
  begun_at      timestamptz not null default now(),
  closed_at     timestamptz
)
"""

WRITE_ROUND = """
insert into audit_rounds (round, distributions) values (:round, :distributions)
on conflict (round) do update set distributions = excluded.distributions, begun_at = now(), closed_at = null
"""


async def begin(app: App[None], url: str, number: int, names: list[str]) -> list[Enqueued]:
    """Enqueues one audit of each distribution, and the job that waits for the last of them.

    With SQLAlchemy the round is written down with them, or nothing is.
    """
    audits = [Audit(distribution=name, round=number, of=len(names)) for name in names]
    closing = Round(round=number)
    if find_spec("sqlalchemy") is None or find_spec("greenlet") is None:
        return [await app.enqueue(close_round, closing), *await app.enqueue_many(audit_distribution, audits)]
    from sqlalchemy import text  # noqa: PLC0415 - optional
    from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine  # noqa: PLC0415 - as above

    engine = create_async_engine(url.replace("postgresql://", "postgresql+asyncpg://", 1))
    try:
        async with AsyncSession(engine) as session, session.begin():
            await session.execute(text(WRITE_ROUND), {"round": number, "distributions": len(names)})
            last = await app.enqueue(close_round, closing, tx=session)
            return [last, *await app.enqueue_many(audit_distribution, audits, tx=session)]
    finally:
        await engine.dispose()
