"""The slots of capped names: each is held by one claim, and free when that has ended; after a cancel, with its body."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from uuid import UUID

from ultijobs._queue.views import SlotRow
from ultijobs.memory._rows import Row

__all__ = ["Slots"]


@dataclass(slots=True)
class _Held:
    row: Row
    lease_no: int
    kept_until: datetime | None = None

    @property
    def lasts(self) -> bool:
        return self.kept_until is not None or self.row.holds(self.lease_no)

    def over(self, now: datetime) -> bool:
        return self.kept_until is not None and self.kept_until < now


class Slots:
    """By name and number. What a claim held needs no release, unless it was kept: the claim's end is the row's own."""

    def __init__(self) -> None:
        self._held: dict[str, dict[int, _Held]] = {}
        self._made: dict[str, int] = {}

    def made(self, name: str) -> int:
        """The largest cap that a claim came with."""
        return self._made.get(name, 0)

    def free(self, name: str, size: int) -> list[int]:
        """Slots that may be taken. Where the cap was lowered, those above it count until their claims end."""
        self._made[name] = max(size, self.made(name))
        held = self._lasting(name)
        free = [slot for slot in range(size) if slot not in held]
        above = sum(slot >= size for slot in held)
        return free[: max(0, len(free) - above)]

    def take(self, slot: int, row: Row) -> None:
        self._held.setdefault(row.name, {})[slot] = _Held(row, row.lease_no)

    def keep(self, row: Row, until: datetime) -> None:
        """Keeps the slot of a claim that is being cancelled, until it is let go or swept."""
        for held in self._held.get(row.name, {}).values():
            if held.row is row and held.lease_no == row.lease_no:
                held.kept_until = until

    def let_go(self, job_id: UUID, lease_no: int) -> bool:
        return self._drop(lambda held: (held.row.id, held.lease_no) == (job_id, lease_no))

    def sweep(self, now: datetime) -> bool:
        """Frees what was kept for longer than the lease of its claim."""
        return self._drop(lambda held: held.over(now))

    def any_over(self, now: datetime) -> bool:
        return any(held.over(now) for slots in self._held.values() for held in slots.values())

    def taken(self, name: str) -> int:
        """How many are not free."""
        return len(self._lasting(name))

    def holders(self, name: str) -> list[SlotRow]:
        return [
            SlotRow(slot, held.row.id, held.row.worker_id, _at(held.row.started_at), _at(held.row.lease_until))
            for slot, held in sorted(self._lasting(name).items())
            if held.kept_until is None
        ]

    def _drop(self, which: Callable[[_Held], bool]) -> bool:
        gone = [(slots, slot) for slots in self._held.values() for slot, held in slots.items() if which(held)]
        for slots, slot in gone:
            del slots[slot]
        return bool(gone)

    def _lasting(self, name: str) -> dict[int, _Held]:
        held = {slot: one for slot, one in self._held.get(name, {}).items() if one.lasts}
        if held:
            self._held[name] = held
        else:
            self._held.pop(name, None)
        return held


def _at(time: datetime | None) -> datetime:
    assert time is not None, "a claim that lasts has both times"
    return time
