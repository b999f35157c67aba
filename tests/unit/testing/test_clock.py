"""`FrozenClock` moves when it is told to, forward and by itself never."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest

from ultijobs.errors import DurationInvalid, Invariant
from ultijobs.testing import FrozenClock


def test_it_stands_still_until_it_is_moved():
    clock = FrozenClock(datetime(2026, 3, 1, 12, tzinfo=ZoneInfo("Europe/Berlin")))
    assert clock.now() == clock.now() == datetime(2026, 3, 1, 11, tzinfo=UTC)
    assert clock.advance("3d") == clock.now() == datetime(2026, 3, 4, 11, tzinfo=UTC)
    assert clock.advance(timedelta(minutes=1)) == datetime(2026, 3, 4, 11, 1, tzinfo=UTC)
    assert clock.move_to(datetime(2026, 4, 1, tzinfo=UTC)) == clock.now() == datetime(2026, 4, 1, tzinfo=UTC)
    assert (
        clock.monotonic() == (datetime(2026, 4, 1, tzinfo=UTC) - datetime(2026, 3, 1, 11, tzinfo=UTC)).total_seconds()
    )


def test_it_begins_at_the_same_time_in_every_test():
    assert FrozenClock().now() == FrozenClock().now() == datetime(2026, 1, 1, tzinfo=UTC)


def test_it_never_goes_back():
    clock = FrozenClock()
    with pytest.raises(Invariant, match="before"):
        clock.move_to(datetime(2025, 1, 1, tzinfo=UTC))
    with pytest.raises(DurationInvalid):
        clock.advance(-1)
    assert clock.now() == datetime(2026, 1, 1, tzinfo=UTC)


@pytest.mark.parametrize("time", [datetime(2026, 1, 1, tzinfo=UTC).replace(tzinfo=None), "2026-01-01", None])
def test_a_time_without_a_zone_is_refused(time):
    with pytest.raises(Invariant, match="no aware datetime"):
        FrozenClock().move_to(time)
    with pytest.raises(Invariant, match="no aware datetime"):
        FrozenClock(time)
