"""Looking back: bounded memory, one moment after the other, and where a time of day leads."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.tui import data
from ultijobs_tui.frame import Needs, PageAsk
from ultijobs_tui.travel import Ring, Travel, moment_of


def filled(count: int, **bounds) -> Ring:
    ring = Ring(**bounds)
    for n in range(count):
        ring.add(replace(data.overview(), as_of=data.NOW + timedelta(seconds=n)))
    return ring


def test_the_ring_keeps_one_a_second_and_forgets_the_oldest() -> None:
    ring = filled(5, keep=3)
    assert not ring.add(replace(data.overview(), as_of=data.NOW + timedelta(seconds=4, milliseconds=300)))
    assert [ring.at(n) for n in range(len(ring))] == [data.NOW + timedelta(seconds=n) for n in (2, 3, 4)]
    assert ring.dropped == 2


def test_the_ring_is_bounded_in_bytes() -> None:
    one = filled(1).size
    ring = filled(20, keep_bytes=4 * one)
    assert len(ring) <= 4
    assert ring.size <= 4 * one


def test_a_quarter_of_an_hour_of_an_incident_takes_a_few_megabytes() -> None:
    assert filled(3).size / 3 * 900 < 8 * 1024 * 1024


def test_steps_lead_back_from_now_and_forward_to_the_last_moment() -> None:
    travel = Travel(filled(3))
    assert not travel.step(1)
    assert not travel.away
    assert travel.step(-1)
    assert travel.at == data.NOW + timedelta(seconds=1)
    assert travel.step(-1)
    assert not travel.step(-1)
    assert travel.at == data.NOW
    assert travel.step(1)
    assert travel.step(1)
    assert not travel.step(1)
    assert travel.away
    travel.now()
    assert not travel.away


def test_an_empty_past_leads_nowhere() -> None:
    travel = Travel(Ring())
    assert not travel.step(-1)
    assert not travel.shift(timedelta(minutes=-1))
    assert not travel.away


def test_the_moment_stays_while_the_ring_goes_on() -> None:
    ring = filled(3, keep=3)
    travel = Travel(ring)
    travel.step(-1)
    ring.add(replace(data.overview(), as_of=data.NOW + timedelta(seconds=3)))
    assert travel.at == data.NOW + timedelta(seconds=1)
    travel.step(1)
    assert travel.at == data.NOW + timedelta(seconds=2)


def test_a_time_leads_to_the_last_moment_before_it() -> None:
    travel = Travel(filled(10))
    travel.to(data.NOW + timedelta(seconds=4.5))
    assert travel.at == data.NOW + timedelta(seconds=4)
    travel.shift(timedelta(seconds=-3))
    assert travel.at == data.NOW + timedelta(seconds=1)
    travel.to(data.NOW - timedelta(hours=1))
    assert travel.at == data.NOW


def test_a_moment_answers_what_was_kept_and_tells_what_was_not() -> None:
    travel = Travel(filled(3))
    travel.step(-1)
    frame = travel.frame(Needs(causes="state:dead,failed", page=PageAsk("state:dead")))
    assert frame.causes == [s.cause for s in data.stuck() if s.cause]
    assert "not recorded" in frame.failures["jobs"]
    assert travel.frame(Needs(queues=True)).queues == data.overview().queues
    assert set(travel.frame(Needs(leases=True, workers=True, health=True)).failures) == {"leases", "workers", "health"}


@pytest.mark.parametrize(
    ("text", "at"),
    [
        ("14:02", data.NOW.replace(hour=14, minute=2, second=0)),
        ("14:02:11Z", data.NOW.replace(hour=14, minute=2, second=11)),
        ("23:59", (data.NOW - timedelta(days=1)).replace(hour=23, minute=59, second=0)),
        ("2026-03-14T14:02:11Z", data.NOW.replace(hour=14, minute=2, second=11)),
        ("25:00", None),
        ("soon", None),
    ],
)
def test_a_time_of_day_is_the_last_such_time(text, at) -> None:
    assert moment_of(text, data.NOW) == at
