"""One pass of a relay: claim, publish, mark; what the queue refuses waits, and is set aside in the end."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Iterator, Sequence
from datetime import timedelta
from typing import Final
from uuid import UUID

from ultijobs._log import RateLimit, emit
from ultijobs._metrics import series
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.driver import Driver
from ultijobs._queue.outbox import OutboxStore, Published, Staged, StagedEvent, StagedJob, Unsent
from ultijobs._retry import RetryPolicy
from ultijobs._service.trouble import Trouble
from ultijobs._text import clip, storable
from ultijobs.errors import DriverUnavailable, SchemaOutdated

__all__ = ["TRIES", "Passing", "QueueAway"]

TRIES: Final = 8
PAUSES: Final = RetryPolicy(attempts=TRIES, backoff="exponential", delay="1s", max_delay="30s", jitter=False)
"""Between the tries of one row that the queue refuses."""

_ERROR_BYTES: Final = 10_000
_RELEASE_WITHIN: Final = 2.0


class QueueAway(Exception):
    """The queue does not answer; that is told already."""


class Passing:
    """Publishes for one relay. A row that is published twice is one job or one event: its id is theirs.

    A queue that is away costs no row a try: the claims go back and the pass raises. Ended early by a cancellation, it
    gives back what it has not published.
    """

    def __init__(
        self,
        outbox: OutboxStore,
        queue: Driver,
        *,
        relay_id: str,
        batch: int,
        lease: timedelta,
        trouble: Trouble,
        metrics: Metrics,
    ) -> None:
        """`trouble` is told of the queue; what the outbox answers is the caller's to judge."""
        self._outbox: Final = outbox
        self._queue: Final = queue
        self._relay_id: Final = relay_id
        self._batch: Final = batch
        self._lease: Final = lease
        self._trouble: Final = trouble
        self._metrics: Final = metrics
        for each in (series.OUTBOX_PUBLISHED, series.OUTBOX_REFUSED):
            metrics.add(each, by=0)
        self._said: Final = RateLimit(1.0)

    async def once(self) -> bool:
        """True when there may be more to publish at once.

        Raises `QueueAway` when the queue does not answer, `DriverUnavailable` when the outbox does not.
        """
        rows = await self._outbox.claim(self._relay_id, limit=self._batch, lease=self._lease)
        if not rows:
            return False
        held = {row.id: row for row in rows}
        refused: set[str] = set()
        try:
            for turn in _in_turns(rows):
                await self._publish([row for row in turn if row.tx not in refused], held, refused)
        finally:
            if held:
                await self._give_back(list(held.values()))
        return len(rows) >= self._batch

    async def _publish(self, rows: Sequence[Staged], held: dict[UUID, Staged], refused: set[str]) -> None:
        """All at once, or one by one when one of them is refused; notes the transactions of those that are."""
        if not rows:
            return
        try:
            sent = await self._send(rows)
        except (QueueAway, SchemaOutdated):
            raise
        except Exception:  # noqa: BLE001 - one of them is refused; alone, each says for itself whether it is the one
            await self._one_by_one(rows, held, refused)
        else:
            await self._mark(sent, held)

    async def _one_by_one(self, rows: Sequence[Staged], held: dict[UUID, Staged], refused: set[str]) -> None:
        sent: list[Published] = []
        why: list[tuple[Staged, Exception]] = []
        try:
            for row in rows:
                if row.tx in refused:
                    continue
                try:
                    sent += await self._send([row])
                except (QueueAway, SchemaOutdated):
                    raise
                except Exception as error:  # noqa: BLE001 - whatever the queue has against this row, the others go on
                    refused.add(row.tx)
                    why.append((row, error))
        finally:
            await self._mark(sent, held)
        for row, reason in why:
            await self._refused(row, reason, held)

    async def _send(self, rows: Sequence[Staged]) -> list[Published]:
        """Rows of one kind, into the queue."""
        jobs = [row for row in rows if isinstance(row, StagedJob)]
        events = [row for row in rows if isinstance(row, StagedEvent)]
        try:
            answers = await self._queue.enqueue([row.job for row in jobs], again=True) if jobs else []
            woken = await self._queue.events.publish([row.event for row in events]) if events else 0
        except DriverUnavailable as error:
            self._trouble.failed("jobs.outbox.tick-failed", "publishing into the queue", error)
            raise QueueAway from error
        self._trouble.answered()
        self._metrics.add(series.EVENTS_PUBLISHED, by=len(events))
        self._metrics.add(series.EVENTS_DELIVERED, by=woken)
        sent = [Published(row.id, row.claim_no, answer.id) for row, answer in zip(jobs, answers, strict=True)]
        return sent + [Published(row.id, row.claim_no, None) for row in events]

    async def _mark(self, told: Sequence[Published], held: dict[UUID, Staged]) -> None:
        if not told:
            return
        marked = set(await self._outbox.mark(told))
        self._metrics.add(series.OUTBOX_PUBLISHED, by=len(marked))
        lost = [row.id for row in told if row.id not in marked]
        for row in told:
            held.pop(row.id, None)
        if lost:
            emit(
                logging.WARNING,
                "jobs.outbox.claim-lost",
                f"the claim of {len(lost)} rows lapsed before they were marked; they are published once all the same",
                worker_id=self._relay_id,
                outbox_id=lost[0],
            )

    async def _refused(self, row: Staged, error: Exception, held: dict[UUID, Staged]) -> None:
        self._metrics.add(series.OUTBOX_REFUSED)
        tries = row.attempts + 1
        text = clip(storable(f"{type(error).__qualname__}: {error}"), _ERROR_BYTES)
        retry_in = None if tries >= TRIES else PAUSES.delay_for(tries)
        aside = await self._outbox.fail([Unsent(row.id, row.claim_no, text, retry_in)])
        held.pop(row.id, None)
        for also in aside:
            held.pop(also, None)
        code = getattr(error, "code", None)
        if aside:
            emit(
                logging.ERROR,
                "jobs.outbox.set-aside",
                f"{row.name} was refused {tries} times and is set aside, with {len(aside) - 1} later rows of its "
                f"transaction: {error}; ultijobs outbox retry {row.id}",
                name=row.name,
                worker_id=self._relay_id,
                outbox_id=row.id,
                code=code,
            )
        elif self._said.admit("publish-failed") is not None:
            emit(
                logging.WARNING,
                "jobs.outbox.publish-failed",
                f"{row.name} was refused, try {tries} of {TRIES}: {error}",
                name=row.name,
                worker_id=self._relay_id,
                outbox_id=row.id,
                code=code,
            )

    async def _give_back(self, rows: Sequence[Staged]) -> None:
        # The lease does the same, later.
        with contextlib.suppress(DriverUnavailable, TimeoutError):
            async with asyncio.timeout(_RELEASE_WITHIN):
                await self._outbox.release(rows)


def _in_turns(rows: Sequence[Staged]) -> Iterator[list[Staged]]:
    """Rows of one kind at a time, as few turns as keep the order within each transaction."""
    turn_of: dict[str, int] = {}
    turns: list[list[Staged]] = []
    for row in rows:
        # Jobs go in the even turns, events in the odd ones.
        turn = turn_of.get(row.tx, 0)
        turn += turn % 2 != isinstance(row, StagedEvent)
        turn_of[row.tx] = turn
        turns += [[] for _ in range(turn + 1 - len(turns))]
        turns[turn].append(row)
    yield from filter(None, turns)
