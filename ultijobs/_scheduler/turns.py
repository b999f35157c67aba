"""What a task has to make up for: which of its slots fire now, and which never will, by its catch-up mode."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Final

from ultijobs._definitions.calendar import Calendar
from ultijobs._definitions.task import CatchUp
from ultijobs._queue.schedule import Lapse, SlotOutcome

__all__ = ["Turn", "turns"]

COUNTED: Final = 10_000
"""Slots of one outage that are counted one by one; of more it is said that there are at least so many."""
_BREATH: Final = 100
_TICK: Final = timedelta(microseconds=1)


@dataclass(frozen=True, slots=True)
class Turn:
    """A slot to fire, in UTC. With it everything up to `watermark` is decided, and what `lapse` says never fires."""

    occurrence: datetime
    outcome: SlotOutcome
    watermark: datetime
    lapse: Lapse | None = None


async def turns(
    calendar: Calendar, watermark: datetime, now: datetime, *, catch_up: CatchUp, most: int, on_time: timedelta
) -> list[Turn]:
    """The turns of the slots in (watermark, now], in their order; one not later than `on_time` counts as fired.

    Slots that are all on time are no outage: each of them fires. Else `skip` fires the latest alone, `run-once` the
    earliest alone, `run-all` the latest `most`.
    """
    first, last = _utc(calendar.after(watermark)), _utc(calendar.latest(now))
    if first is None or last is None or first > now:
        return []

    def outcome(occurrence: datetime) -> SlotOutcome:
        return SlotOutcome.FIRED if now - occurrence <= on_time else SlotOutcome.CAUGHT_UP

    if first == last or now - first <= on_time:
        due = [each.astimezone(UTC) for each in calendar.between(watermark, now)]
        return [Turn(each, outcome(each), each) for each in due]
    if catch_up == "skip":
        lapse = await _lapse(calendar, first, last - _TICK, SlotOutcome.SKIPPED, "catch_up is skip")
        return [Turn(last, outcome(last), last, lapse)]
    if catch_up == "run-once":
        second = _utc(calendar.after(first)) or last
        lapse = await _lapse(calendar, second, last, SlotOutcome.SKIPPED, "catch_up is run-once")
        return [Turn(first, outcome(first), last, lapse)]
    due = await _latest(calendar, first, now, most)
    dropped: Lapse | None = None
    if due[0] > first:
        reason = f"one outage makes up for {most} at the most"
        dropped = await _lapse(calendar, first, due[0] - _TICK, SlotOutcome.MISSED, reason)
    return [Turn(each, outcome(each), each, dropped if each == due[0] else None) for each in due]


async def _latest(calendar: Calendar, first: datetime, now: datetime, most: int) -> list[datetime]:
    found: list[datetime] = []
    at = _utc(calendar.latest(now))
    while at is not None and at >= first and len(found) < most:
        found.append(at)
        at = _utc(calendar.latest(at - _TICK))
        if len(found) % _BREATH == 0:
            await asyncio.sleep(0)
    return found[::-1]


async def _lapse(calendar: Calendar, first: datetime, last: datetime, outcome: SlotOutcome, reason: str) -> Lapse:
    """The slots from `first` to the latest one that is not after `last`."""
    count = 0
    for count, _ in enumerate(islice(calendar.between(first - _TICK, last), COUNTED), 1):
        if count % _BREATH == 0:
            await asyncio.sleep(0)
    end = _utc(calendar.latest(last)) or first
    return Lapse(first, end, count, outcome, reason)


def _utc(instant: datetime | None) -> datetime | None:
    return None if instant is None else instant.astimezone(UTC)
