"""Lanes: what is held back or shared out as one, and how one claim is divided over the streams that lie in them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Generic, Protocol, TypeVar
from uuid import UUID

from ultijobs._queue.claims import ClaimAsk, ClaimedJob

__all__ = ["LISTED", "Division", "Round", "Stream", "Turns", "capped_name", "lane_of", "slots_lane", "tenant_of"]

LISTED: Final = 200
"""Streams that one round looks into, at the most."""
_TURNS: Final = 10
"""Lanes of a fair queue that one claim serves, where there are so many; the next claim goes on behind them."""

# A name holds no comma, so that the first one ends it.
_CAP: Final = "n:"
_TENANT: Final = "t:"


def lane_of(name: str, tenant: str | None, *, capped: bool, by_tenant: bool) -> str:
    """Where a row waits: plainly, or in the lane of its capped name, of its tenant, or of both."""
    parts = [slots_lane(name)] if capped else []
    if by_tenant and tenant is not None:
        parts.append(_TENANT + tenant)
    return ",".join(parts)


def slots_lane(name: str) -> str:
    """The lane of a capped name, which is the key of its slots."""
    return _CAP + name


def capped_name(lane: str) -> str | None:
    """The name whose slots a claim from the lane needs."""
    return lane.partition(",")[0].removeprefix(_CAP) if lane.startswith(_CAP) else None


def tenant_of(lane: str) -> str | None:
    """The tenant that has the lane to itself."""
    if lane.startswith(_TENANT):
        return lane.removeprefix(_TENANT)
    return lane.partition("," + _TENANT)[2] or None if lane.startswith(_CAP) else None


class Stream(Protocol):
    """The waiting rows of one queue, lane and rank (minus priority); `head` is its first row's place."""

    @property
    def queue(self) -> str: ...
    @property
    def lane(self) -> str: ...
    @property
    def rank(self) -> int: ...
    @property
    def head(self) -> tuple[datetime, UUID]: ...
    @property
    def head_tenant(self) -> str | None:
        """Whose the first row is."""
        ...


S = TypeVar("S", bound=Stream)


@dataclass(slots=True)
class Round(Generic[S]):
    """One look into streams that do not draw on the same slots or the same tenant's allowance."""

    streams: list[S] = field(default_factory=list[S])
    most: list[int] = field(default_factory=list[int])
    """Rows to take from each of the streams."""
    bare: list[bool] = field(default_factory=list[bool])
    """Whether rows of tenants are left out of it."""
    blocked: list[str] = field(default_factory=list[str])
    """Tenants whose rows are left out of all."""


@dataclass(frozen=True, slots=True)
class _Part(Generic[S]):
    """A stream, or of one in which rows of tenants lie that are limited, those of nobody (`bare`) or all (`mixed`)."""

    stream: S
    name: str | None
    tenant: str | None
    bare: bool = False
    mixed: bool = False


class Turns:
    """Which lane of a fair queue was served last, by queue and rank."""

    def __init__(self) -> None:
        self._last: Final[dict[tuple[str, int], str]] = {}

    def ordered(self, streams: Iterable[S], queues: Collection[str], fair: Collection[str]) -> list[S]:
        """By queue as given, then rank; then by turns where the queue is fair, else the oldest row first."""
        place = {queue: at for at, queue in enumerate(queues)}

        def order(stream: S) -> tuple[int, int, bool, str, tuple[datetime, UUID]]:
            turn = stream.lane if stream.queue in fair else ""
            had = turn <= self._last.get((stream.queue, stream.rank), "") if stream.queue in fair else False
            return (place[stream.queue], stream.rank, had, turn, stream.head)

        return sorted((stream for stream in streams if stream.queue in place), key=order)

    def served(self, stream: Stream) -> None:
        self._last[stream.queue, stream.rank] = stream.lane


class Division(Generic[S]):
    """Divides what an ask may still take over streams in their order, so that no cap and no allowance is exceeded.

    Rounds are asked for one after the other, each told what it brought; mostly there is one.
    """

    def __init__(self, ask: ClaimAsk, streams: Iterable[S], turns: Turns) -> None:
        self._ask: Final = ask
        self._turns: Final = turns
        ordered = turns.ordered(streams, ask.queues, ask.fair)
        self._left = [part for stream in ordered for part in _parts(stream, limited=ask.tenants is not None)]
        self._again: list[_Part[S]] = []
        self._whole = not ask.fair
        self._lanes: Final = Counter((stream.queue, stream.rank) for stream in ordered)
        self._limit = ask.limit
        self._slots: Final = dict(ask.queues)
        self._used: Final = Counter[str]()
        self._round: list[_Part[S]] = []

    @property
    def limit(self) -> int:
        """Rows that may still be taken."""
        return self._limit

    def free(self, queue: str) -> int:
        return min(self._slots.get(queue, 0), self._limit)

    def next(self) -> Round[S] | None:
        """The next round; None when nothing is left to take or to look into."""
        while self._left or self._again:
            if not self._left:
                self._left, self._again, self._whole = self._again, [], True
            self._round = self._fill()
            if self._round:
                mixed = self._round[0].mixed
                return Round(
                    [part.stream for part in self._round],
                    [self._most(part) for part in self._round],
                    [part.bare for part in self._round],
                    [one for one in self._known_tenants() if self._allowance(one) <= 0] if mixed else [],
                )
        return None

    def took(self, given: Round[S], jobs: Sequence[ClaimedJob]) -> None:
        """Takes account of what the last round brought."""
        self._limit -= len(jobs)
        for job in jobs:
            self._slots[job.queue] -= 1
            if job.tenant_id is not None:
                self._used[job.tenant_id] += 1
        taken = Counter((job.queue, job.lane, -job.priority) for job in jobs)
        for part, most in zip(self._round, given.most, strict=True):
            stream = part.stream
            got = taken[stream.queue, stream.lane, stream.rank]
            if got and stream.queue in self._ask.fair:
                self._turns.served(stream)
            if got < most:
                continue
            if part.mixed:
                # Behind the rows of nobody in the same stream, which may fill what is left at once.
                self._left.insert(1, part)
            elif not self._whole and stream.queue in self._ask.fair:
                self._again.append(part)

    def _fill(self) -> list[_Part[S]]:
        made: list[_Part[S]] = []
        drawn: set[str] = set()
        at = 0
        for part in self._left:
            if self._barred(part):
                at += 1
                continue
            draws = self._draws(part)
            if (part.mixed and made) or draws & drawn or len(made) == LISTED:
                break
            at += 1
            drawn |= draws
            made.append(part)
            if part.mixed:
                break
        del self._left[:at]
        return made

    def _draws(self, part: _Part[S]) -> set[str]:
        """What two parts of one round must not share."""
        drawn = set[str]() if part.name is None else {slots_lane(part.name)}
        return drawn if part.tenant is None or self._ask.tenants is None else drawn | {_TENANT + part.tenant}

    def _barred(self, part: _Part[S]) -> bool:
        if self.free(part.stream.queue) <= 0 or (part.name is not None and part.name not in self._ask.caps):
            return True
        return self._ask.tenants is not None and part.tenant is not None and self._allowance(part.tenant) <= 0

    def _most(self, part: _Part[S]) -> int:
        queue, rank = part.stream.queue, part.stream.rank
        most = self.free(queue)
        if part.mixed:
            # Whoever's rows come first: none of those may be exceeded.
            open_to = [left for one in self._known_tenants() if (left := self._allowance(one)) > 0]
            most = min([most, self._newcomer(), *open_to])
        elif part.tenant is not None and self._ask.tenants is not None:
            most = min(most, self._allowance(part.tenant))
        if not self._whole and queue in self._ask.fair:
            lanes = min(self._lanes[queue, rank], _TURNS)
            most = min(most, math.ceil(min(self._ask.queues[queue], self._ask.limit) / lanes))
        return most

    def _newcomer(self) -> int:
        """What a tenant may start of whom nothing is counted."""
        assert self._ask.tenants is not None, "only asked where tenants are limited"
        return self._ask.tenants.most

    def _known_tenants(self) -> list[str]:
        assert self._ask.tenants is not None, "only asked where tenants are limited"
        return [*self._ask.tenants.left, *(one for one in self._used if one not in self._ask.tenants.left)]

    def _allowance(self, tenant: str) -> int:
        assert self._ask.tenants is not None, "only asked where tenants are limited"
        return self._ask.tenants.of(tenant) - self._used[tenant]


def _parts(stream: S, *, limited: bool) -> list[_Part[S]]:
    """Rows of limited tenants outside of their lanes are looked for where one of them is the first."""
    name, tenant = capped_name(stream.lane), tenant_of(stream.lane)
    if not limited or tenant is not None:
        return [_Part(stream, name, tenant)]
    bare = _Part(stream, name, None, bare=True)
    return [bare] if stream.head_tenant is None else [_Part(stream, name, None, mixed=True), bare]
