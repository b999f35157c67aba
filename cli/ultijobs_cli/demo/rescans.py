"""Each minute: looks which distributions were installed or replaced since their last audit, and audits those."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Protocol

from pydantic import BaseModel

from ultijobs import Context, Request, Step, job, task
from ultijobs_cli.demo.audit import Audit, audit_distribution, installed

__all__ = ["Audited", "Rescan", "rescan", "rescan_each_minute"]


class Audited(BaseModel):
    """The last round of audits, and every version that has a report."""

    round: int
    versions: set[tuple[str, str]]


class Services(Protocol):
    """What a rescan needs of its process."""

    async def audited(self) -> Audited: ...


class Rescan(BaseModel):
    minute: datetime


def missing(known: Audited, there: Iterable[tuple[str, str]]) -> list[str]:
    return sorted(name for name, version in there if (name, version) not in known.versions)


@job(
    Rescan,
    idempotency_key=lambda scan: scan.minute.isoformat(),
    tenant="none",
    queue="audit",
    timeout="1m",
    concurrency=1,
)
async def rescan(input: Rescan, step: Step, ctx: Context[Services]) -> None:
    """Asks for the audits that are missing, one look at a time; an audit that waits or runs is not asked for twice."""
    known = await ctx.services.audited()
    there = await step.run("look", installed)
    names = missing(known, there.items())
    audits = [Audit(distribution=name, round=max(1, known.round), of=len(there)) for name in names]
    await audit_distribution.enqueue_many(audits)
    ctx.progress(len(names), message=f"{len(names)} to audit, as of {input.minute:%H:%M}")


@task(cron="* * * * *", tz="UTC")
def rescan_each_minute(occurrence: datetime) -> list[Request[Rescan]]:
    """Skips the minutes in which no worker was up: the next look sees what they missed."""
    return [rescan.request(Rescan(minute=occurrence))]
