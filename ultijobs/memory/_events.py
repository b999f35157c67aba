"""Events: published under the lock that everything takes, so that a run has either looked before or is woken."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Sequence
from datetime import UTC, datetime
from uuid import UUID

from ultijobs._queue.events import EventPage, EventRow, Look, NewEvent, Seen, Sight
from ultijobs._queue.steps import StepRecord, StepStatus
from ultijobs._queue.telling import SignalKind
from ultijobs.memory._enqueue import Transactions
from ultijobs.memory._rows import Row, StoredEvent
from ultijobs.memory._store import Store

__all__ = ["MemoryEvents", "deliver"]


class MemoryEvents:
    """`EventStore` of a store in memory."""

    __slots__ = ("_store", "_transactions")

    def __init__(self, store: Store, transactions: Transactions) -> None:
        self._store = store
        self._transactions = transactions

    async def publish(self, events: Sequence[NewEvent], *, tx: object | None = None) -> int:
        if tx is not None:
            stored = [_stored(event, self._store.now()) for event in events]
            self._transactions.at_commit(tx, lambda: deliver(self._store, stored))
            return 0
        with self._store.lock:
            now = self._store.now()
            return deliver(self._store, [_stored(event, now) for event in events])

    async def deliver(self) -> int:
        """Nothing to do: a commit delivers."""
        return 0

    async def look(self, looks: Sequence[Look]) -> list[Seen]:
        with self._store.lock:
            return [_look(self._store, look) for look in looks]

    async def page(
        self, *, name: str | None = None, key: str | None = None, after: UUID | None = None, limit: int = 100
    ) -> EventPage:
        with self._store.lock:
            rows = [event.row for event in self._store.events.values() if name is None or event.row.name == name]
            now = self._store.now()
        if name is not None and key is not None:
            rows = [row for row in rows if row.key == key]
        rows.sort(key=lambda row: row.id if name is None else (row.published_at, row.id), reverse=True)
        at = next((at + 1 for at, row in enumerate(rows) if row.id == after), len(rows)) if after is not None else 0
        page = rows[at : at + limit]
        return EventPage(page, page[-1].id if len(rows) > at + limit else None, now)


def _stored(event: NewEvent, now: datetime) -> StoredEvent:
    row = EventRow(event.id, event.name, event.key, now, now + event.ttl, event.published_by)
    return StoredEvent(row, event.payload)


def deliver(store: Store, events: Sequence[StoredEvent]) -> int:
    """Stores those that are new, makes the runs due that wait for them, and answers how many."""
    fresh = [event for event in events if event.row.id not in store.events]
    store.events |= {event.row.id: event for event in fresh}
    now = store.now()
    woken = 0
    for row in store.jobs.values():
        steps = store.steps.get(row.run_id, {}).values()
        if any(_concerns(event, step) for step in steps if step.status == StepStatus.WAITING for event in fresh):
            woken += _wake(store, row, now)
    return woken


def _concerns(event: StoredEvent, step: StepRecord) -> bool:
    return event.row.name == step.event and step.match in (None, event.row.key)


def _wake(store: Store, row: Row, now: datetime) -> bool:
    if row.state == "suspended" and row.run_at > now:
        row.run_at = now
        store.waiting.add(row)
        store.signals.send(SignalKind.QUEUE, row.queue)
        return True
    if row.state == "running" and row.woken != row.lease_no:
        row.woken = row.lease_no
        return True
    return False


def _look(store: Store, look: Look) -> Seen:
    row = store.jobs.get(look.job_id)
    step = store.steps.get(look.run_id, {}).get(look.step)
    if row is None or step is None or not row.holds(look.lease_no):
        return Seen(Sight.LOST)
    now = store.now()
    over = step.wake_at is not None and step.wake_at <= now
    if step.status == StepStatus.WAITING:
        event = _earliest(store, look, step, row.created_at if look.since_run else step.started_at, now)
        if event is not None:
            store.taken[look.run_id, look.step] = event.row.id
        if event is not None or (over and not look.required):
            output = "null" if event is None else _output(event)
            step = dataclasses.replace(step, status=StepStatus.COMPLETED.value, completed_at=now, output=output)
            store.steps[look.run_id][look.step] = step
    sight = Sight.OVER if over or step.status == StepStatus.COMPLETED else Sight.NOTHING
    if (look.run_id, look.step) in store.taken:
        sight = Sight.EVENT
    times = [step.wake_at, None if look.again is None else now + look.again]
    return Seen(sight, step.output, min((time for time in times if time is not None), default=None))


def _earliest(store: Store, look: Look, step: StepRecord, since: datetime, now: datetime) -> StoredEvent | None:
    known = store.steps[look.run_id].values()
    had = {store.taken.get((look.run_id, each.name)) for each in known if each.status == StepStatus.COMPLETED}
    fitting = (
        event
        for event in store.events.values()
        if _concerns(event, step)
        and since <= event.row.published_at
        and event.row.expires_at > now
        and event.row.id not in had
    )
    return min(fitting, key=lambda event: (event.row.published_at, event.row.id), default=None)


def _output(event: StoredEvent) -> str:
    row = event.row
    at = row.published_at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    about = {"id": str(row.id), "name": row.name, "key": row.key, "published_at": at}
    return f'{json.dumps(about)[:-1]}, "payload": {event.payload}}}'
