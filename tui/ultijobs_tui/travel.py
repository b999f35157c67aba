"""Looking back: the last quarter of an hour, or a recording, one moment after the other. Bounded, and no I/O."""

from __future__ import annotations

import re
import zlib
from collections import deque
from dataclasses import fields
from datetime import UTC, datetime, timedelta
from typing import Final, Protocol

from ultijobs.inspection import Cause, Overview
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.recording import decode, encode

__all__ = ["Moments", "Ring", "Travel", "moment_of"]

_KEEP: Final = 900
_KEEP_BYTES: Final = 8 * 1024 * 1024
_APART: Final = 0.9
_RECORDED: Final = frozenset({"overview", "queues", "causes", "watch", "tenant"})
_UNRECORDED: Final = "not recorded: of the past there are Incident, Queues and the causes of Dead"


class Moments(Protocol):
    """Overviews in the order of their time."""

    def __len__(self) -> int: ...
    def at(self, index: int) -> datetime: ...
    def read(self, index: int) -> Overview:
        """Raises `ValueError` for one that is damaged."""
        ...


class Ring:
    """The last overviews, packed: one a second at the most, a quarter of an hour and 8 MiB at the most."""

    def __init__(self, *, keep: int = _KEEP, keep_bytes: int = _KEEP_BYTES) -> None:
        self._moments: deque[tuple[datetime, bytes]] = deque()
        self._keep, self._keep_bytes = keep, keep_bytes
        self.size = 0
        self.dropped = 0
        """How many have left at its old end."""

    def add(self, overview: Overview) -> bool:
        """True when it was taken; one within a second of the last is not."""
        if self._moments and (overview.as_of - self._moments[-1][0]).total_seconds() < _APART:
            return False
        packed = zlib.compress(encode(overview).encode(), 1)
        self._moments.append((overview.as_of, packed))
        self.size += len(packed)
        while len(self._moments) > 1 and (len(self._moments) > self._keep or self.size > self._keep_bytes):
            self.size -= len(self._moments.popleft()[1])
            self.dropped += 1
        return True

    def __len__(self) -> int:
        return len(self._moments)

    def at(self, index: int) -> datetime:
        return self._moments[index][0]

    def read(self, index: int) -> Overview:
        return decode(zlib.decompress(self._moments[index][1]))


class Travel:
    """Where in `moments` the operator stands. `shown` is None while that is now."""

    def __init__(self, moments: Moments) -> None:
        self.moments = moments
        self.shown: Overview | None = None
        self.damaged = ""
        self._at: datetime | None = None

    @property
    def away(self) -> bool:
        return self._at is not None

    @property
    def at(self) -> datetime | None:
        """The moment that is shown."""
        return self._at

    def step(self, by: int) -> bool:
        """One moment back (-1) or forward; False at an end. Forward from the last one is not now: `f` is."""
        here = self._index()
        return self._go((len(self.moments) - 1 if here is None else here) + by)

    def shift(self, by: timedelta) -> bool:
        """The moment nearest before `by` from here; the first or the last there is beyond them."""
        count = len(self.moments)
        if not count:
            return False
        start = self._at or self.moments.at(count - 1)
        return self.to(start + by)

    def to(self, at: datetime) -> bool:
        """The last moment that is not later than `at`, else the first."""
        found = max((i for i in range(len(self.moments)) if self.moments.at(i) <= at), default=0)
        return self._go(found)

    def now(self) -> None:
        self._at, self.shown, self.damaged = None, None, ""

    def frame(self, needs: Needs) -> Frame:
        """The answer of that moment to what a screen asks for; what nobody kept is told."""
        overview, at = self.shown, self._at
        assert at is not None
        failures = {} if overview is not None else {"overview": self.damaged, "queues": self.damaged}
        asked = {part.name for part in fields(needs) if getattr(needs, part.name) not in {None, False}}
        for part in asked - _RECORDED:
            failures["jobs" if part == "page" else part] = _UNRECORDED
        return Frame(
            needs=needs,
            as_of=at,
            overview=overview,
            queues=overview.queues if overview and needs.queues else None,
            causes=_causes(overview) if overview and needs.causes is not None else None,
            failures=failures,
        )

    def _index(self) -> int | None:
        """Where the moment is now: the ring goes on while one looks back."""
        if self._at is None:
            return None
        return max((i for i in range(len(self.moments)) if self.moments.at(i) <= self._at), default=0)

    def _go(self, index: int) -> bool:
        if not 0 <= index < len(self.moments):
            return False
        self._at, self.damaged = self.moments.at(index), ""
        try:
            self.shown = self.moments.read(index)
        except ValueError as error:
            self.shown, self.damaged = None, f"this moment is damaged: {str(error).splitlines()[0]}"
        return True


def _causes(overview: Overview) -> list[Cause]:
    return [stuck.cause for stuck in overview.stuck if stuck.cause is not None]


def moment_of(text: str, now: datetime) -> datetime | None:
    """`14:02`, `14:02:11` (the last such time before `now`, in UTC), or an ISO instant; None for anything else."""
    if found := re.fullmatch(r"(\d{1,2}):(\d{2})(?::(\d{2}))?Z?", text.strip()):
        hour, minute, second = (int(part or 0) for part in found.groups())
        try:
            at = now.astimezone(UTC).replace(hour=hour, minute=minute, second=second, microsecond=0)
        except ValueError:
            return None
        return at if at <= now else at - timedelta(days=1)
    try:
        at = datetime.fromisoformat(text.strip())
    except ValueError:
        return None
    return at if at.tzinfo is not None else at.replace(tzinfo=UTC)
