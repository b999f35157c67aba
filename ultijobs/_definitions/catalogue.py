"""Declarations as the catalogue stores them: what operators know of an application without its code."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Any

from ultijobs._definitions.backfill import BackfillHandle
from ultijobs._definitions.bounds import Limits
from ultijobs._definitions.handle import JobHandle
from ultijobs._definitions.registry import Registry
from ultijobs._definitions.task import TaskHandle
from ultijobs._durations import milliseconds
from ultijobs._queue.retention import Windows
from ultijobs._queue.telling import CatalogEntry
from ultijobs._retention.declared import declared
from ultijobs._retry import RetryPolicy

__all__ = ["catalogue", "declaration_of", "limits_of"]


def catalogue(
    registry: Registry,
    *,
    redact: Sequence[str],
    retention: Windows,
    limits: Limits,
    code_version: str | None,
    environment: str | None,
) -> list[CatalogEntry]:
    """One entry per job, task and backfill."""
    common = {"redact": list(redact), "retention": declared(retention), "limits": limits_of(limits)}

    def entry(kind: str, name: str, queue: str | None, declaration: dict[str, Any]) -> CatalogEntry:
        return CatalogEntry(kind, name, queue, {**declaration, **common}, code_version, environment)

    def entries() -> Iterator[CatalogEntry]:
        for job in registry.jobs.values():
            yield entry(job.kind, job.name, job.queue, declaration_of(job))
        for task in registry.tasks.values():
            yield entry(task.kind, task.name, None, declaration_of(task))
        for backfill in registry.backfills.values():
            yield entry(backfill.kind, backfill.name, backfill.queue, declaration_of(backfill))

    return list(entries())


def declaration_of(handle: JobHandle[Any] | BackfillHandle[Any] | TaskHandle) -> dict[str, Any]:
    """What a declaration says beside its name and queue; durations in milliseconds."""
    if isinstance(handle, JobHandle):
        return _job(handle)
    return _task(handle) if isinstance(handle, TaskHandle) else _backfill(handle)


def limits_of(limits: Limits) -> dict[str, Any]:
    """What an application's limits say; durations in milliseconds."""
    rate = limits.tenant_rate
    return {
        "per_process": limits.per_process,
        "per_queue": dict(sorted(limits.per_queue.items())),
        "per_tenant": limits.per_tenant,
        "tenant_rate": None if rate is None else {"count": rate.count, "per_ms": milliseconds(rate.per)},
        "fair": sorted(limits.fair),
    }


def _job(handle: JobHandle[Any]) -> dict[str, Any]:
    return {
        "priority": handle.priority,
        "retry": _retry(handle.retry),
        "timeout_ms": _ms(handle.timeout),
        "step_timeout_ms": _ms(handle.step_timeout),
        "event_poll_ms": _ms(handle.event_poll),
        "concurrency": handle.concurrency,
        "unique": handle.unique.value,
        "tenant": "none" if handle.tenant == "none" else "by input",
    }


def _task(handle: TaskHandle) -> dict[str, Any]:
    return {
        "cron": handle.cron,
        "tz": handle.tz,
        "catch_up": handle.catch_up,
        "max_catch_up": handle.max_catch_up,
    }


def _backfill(handle: BackfillHandle[Any]) -> dict[str, Any]:
    return {
        "retry": _retry(handle.retry),
        "timeout_ms": _ms(handle.timeout),
        "batch": handle.batch,
        "rate": handle.rate,
        "requires": handle.requires,
        "environments": list(handle.environments),
        "tenant": handle.tenant,
        "counts": handle.count is not None,
        "checksum": handle.checksum,
    }


def _retry(policy: RetryPolicy) -> dict[str, Any]:
    return {
        "attempts": policy.attempts,
        "backoff": policy.backoff,
        "delay_ms": milliseconds(policy.delay),
        "max_delay_ms": milliseconds(policy.max_delay),
        "jitter": policy.jitter,
        "dead_letter": policy.dead_letter,
    }


def _ms(duration: timedelta | None) -> int | None:
    return None if duration is None else milliseconds(duration)
