"""One row to insert, from a handle, an input and the options of the call."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, Final, TypeVar, get_args

from ultijobs._definitions import checks
from ultijobs._definitions.actor import Actor
from ultijobs._definitions.bounds import Limits
from ultijobs._definitions.handle import JobHandle, Request
from ultijobs._definitions.options import OnConflict
from ultijobs._durations import Duration, parse
from ultijobs._enqueue.payload import stored
from ultijobs._ids import new_id
from ultijobs._json import refuse_unstorable
from ultijobs._queue.lanes import lane_of
from ultijobs._queue.records import NewJob
from ultijobs._retry import MOST_ATTEMPTS
from ultijobs._tracing import traceparent
from ultijobs.errors import Invariant, TenantMismatch

__all__ = ["Wishes", "row", "wishes"]

In = TypeVar("In")

# Together with the name they are one index entry, which has to fit in a third of a page.
_LONGEST_KEY: Final = 1_500
_LONGEST_TENANT: Final = 500


@dataclass(frozen=True, slots=True)
class Wishes:
    """The options of one call, checked."""

    delay: timedelta | None
    run_at: datetime | None
    priority: int | None
    max_attempts: int | None
    raise_on_conflict: bool
    actor: Actor | None


def wishes(what: str, options: Mapping[str, Any]) -> Wishes:
    """Raises `TypeError` for an option that does not exist and `Invariant` for one that makes no sense."""
    unknown = options.keys() - _OPTIONS
    if unknown:
        raise TypeError(f"enqueue takes no option {min(unknown)!r}; it takes {', '.join(sorted(_OPTIONS))}")
    conflict = options.get("on_conflict", "dedupe")
    actor = options.get("actor")
    if actor is not None and not isinstance(actor, Actor):
        raise Invariant(f"{what}: actor is {actor!r:.100}", fix='pass actor=Actor("user:7")')
    delay, run_at = _when(options.get("delay"), options.get("run_at"), what)
    return Wishes(
        delay=delay,
        run_at=run_at,
        priority=_priority(options.get("priority"), what),
        max_attempts=_max_attempts(options.get("max_attempts"), what),
        raise_on_conflict=checks.choice(conflict, f"{what}: on_conflict", get_args(OnConflict)) == "error",
        actor=actor,
    )


def row(
    handle: JobHandle[In],
    item: In | Request[In],
    asked: Wishes,
    *,
    limit: int,
    limits: Limits,
    code_version: str | None,
) -> NewJob:
    """The row for one input; what a `Request` says for itself wins over what was asked for the whole call."""
    what = f"job {handle.name}"
    value: Any = item
    delay, run_at, priority, max_attempts = asked.delay, asked.run_at, asked.priority, asked.max_attempts
    if isinstance(item, Request):
        request: Request[In] = item  # pyright: ignore[reportUnknownVariableType] - an In is no Request
        if request.handle is not handle:
            raise Invariant(f"{what} is given a request for {request.handle!r}", fix="enqueue it with its own handle")
        value = request.input
        if request.delay is not None or request.run_at is not None:
            delay, run_at = _when(request.delay, request.run_at, what)
        priority = priority if request.priority is None else _priority(request.priority, what)
        max_attempts = max_attempts if request.max_attempts is None else _max_attempts(request.max_attempts, what)
    text, value = stored(handle, value, limit=limit)
    tenant = None if handle.tenant == "none" else _derived(handle.tenant, value, what, "tenant", _LONGEST_TENANT)
    actor = asked.actor
    if actor is not None and None not in (tenant, actor.tenant) and actor.tenant != tenant:
        raise TenantMismatch(f"{what} belongs to tenant {tenant!r}, the actor {actor.id!r} to {actor.tenant!r}")
    return NewJob(
        id=new_id(),
        name=handle.name,
        input=text,
        queue=handle.queue,
        idempotency_key=_derived(handle.idempotency_key, value, what, "idempotency_key", _LONGEST_KEY),
        tenant_id=tenant,
        max_attempts=handle.retry.attempts if max_attempts is None else max_attempts,
        priority=handle.priority if priority is None else priority,
        lane=lane_of(
            handle.name,
            tenant,
            capped=handle.concurrency is not None,
            by_tenant=limits.tells_tenants_apart(handle.queue),
        ),
        unique=handle.unique,
        delay=delay,
        run_at=run_at,
        enqueued_by=None if actor is None else actor.id,
        traceparent=traceparent(),
        code_version=code_version,
    )


_OPTIONS: Final = frozenset({"delay", "run_at", "priority", "max_attempts", "on_conflict", "actor", "tx"})


def _when(delay: Duration | None, run_at: Any, what: str) -> tuple[timedelta | None, datetime | None]:
    if delay is not None and run_at is not None:
        raise Invariant(f"{what}: delay and run_at exclude each other", fix="pass one of delay= and run_at=")
    if run_at is not None and (not isinstance(run_at, datetime) or run_at.utcoffset() is None):
        raise Invariant(
            f"{what}: run_at is {run_at!r:.100}, no aware datetime", fix="pass run_at=datetime(…, tzinfo=ZoneInfo(…))"
        )
    return None if delay is None else parse(delay, what=f"{what}: delay"), run_at


def _priority(value: Any, what: str) -> int | None:
    if value is None:
        return None
    return checks.whole(value, f"{what}: priority", least=-checks.MOST_PRIORITY, most=checks.MOST_PRIORITY)


def _max_attempts(value: Any, what: str) -> int | None:
    return None if value is None else checks.whole(value, f"{what}: max_attempts", least=1, most=MOST_ATTEMPTS)


def _derived(function: Callable[[In], Any], value: In, what: str, field: str, most: int) -> str:
    try:
        answer = function(value)
    except Exception as error:
        raise Invariant(
            f"{what}: {field} raised {type(error).__qualname__}: {error}",
            fix=f"correct the function that {field}= declares",
        ) from error
    if not isinstance(answer, str) or not answer:
        raise Invariant(
            f"{what}: {field} answered {answer!r:.100}; it must be a text that is not empty",
            fix=f"correct the function that {field}= declares",
        )
    refuse_unstorable(answer, what=field)
    if len(answer.encode()) > most:
        raise Invariant(
            f"{what}: {field} answered {len(answer.encode())} bytes, more than {most}", fix="use a digest of it"
        )
    return answer
