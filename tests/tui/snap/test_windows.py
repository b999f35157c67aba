"""What the windows over a screen look like."""

from __future__ import annotations

from textual.pilot import Pilot
from textual.widgets import Input

from tests.tui import data
from tests.tui.driving import screen_text
from tests.tui.fake import FakeSource
from tests.tui.picturing import NARROW, cockpit, settle, steps
from ultijobs.inspection import Refusal
from ultijobs_tui.app import Cockpit

REFUSED = tuple(
    Refusal(data.uid(n), "X_JOB_DUPLICATE", f"job {data.uid(n + 9)} is ready and has the same key") for n in range(14)
)


def test_retry_of_a_cause(picture) -> None:
    picture(cockpit(FakeSource(refused=REFUSED)), steps("1", "j", "r"))


def test_retry_of_a_cause_on_80x24(picture) -> None:
    picture(cockpit(FakeSource(refused=REFUSED)), steps("1", "j", "r"), size=NARROW)


def test_pause_of_a_queue(picture) -> None:
    picture(cockpit(), steps("2", "j", "j", "p"))


def test_canary(picture) -> None:
    picture(cockpit(), steps("1", "j", "c"))


def test_cancel_of_one_job(picture) -> None:
    picture(cockpit(), steps("3", "X"))


def test_retry_from_a_step(picture) -> None:
    picture(cockpit(), steps("5", "tab", "enter", "g", "r"))


def test_why(picture) -> None:
    picture(cockpit(), steps("3", "h"))


def test_help(picture) -> None:
    picture(cockpit(), steps("1", "question_mark"))


def test_help_that_is_searched(picture) -> None:
    picture(cockpit(), steps("1", "question_mark", *"retry"))


def test_help_on_80x24(picture) -> None:
    picture(cockpit(), steps("5", "question_mark"), size=NARROW)


def test_input(picture) -> None:
    picture(cockpit(), steps("5", "tab", "enter", "i"))


def test_traceback(picture) -> None:
    picture(cockpit(), steps("5", "tab", "enter", "o"))


def test_export(picture) -> None:
    picture(cockpit(), steps("2", "e"))


def test_a_tenant_is_asked_for(picture) -> None:
    picture(cockpit(), steps("1", "t"))


async def _palette(pilot: Pilot[int]) -> None:
    """Opened over Incident, with something typed; the cursor stands still and the search has ended."""
    await settle(pilot)
    await pilot.press("colon")
    await pilot.pause()
    pilot.app.screen.query_one(Input).cursor_blink = False
    await pilot.press(*"queue b")
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    app = pilot.app
    assert isinstance(app, Cockpit)
    app.shown = screen_text(app)


def test_commands(picture) -> None:
    picture(cockpit(), _palette)
