"""Lanes: what is held back or shared out as one, and how one claim is divided over the streams that lie in them."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final, Generic, Protocol, TypeVar
from uuid import UUID

from ultijobs._queue.records import ClaimAsk, ClaimedJob

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


S = TypeVar("S", bound=Stream)


@dataclass(slots=True)
class Round(Generic[S]):
    """One look into streams that do not draw on the same slots or the same tenant's allowance."""

    streams: list[S] = field(default_factory=list[S])
    most: list[int] = field(default_factory=list[int])
    """Rows to take from each of the streams."""
    blocked: list[str] = field(default_factory=list[str])
    """Tenants whose rows are left out, in a lane that is not a tenant's own."""


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
        self._left = turns.ordered(streams, ask.queues, ask.fair)
        self._again: list[S] = []
        self._whole = not ask.fair
        self._lanes: Final = Counter((stream.queue, stream.rank) for stream in self._left)
        self._limit = ask.limit
        self._slots: Final = dict(ask.queues)
        self._used: Final = Counter[str]()

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
            found = self._fill()
            if found.streams:
                return found
        return None

    def took(self, given: Round[S], jobs: Sequence[ClaimedJob]) -> None:
        """Takes account of what a round brought."""
        self._limit -= len(jobs)
        for job in jobs:
            self._slots[job.queue] -= 1
            if job.tenant_id is not None:
                self._used[job.tenant_id] += 1
        taken = Counter((job.queue, job.lane, -job.priority) for job in jobs)
        more: list[S] = []
        for stream, most in zip(given.streams, given.most, strict=True):
            got = taken[stream.queue, stream.lane, stream.rank]
            if got and stream.queue in self._ask.fair:
                self._turns.served(stream)
            if got < most:
                continue
            if self._shared_by_tenants(stream):
                more.append(stream)
            elif not self._whole and stream.queue in self._ask.fair:
                self._again.append(stream)
        self._left = more + self._left

    def _fill(self) -> Round[S]:
        made: Round[S] = Round()
        drawn: set[str] = set()
        at = 0
        for stream in self._left:
            name, tenant = capped_name(stream.lane), tenant_of(stream.lane)
            alone = self._shared_by_tenants(stream)
            draws = self._draws(name, tenant)
            if self._barred(stream, name, tenant):
                at += 1
                continue
            if (alone and made.streams) or draws & drawn or len(made.streams) == LISTED:
                break
            at += 1
            drawn |= draws
            made.streams.append(stream)
            made.most.append(self._most(stream, tenant))
            if alone:
                made.blocked = [one for one in self._known_tenants() if self._allowance(one) <= 0]
                break
        del self._left[:at]
        return made

    def _draws(self, name: str | None, tenant: str | None) -> set[str]:
        """What two streams of one round must not share."""
        drawn = set[str]() if name is None else {slots_lane(name)}
        return drawn if tenant is None or self._ask.tenants is None else drawn | {_TENANT + tenant}

    def _barred(self, stream: S, name: str | None, tenant: str | None) -> bool:
        if self.free(stream.queue) <= 0 or (name is not None and name not in self._ask.caps):
            return True
        return self._ask.tenants is not None and tenant is not None and self._allowance(tenant) <= 0

    def _shared_by_tenants(self, stream: S) -> bool:
        """True for a lane in which rows of any tenant may lie while tenants are limited."""
        return self._ask.tenants is not None and tenant_of(stream.lane) is None

    def _most(self, stream: S, tenant: str | None) -> int:
        most = self.free(stream.queue)
        if self._ask.tenants is not None:
            if tenant is not None:
                most = min(most, self._allowance(tenant))
            else:
                # Whoever's rows come first: none of those may be exceeded.
                open_to = [left for one in self._known_tenants() if (left := self._allowance(one)) > 0]
                most = min([most, self._ask.tenants.most, *open_to])
        if not self._whole and stream.queue in self._ask.fair:
            lanes = min(self._lanes[stream.queue, stream.rank], _TURNS)
            most = min(most, math.ceil(min(self._ask.queues[stream.queue], self._ask.limit) / lanes))
        return most

    def _known_tenants(self) -> list[str]:
        assert self._ask.tenants is not None, "only asked where tenants are limited"
        return [*self._ask.tenants.left, *(one for one in self._used if one not in self._ask.tenants.left)]

    def _allowance(self, tenant: str) -> int:
        assert self._ask.tenants is not None, "only asked where tenants are limited"
        return self._ask.tenants.of(tenant) - self._used[tenant]
