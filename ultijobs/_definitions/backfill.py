"""`@backfill`: declares a pass over existing rows that completes once per environment."""

from __future__ import annotations

import sys
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cached_property
from typing import Any, ClassVar, Generic, Literal, TypeAlias, TypeVar

from ultijobs._definitions import checks, handlers
from ultijobs._definitions.ambient import application_of
from ultijobs._definitions.checksum import checksum
from ultijobs._definitions.source import BatchSource
from ultijobs._durations import Duration
from ultijobs._queue.records import Enqueued
from ultijobs._retry import RetryPolicy
from ultijobs.errors import Invariant, JobTenantRequired

__all__ = ["BackfillHandle", "backfill"]

Row = TypeVar("Row")

Handle: TypeAlias = Callable[[Sequence[Row], Any], Awaitable[None]]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BackfillHandle(Generic[Row]):
    """What `@backfill` makes of a function. `fn` is the function."""

    kind: ClassVar[str] = "backfill"

    fn: Handle[Row]
    name: str
    source: BatchSource[Row]
    tenant: str
    count: Callable[[], int | Awaitable[int]] | None
    batch: int
    rate: float
    requires: str | None
    environments: tuple[str, ...]
    queue: str
    retry: RetryPolicy
    timeout: timedelta | None

    def __repr__(self) -> str:
        return f"<backfill {self.name}>"

    @cached_property
    def checksum(self) -> str:
        """Of what is read and what is done with it; a pass of another one is told apart in the ledger."""
        return checksum(self.source.text, self.fn)

    async def enqueue(self, force: bool = False) -> Enqueued:
        """Asks for one pass, in a transaction of its own; while one is live, that one answers with `deduped`.

        Raises `BackfillApplied` when a pass has completed, unless `force` asks for another one over all rows.
        """
        return await application_of(self, f"backfill {self.name}").enqueue_backfill(self, force=force)


def backfill(
    source: BatchSource[Row],
    /,
    *,
    tenant: str | Literal["none"],  # noqa: PYI051 - the word has a meaning of its own
    count: Callable[[], int | Awaitable[int]] | None = None,
    batch: int = 1_000,
    rate: float = 5.0,
    requires: str | None = None,
    environments: Collection[str] = (),
    queue: str = "default",
    retry: RetryPolicy | None = None,
    timeout: Duration | None = None,
    name: str | None = None,
) -> Callable[[Handle[Row]], BackfillHandle[Row]]:
    """Declares `async def handle(rows, ctx)`, called for each page of `source`, as a backfill.

    A page is marked once it is handled. A pass that is cut off goes on at the page that was under way, so one page may
    be handled twice, and none is left out. There is one live pass of a name, and once one has completed no other runs
    unless it is forced.

    Args:
        source: The rows.
        tenant: Whose rows they are, or `"none"` for a pass over all tenants.
        count: How many rows remain, sync or async; must answer 0 at the end, when no more rows come.
        batch: Rows a page; a source of pages decides itself.
        rate: Pages a second at the most.
        requires: The migration that must be applied first: a revision of Alembic, or `app.0042_name` of Django.
        environments: Where it belongs, by `ULTIJOBS_ENV`; empty means everywhere.
        queue: Where workers look for it.
        retry: How often and when a failed pass goes on, at the page that failed.
        timeout: Of one attempt.
        name: The durable name, else the function's own.

    """

    def declare(fn: Handle[Row], /) -> BackfillHandle[Row]:
        given: Any = fn
        named = checks.durable_name(name, given, "backfill: name")
        what = f"backfill {named}"
        if not callable(given) or not handlers.is_async(given):
            raise Invariant(f"{what}: {given!r:.100} is no async function", fix="write `async def handle(rows, ctx)`")
        if not handlers.takes_positions(given, 2):
            raise Invariant(f"{what}: its function cannot be called with rows and ctx", fix="take (rows, ctx)")
        return BackfillHandle(
            fn=fn,
            name=named,
            source=_source(source, what),
            tenant=_tenant(tenant, what),
            count=_count(count, what),
            batch=checks.whole(batch, f"{what}: batch", least=1, most=1_000_000),
            rate=_rate(rate, what),
            requires=None if requires is None else checks.name(requires, f"{what}: requires"),
            environments=_environments(environments, what),
            queue=checks.name(queue, f"{what}: queue"),
            retry=_retry(retry, what),
            timeout=checks.optional_span(timeout, f"{what}: timeout"),
        )

    return declare


def _source(source: Any, what: str) -> Any:
    if not isinstance(source, BatchSource):
        raise Invariant(f"{what}: source is {source!r:.100}", fix="pass BatchSource.table(…), .select(…) or .pages(…)")
    return source  # pyright: ignore[reportUnknownVariableType] - of whatever rows the caller declared


def _tenant(tenant: Any, what: str) -> str:
    if tenant is None:
        raise JobTenantRequired(f"{what} declares no tenant", fix='add tenant="…", or tenant="none"')
    if not isinstance(tenant, str) or not tenant:
        raise Invariant(f"{what}: tenant is {tenant!r:.100}", fix='set tenant= to a text, or to "none"')
    return tenant


def _count(count: Any, what: str) -> Any:
    if count is not None and not callable(count):
        raise Invariant(f"{what}: count is {count!r:.100}", fix="set count= to a function without arguments")
    return count


def _rate(rate: Any, what: str) -> float:
    # Compared, not converted: an int beyond float's range is no rate either.
    if isinstance(rate, bool) or not isinstance(rate, int | float) or not 0 < rate <= sys.float_info.max:
        raise Invariant(f"{what}: rate is {rate!r:.100}", fix="set rate= to pages per second, more than zero")
    return float(rate)


def _environments(environments: Any, what: str) -> tuple[str, ...]:
    field = f"{what}: environments"
    return tuple(checks.name(each, field) for each in checks.several(environments, field))


def _retry(retry: Any, what: str) -> RetryPolicy:
    if retry is None:
        return RetryPolicy()
    if not isinstance(retry, RetryPolicy):
        raise Invariant(f"{what}: retry is {retry!r:.100}", fix="set retry=RetryPolicy(attempts=…)")
    return retry
