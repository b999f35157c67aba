"""What the scheduler asks of a driver: who leads, how far each task is decided, and one identity per slot for ever."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from enum import StrEnum
from typing import Protocol
from uuid import UUID

from ultijobs._queue.records import Enqueued, NewJob

__all__ = [
    "Arming",
    "Dispatch",
    "Dispatched",
    "Lapse",
    "Leader",
    "Run",
    "ScheduleStore",
    "Slot",
    "SlotOutcome",
    "TaskState",
]


class SlotOutcome(StrEnum):
    """What became of a slot: fired on time, caught up later, skipped by the policy, or missed with a reason."""

    FIRED = "fired"
    CAUGHT_UP = "caught-up"
    SKIPPED = "skipped"
    MISSED = "missed"


@dataclass(frozen=True, slots=True)
class Leader:
    """Who leads and until when. `term` grows with each change; `now` is the store's clock."""

    holder: str
    term: int
    lease_until: datetime
    now: datetime

    def held_by(self, holder: str) -> bool:
        return self.holder == holder and self.lease_until > self.now


@dataclass(frozen=True, slots=True)
class TaskState:
    """An armed task. Everything up to `watermark` is decided; it is never in the future."""

    task: str
    cron: str
    tz: str
    watermark: datetime
    armed_at: datetime
    last_fired: datetime | None
    """The latest occurrence that was dispatched."""
    last_error: str | None
    retired: bool = False
    """The last leader that looked does not declare it: it is not late, it is gone."""
    owner: str = field(default="", compare=False)
    """The scope whose leader armed it; while that one leads, no other scope's does anything about it."""
    leader: Leader | None = field(default=None, compare=False)
    """Who led its owner last; None when nobody did."""

    def owned_by_another(self, scope: str) -> bool:
        """True while the leader of another scope dispatches it."""
        return self.owner != scope and self.leader is not None and self.leader.lease_until > self.leader.now


@dataclass(frozen=True, slots=True)
class Arming:
    task: str
    cron: str
    tz: str


@dataclass(frozen=True, slots=True)
class Lapse:
    """Slots from `first` to `last` that will not fire; `slots` is how many, at least."""

    first: datetime
    last: datetime
    slots: int
    outcome: SlotOutcome
    reason: str


@dataclass(frozen=True, slots=True)
class Dispatch:
    """One slot with its jobs, and those around it that it decides about; `watermark` is what is decided after it."""

    task: str
    occurrence: datetime
    outcome: SlotOutcome
    jobs: tuple[NewJob, ...]
    watermark: datetime
    lapse: Lapse | None = None


@dataclass(frozen=True, slots=True)
class Dispatched:
    """`fresh` is false when the slot had been decided before; then nothing was enqueued."""

    jobs: tuple[Enqueued, ...]
    fresh: bool


@dataclass(frozen=True, slots=True)
class Slot:
    """A line of the ledger: one slot, or with `through` all from `occurrence` to there, `slots` of them."""

    task: str
    occurrence: datetime
    outcome: str
    reason: str | None
    through: datetime | None
    slots: int
    job_ids: tuple[UUID, ...]
    term: int | None
    decided_at: datetime


@dataclass(frozen=True, slots=True)
class Run:
    """A slot and how its jobs stand; of jobs whose time of keeping is over nothing is known any more."""

    task: str
    occurrence: datetime
    outcome: str
    jobs: int
    """How many it enqueued; the states of the first 20 are read."""
    states: tuple[str, ...]
    """Each state that one of them is in, in byte order."""
    began: datetime | None
    """When the first attempt of those that is known of began."""
    ended: datetime | None
    """When the last of them stopped."""
    error_code: str | None
    """Of one that stopped short."""


class ScheduleStore(Protocol):
    """Leadership saves work; what makes a slot fire once is its row in the ledger. Writes are fenced by the term."""

    async def lead(self, holder: str, *, lease: timedelta, scope: str = "") -> Leader:
        """Takes the lead when it is free or lapsed, renews what is ours, and answers who leads now.

        Each scope, a word for a set of tasks, has a leader of its own; a holder leads in one scope alone.
        """
        ...

    async def resign(self, holder: str) -> None:
        """Gives the lead up, so that another need not wait for the lease to end. Does nothing to another's."""
        ...

    async def leader(self) -> Leader | None:
        """Who led last, of all scopes; None when nobody ever did."""
        ...

    async def states(self) -> list[TaskState]: ...
    async def arm(self, holder: str, term: int, tasks: Sequence[Arming]) -> None:
        """Makes the row of each task, decided up to now; a task whose cron or zone changed begins anew.

        One that was retired, or whose owner leads no more, goes on from its watermark; one whose owner leads stays its.
        """
        ...

    async def retire(self, holder: str, term: int, tasks: Sequence[str]) -> None:
        """Marks tasks that no live leader declares; nothing of theirs is lost."""
        ...

    async def dispatch(self, holder: str, term: int, dispatch: Dispatch) -> Dispatched | None:
        """Slot, jobs and watermark in one transaction; None, and nothing stored, when the term is over."""
        ...

    async def fault(self, holder: str, term: int, task: str, error: str) -> None:
        """Keeps the error of a task that could not be dispatched; the next dispatch removes it."""
        ...

    async def slots(self, task: str | None = None, *, limit: int = 100) -> list[Slot]:
        """The ledger, latest occurrence first."""
        ...

    async def runs(self, tasks: Sequence[str], *, each: int = 15) -> list[Run]:
        """The newest slots of each of these tasks, by task in byte order, the latest first."""
        ...
