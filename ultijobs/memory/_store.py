"""What a queue in memory consists of: the rows as Postgres has them, one lock, one clock."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from uuid import UUID

from ultijobs._clock import Clock
from ultijobs._ids import new_id
from ultijobs._queue.activity import ActivityRow
from ultijobs._queue.lanes import Turns, capped_name
from ultijobs._queue.records import JobState, Outcome
from ultijobs._queue.steps import AttemptRecord, StepRecord
from ultijobs._queue.telling import CatalogEntry, SignalKind
from ultijobs.memory._rows import Found, Key, Pause, Row, StoredEvent, Worker, gone
from ultijobs.memory._signals import Signals
from ultijobs.memory._slots import Slots
from ultijobs.memory._waiting import Waiting

__all__ = ["Store"]


@dataclass(slots=True)
class Store:
    """The tables. Every reader and writer holds `lock`; nothing awaits while holding it."""

    clock: Clock
    lock: threading.RLock = field(default_factory=threading.RLock)
    identity: str = field(default_factory=lambda: str(new_id()))
    jobs: dict[UUID, Row] = field(default_factory=dict[UUID, Row])
    """What is live, dead or failed."""
    done: dict[UUID, Row] = field(default_factory=dict[UUID, Row])
    """What is done or cancelled."""
    by_key: dict[Key, set[UUID]] = field(default_factory=dict[Key, set[UUID]])
    """Rows of `jobs` by key, whatever their state."""
    followers: dict[UUID, set[UUID]] = field(default_factory=dict[UUID, set[UUID]])
    """Who waits behind a row for its end."""
    steps: dict[UUID, dict[str, StepRecord]] = field(default_factory=dict[UUID, dict[str, StepRecord]])
    events: dict[UUID, StoredEvent] = field(default_factory=dict[UUID, StoredEvent])
    taken: dict[tuple[UUID, str], UUID] = field(default_factory=dict[tuple[UUID, str], UUID])
    """By run and step, the event that completed it."""
    attempts: dict[UUID, dict[int, AttemptRecord]] = field(default_factory=dict[UUID, dict[int, AttemptRecord]])
    pauses: dict[str, Pause] = field(default_factory=dict[str, Pause])
    workers: dict[UUID, Worker] = field(default_factory=dict[UUID, Worker])
    catalog: dict[tuple[str, str], CatalogEntry] = field(default_factory=dict[tuple[str, str], CatalogEntry])
    activity: dict[UUID, ActivityRow] = field(default_factory=dict[UUID, ActivityRow])
    found: dict[UUID, Found] = field(default_factory=dict[UUID, Found])
    """By job, what the last act on it found."""
    lease_no: int = 0
    signals: Signals = field(default_factory=Signals)
    slots: Slots = field(default_factory=Slots)
    turns: Turns = field(default_factory=Turns)
    waiting: Waiting = field(init=False)
    """Those of `jobs` that can be claimed, now or later."""

    def __post_init__(self) -> None:
        self.waiting = Waiting(self.jobs)

    def now(self) -> datetime:
        return self.clock.now()

    def next_lease_no(self) -> int:
        self.lease_no += 1
        return self.lease_no

    # -- rows ------------------------------------------------------------------------------------------
    def put(self, row: Row) -> None:
        """Files a row among those that live or have stopped."""
        self.done.pop(row.id, None)
        self.jobs[row.id] = row
        if row.key is not None:
            self.by_key.setdefault(row.key, set()).add(row.id)
        if row.behind is not None:
            self.followers.setdefault(row.behind, set()).add(row.id)
        self.waiting.add(row)

    def finish(self, row: Row, state: JobState, now: datetime) -> None:
        """Ends a row for good: `done` and `cancelled` move to history, `dead` and `failed` stay where they are."""
        row.state = state.value
        row.finished_at = now
        row.updated_at = now
        row.behind = None
        row.release()
        self.slot_freed(row)
        if state in {JobState.DONE, JobState.CANCELLED}:
            self.shelve(row)
        self.free_twins(row.id, now)

    def shelve(self, row: Row) -> None:
        """Files a row among what is history."""
        self.jobs.pop(row.id, None)
        self.done[row.id] = row
        if row.key is not None and row.id in self.by_key.get(row.key, ()):
            self.by_key[row.key].discard(row.id)
            if not self.by_key[row.key]:
                del self.by_key[row.key]

    def forget(self, row: Row) -> None:
        """Removes an ended row with the steps and attempts of its run."""
        self.jobs.pop(row.id, None)
        self.done.pop(row.id, None)
        if row.key is not None and row.id in self.by_key.get(row.key, ()):
            self.by_key[row.key].discard(row.id)
            if not self.by_key[row.key]:
                del self.by_key[row.key]
        for name in self.steps.pop(row.run_id, {}):
            self.taken.pop((row.run_id, name), None)
        self.attempts.pop(row.run_id, None)

    def slot_freed(self, row: Row) -> None:
        """Tells whoever waits for the slot that a claim of `row` held."""
        if capped_name(row.lane) is not None:
            self.signals.send(SignalKind.QUEUE, row.queue)

    def free_twins(self, ended: UUID, now: datetime) -> None:
        """Lets those be claimed that waited for `ended`."""
        for follower in self.followers.pop(ended, ()):
            row = self.jobs.get(follower)
            if row is not None and row.behind == ended:
                row.behind = None
                row.run_at = max(row.run_at, now)
                row.updated_at = now
                self.waiting.add(row)
                self.signals.send(SignalKind.QUEUE, row.queue)

    def find(self, id: UUID) -> Row | None:
        return self.jobs.get(id) or self.done.get(id)

    def rows(self) -> Iterator[Row]:
        yield from self.jobs.values()
        yield from self.done.values()

    def live_twins(self, key: Key, besides: UUID | None = None) -> list[Row]:
        """Live rows of a key, oldest id first."""
        return sorted(
            (row for twin in self.by_key.get(key, ()) if twin != besides and (row := self.jobs[twin]).live),
            key=lambda row: row.id,
        )

    def twin_in_the_way(self, row: Row) -> Row | None:
        """The live row that keeps `row`, which is not live, from being so again."""
        if row.key is None:
            return None
        twins = self.live_twins(row.key, besides=row.id)
        if row.unique == "rerun":
            return next(iter(twins), None)
        return next((twin for twin in twins if twin.key_held), None)

    # -- attempts and pauses ---------------------------------------------------------------------------
    def record_attempt(
        self,
        row: Row,
        outcome: Outcome,
        now: datetime,
        *,
        worker_id: str | None,
        error_code: str | None = None,
        error: str | None = None,
        traceback: str | None = None,
    ) -> None:
        record = AttemptRecord(
            run_id=row.run_id,
            job_id=row.id,
            attempt=row.attempt,
            lease_no=row.lease_no,
            worker_id=worker_id,
            outcome=outcome.value,
            started_at=row.started_at,
            ended_at=now,
            error_code=error_code,
            error=error,
            traceback=traceback,
        )
        # The first word about a claim stands.
        self.attempts.setdefault(row.run_id, {}).setdefault(row.lease_no, record)

    def pause_of(self, queue: str, now: datetime) -> Pause | None:
        """The pause in force; one whose time is over is none."""
        pause = self.pauses.get(queue)
        if pause is None or (pause.resume_at is not None and pause.resume_at <= now):
            return None
        return pause

    def live_workers(self, now: datetime) -> list[Worker]:
        return [worker for worker in self.workers.values() if not gone(worker, now)]

    def serving(self, queue: str, now: datetime) -> list[Worker]:
        """Who claims from a queue: they live, and they do not drain."""
        return [
            worker
            for worker in self.live_workers(now)
            if worker.beat.state == "running" and queue in worker.beat.queues
        ]
