"""What every screen looks like: full, empty, lost and read-only, and full on a small terminal."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tui import data
from tests.tui.fake import FakeSource, empty_source
from tests.tui.picturing import NARROW, cockpit, steps

SCREENS = {
    "incident": ("1", "j"),
    "queues": ("2",),
    "jobs": ("3",),
    "leases": ("4",),
    "dead": ("5",),
    "workers": ("6",),
    "backfills": ("7",),
    "tasks": ("8", "j"),
    "outbox": ("9", "j", "j", "j"),
    "activity": ("0",),
    "database": ("d",),
    "run": ("5", "tab", "enter"),
}
EMPTY = SCREENS | {"run": ("3", "enter")}
screens = pytest.mark.parametrize("screen", list(SCREENS))


@screens
def test_full(picture, screen) -> None:
    picture(cockpit(), steps(*SCREENS[screen]))


@screens
def test_full_on_80x24(picture, screen) -> None:
    picture(cockpit(), steps(*SCREENS[screen]), size=NARROW)


@screens
def test_empty(picture, screen) -> None:
    source = empty_source()
    if screen == "run":
        source.page = data.page([data.job(1)], None)
    picture(cockpit(source), steps(*EMPTY[screen]))


@screens
def test_lost(picture, screen) -> None:
    picture(cockpit(), steps(*SCREENS[screen], lost=True))


@screens
def test_read_only(picture, screen) -> None:
    picture(cockpit(read_only=True), steps(*SCREENS[screen]))


def test_incident_without_colour(picture, monkeypatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    picture(cockpit(), steps("1", "j"))


def test_incident_in_letters(picture) -> None:
    picture(cockpit(ascii_only=True), steps("1", "j"))


def test_incident_in_16_colours(picture) -> None:
    app = cockpit()
    app.theme = "ansi-dark"
    picture(app, steps("1", "j"))


def test_incident_in_the_light(picture) -> None:
    app = cockpit()
    app.theme = "ultijobs-light"
    picture(app, steps("1", "j"))


def test_a_job_that_waits_for_an_event(picture) -> None:
    source = FakeSource(page=data.page([data.sleeping_detail().row], None))
    source.details[data.sleeping_detail().row.id] = data.sleeping_detail()
    picture(cockpit(source), steps("3", "enter"))


def test_a_job_that_is_not_there(picture) -> None:
    source = FakeSource(page=data.page([data.job(77)], None))
    picture(cockpit(source), steps("3", "enter"))


def test_marked_jobs(picture) -> None:
    picture(cockpit(), steps("3", "space", "space"))


def test_an_unreadable_filter(picture) -> None:
    picture(cockpit(), steps("3", "slash", then="stat:dead"))


def test_replay(picture) -> None:
    picture(cockpit(), steps("1", "comma", "comma", "j"))


def test_replay_on_80x24(picture) -> None:
    picture(cockpit(), steps("1", "comma"), size=NARROW)


def test_dead_letters_by_tenant(picture) -> None:
    picture(cockpit(), steps("5", "v"))


def test_queues_by_tenant(picture) -> None:
    picture(cockpit(), steps("2", "v"))


def test_one_tenant(picture) -> None:
    app = cockpit()
    app.narrow("t17")
    picture(app, steps("1", "j"))


def test_what_is_stuck_beside_the_queue(picture) -> None:
    overview = data.overview(data.stuck_around())
    source = FakeSource(overview=replace(overview, stats=replace(overview.stats, outbox=data.depth())))
    picture(cockpit(source), steps("1"))
