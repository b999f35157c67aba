"""What a worker tells of each attempt that has ended, to whoever watches it from the same process."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeAlias

from ultijobs._queue.claims import ClaimedJob, Settlement
from ultijobs._queue.records import Outcome

__all__ = ["Ended", "Observer"]


@dataclass(frozen=True, slots=True)
class Ended:
    """An attempt, and what became of it in the store: a settlement that was refused is `cancelled` or `lost`."""

    job: ClaimedJob
    outcome: Outcome
    settlement: Settlement | None
    error: BaseException | None
    executed: tuple[str, ...]
    replayed: tuple[str, ...]


Observer: TypeAlias = Callable[[Ended], None]
