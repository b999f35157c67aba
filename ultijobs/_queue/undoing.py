"""The contract of taking back: what a retry or a cancel found is kept for a day, until something comes of the job.

There is one record for a job at the most, of the last act on it. A claim makes it worthless, and nothing else does.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from typing import Final, Literal, Protocol
from uuid import UUID

from ultijobs._queue.records import ActResult
from ultijobs._queue.views import Count
from ultijobs.errors import JobDuplicate, JobMoved, JobUnknown, NotUndoable

__all__ = ["REMEMBERED", "Standing", "UndoStore", "in_the_way", "untouched"]

REMEMBERED: Final = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Standing:
    """What an act found of a job, and where the job stands now."""

    id: UUID
    act: Literal["retry", "cancel"] | None
    """None: the act did not touch it, or another one has since."""
    dropped: int = 0
    """How many step records the retry removed."""
    lease_no: int = 0
    """That of its last claim before the act; 0: it had never started."""
    state: str | None = None
    """Now; None: it is not there, or belongs to another tenant."""
    lease_no_now: int = 0
    moves: bool = False


class UndoStore(Protocol):
    async def jobs(
        self, act: UUID, *, after: UUID | None = None, limit: int = 500, tenant: str | None = None
    ) -> list[UUID]:
        """Jobs of which `act` was the last to change them, by id; with `tenant` those of that tenant alone."""
        ...

    async def count(self, act: UUID, *, cap: int = 10_000, tenant: str | None = None) -> Count: ...
    async def foresee(self, act: UUID, ids: Sequence[UUID], *, tenant: str | None = None) -> list[ActResult]:
        """What `undo` would answer now; nothing is locked or changed."""
        ...

    async def undo(self, act: UUID, ids: Sequence[UUID], *, tenant: str | None = None) -> list[ActResult]:
        """Makes each of these what it was before `act`, or refuses it and leaves it as it is; one transaction.

        State, counts, times and reasons come back as they were; `updated_at` alone is now. Refused with
        `X_NOT_UNDOABLE`: what was claimed since, or acted on again, a retry that dropped step records, and the cancel
        of a job that had started. A cancelled job whose key another one has taken is refused with `X_JOB_DUPLICATE`.
        """
        ...


def untouched(now: Standing) -> ActResult | None:
    """The refusal where something has come of the job since the act; None where it can be what it was."""
    records = "a step record" if now.dropped == 1 else f"{now.dropped} step records"
    as_left = {"ready", "delayed"} if now.act == "retry" else {"cancelled"}
    reasons = (
        (now.act is None, NotUndoable.code, "was not changed by this act or again since, or that is over a day ago"),
        (now.state is None, JobUnknown.code, "is not there"),
        (now.moves, JobMoved.code, "moves to another database, or has gone there"),
        (now.act == "cancel" and now.lease_no > 0, NotUndoable.code, "had started before it was cancelled"),
        (now.lease_no_now != now.lease_no, NotUndoable.code, f"was claimed since: it is {now.state}"),
        (now.state not in as_left, NotUndoable.code, f"is {now.state} by now"),
        (now.dropped > 0, NotUndoable.code, f"lost {records} to the retry, and they are not kept"),
    )
    said = next(((code, cause) for holds, code, cause in reasons if holds), None)
    return None if said is None else _refused(now.id, said[0], f"job {now.id} {said[1]}")


def in_the_way(id: UUID, twin: UUID, state: str) -> ActResult:
    """The refusal of a cancelled job whose key another one holds now."""
    return _refused(id, JobDuplicate.code, f"job {twin} is {state} and has the same key", existing_id=str(twin))


def _refused(id: UUID, code: str, cause: str, **meta: object) -> ActResult:
    return ActResult(id, done=False, code=code, cause=cause, meta=meta)
