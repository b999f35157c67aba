"""The slots of capped names: each is held by one claim, and free as soon as that has ended."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime

from ultijobs._queue.views import SlotRow
from ultijobs.memory._rows import Row

__all__ = ["Slots"]


@dataclass(frozen=True, slots=True)
class _Held:
    row: Row
    lease_no: int

    @property
    def lasts(self) -> bool:
        return self.row.holds(self.lease_no)


class Slots:
    """By name and number. What a claim held needs no release: the claim's end is the row's own."""

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

    def holders(self, name: str) -> list[SlotRow]:
        return [
            SlotRow(slot, held.row.id, held.row.worker_id, _at(held.row.started_at), _at(held.row.lease_until))
            for slot, held in sorted(self._lasting(name).items())
        ]

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
