"""Asks for a pass: the row of its job, by the declaration or by what the catalogue says of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ultijobs import _settings
from ultijobs._ids import new_id
from ultijobs._queue.driver import Driver
from ultijobs._queue.lanes import lane_of
from ultijobs._queue.records import Enqueued, NewJob
from ultijobs._queue.telling import CatalogEntry
from ultijobs._retry import RetryPolicy
from ultijobs._tracing import traceparent
from ultijobs.errors import BackfillApplied

if TYPE_CHECKING:
    from ultijobs._definitions.backfill import BackfillHandle
    from ultijobs._definitions.bounds import Limits

__all__ = ["Wanted", "applied", "ask"]


@dataclass(frozen=True, slots=True)
class Wanted:
    """What the job of a pass is made of."""

    name: str
    queue: str
    tenant: str
    attempts: int
    code_version: str | None
    by_tenant: bool = False
    """Whether each tenant's jobs of the queue wait in a lane of their own. Any lane is served."""

    @classmethod
    def of(cls, handle: BackfillHandle[Any], limits: Limits) -> Wanted:
        return cls(
            name=handle.name,
            queue=handle.queue,
            tenant=handle.tenant,
            attempts=handle.retry.attempts,
            code_version=_settings.load().code_version,
            by_tenant=limits.tells_tenants_apart(handle.queue),
        )

    @classmethod
    def declared(cls, entry: CatalogEntry) -> Wanted:
        """As a worker declared it; what cannot be read is as by default."""
        retry: Any = entry.declaration.get("retry")
        try:
            attempts = max(1, int(retry["attempts"]))
        except (KeyError, TypeError, ValueError):
            attempts = RetryPolicy().attempts
        return cls(
            name=entry.name,
            queue=entry.queue or "default",
            tenant=str(entry.declaration.get("tenant") or "none"),
            attempts=attempts,
            code_version=entry.code_version,
        )


async def ask(driver: Driver, wanted: Wanted, *, force: bool, actor: str | None = None) -> Enqueued:
    """Enqueues one pass; while one is live it is answered with that, `deduped`.

    The key is the name: there is one live pass of a backfill, whoever asks, and whatever tenant it was declared for by
    then. Raises `BackfillApplied` for one that has completed, unless it is forced. The pass looks again when it begins.
    """
    if not force:
        done = await driver.backfills.completed(wanted.name)
        if done is not None:
            raise applied(wanted.name, str(done.run_id))
    live = await driver.backfills.live(wanted.name)
    if live is not None:
        return live
    tenant = None if wanted.tenant == "none" else wanted.tenant
    job = NewJob(
        id=new_id(),
        name=wanted.name,
        input='{"force":true}' if force else '{"force":false}',
        queue=wanted.queue,
        idempotency_key=wanted.name,
        tenant_id=tenant,
        max_attempts=wanted.attempts,
        lane=lane_of(wanted.name, tenant, capped=False, by_tenant=wanted.by_tenant),
        enqueued_by=actor,
        traceparent=traceparent(),
        code_version=wanted.code_version,
    )
    return (await driver.enqueue([job]))[0]


def applied(name: str, run: str) -> BackfillApplied:
    return BackfillApplied(
        f"backfill {name} has completed in the run {run}",
        fix=f"ultijobs backfill {name} --write --force",
        meta={"name": name, "run_id": run},
    )
