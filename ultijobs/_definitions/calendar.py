"""When a task is due: the occurrences of its cron text in its zone, over clock changes, from any instant, both ways.

`cronsim` walks local times that know no zone; here each one is given its instant. Which one is the rule of the task.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

from cronsim import CronSim

__all__ = ["Calendar"]

_SECOND = timedelta(seconds=1)


@dataclass(frozen=True)
class Calendar:
    """`schedule` is a text that `cron.normalise` answered. All answers are aware, in `zone`.

    A text whose minute or hour field begins with `*` follows real time: every instant whose local time matches. Any
    other fires once per local day: a repeated local time at its first pass, one in a gap at the first valid instant.
    """

    schedule: str
    zone: ZoneInfo

    def after(self, instant: datetime) -> datetime | None:
        """The first occurrence later than `instant`; None when there is none within 50 years."""
        return self._next_real(instant) if self._real_time else self._next_fixed(instant)

    def latest(self, instant: datetime) -> datetime | None:
        """The last occurrence not later than `instant`, found without a walk over those before it."""
        return self._last_real(instant) if self._real_time else self._last_fixed(instant)

    def between(self, after: datetime, until: datetime) -> Iterator[datetime]:
        """The occurrences in (after, until], in order."""
        # Times of one zone are compared without their fold, hence UTC.
        until = until.astimezone(UTC)
        found = self.after(after)
        while found is not None and found.astimezone(UTC) <= until:
            yield found
            found = self.after(found)

    @property
    def _real_time(self) -> bool:
        fields = self.schedule.split()
        return fields[-5].startswith("*") or fields[-4].startswith("*")

    # -- once per local day ----------------------------------------------------------------------------
    def _next_fixed(self, instant: datetime) -> datetime | None:
        local = self._local(instant)
        begin = self._span(local)[1] - _SECOND if local.fold else local
        for match in self._forward(begin):
            found = self._once(match)
            if found.astimezone(UTC) > instant.astimezone(UTC):
                return found
        return None

    def _last_fixed(self, instant: datetime) -> datetime | None:
        local = self._local(instant)
        begin = self._span(local)[1] - _SECOND if local.fold else local
        match = next(self._backward(begin), None)
        return None if match is None else self._once(match)

    def _once(self, match: datetime) -> datetime:
        if self._jumped(match):
            return self._change(match).astimezone(self.zone)
        return match.replace(tzinfo=self.zone)

    # -- by real time ----------------------------------------------------------------------------------
    def _next_real(self, instant: datetime) -> datetime | None:
        local = self._local(instant)
        begin, end = self._span(local)
        if begin < end and not local.fold:
            match = next(self._forward(local), None)
            if match is not None and match < end:
                return match.replace(tzinfo=self.zone)
            match = next(self._forward(begin - _SECOND), None)
            if match is not None and match < end:
                return match.replace(tzinfo=self.zone, fold=1)
            local = end - _SECOND
        for match in self._forward(local):
            if not self._jumped(match):
                return match.replace(tzinfo=self.zone, fold=int(begin <= match < end))
        return None

    def _last_real(self, instant: datetime) -> datetime | None:
        local = self._local(instant)
        begin, end = self._span(local)
        if begin < end:
            for fold in (1, 0) if local.fold else (0,):
                match = next(self._backward(local if fold == local.fold else end - _SECOND), None)
                if match is not None and match >= begin:
                    return match.replace(tzinfo=self.zone, fold=fold)
            local = begin - _SECOND
        for match in self._backward(local):
            if not self._jumped(match):
                return match.replace(tzinfo=self.zone, fold=1)
        return None

    # -- local times, without zone ---------------------------------------------------------------------
    def _local(self, instant: datetime) -> datetime:
        return instant.astimezone(self.zone).replace(tzinfo=None)

    def _forward(self, local: datetime) -> Iterator[datetime]:
        """The local times that match, later than `local`."""
        return CronSim(self.schedule, local.replace(fold=0))

    def _backward(self, local: datetime) -> Iterator[datetime]:
        """The local times that match, latest first, `local` included: with a fraction the whole second counts."""
        return CronSim(self.schedule, local.replace(microsecond=1, fold=0), reverse=True)

    def _offsets(self, local: datetime) -> tuple[timedelta, timedelta]:
        """Before and after the change of clocks that `local` is in; the same twice where it is in none."""
        before = local.replace(tzinfo=self.zone, fold=0).utcoffset()
        after = local.replace(tzinfo=self.zone, fold=1).utcoffset()
        assert before is not None
        assert after is not None
        return before, after

    def _jumped(self, local: datetime) -> bool:
        before, after = self._offsets(local)
        return before < after

    def _span(self, local: datetime) -> tuple[datetime, datetime]:
        """From where to where local times are passed twice, around `local`; empty where it is passed once."""
        before, after = self._offsets(local)
        if before <= after:
            return local, local
        change = self._change(local).replace(tzinfo=None)
        return change + after, change + before

    def _change(self, local: datetime) -> datetime:
        """The instant of the change of clocks that `local` is in: the first with the offset after it."""
        before, after = self._offsets(local)
        bounds = sorted((local - before, local - after))
        low, high = (bound.replace(tzinfo=UTC, microsecond=0, fold=0) for bound in bounds)
        while high - low > _SECOND:
            middle = low + timedelta(seconds=(high - low) // _SECOND // 2)
            if middle.astimezone(self.zone).utcoffset() == before:
                low = middle
            else:
                high = middle
        return high
