"""Every write goes through a plan, and Cancel is what enter does first."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest
from textual.widgets import Button, Input

from tests.tui import data
from tests.tui.driving import driving
from tests.tui.fake import FakeSource
from ultijobs.inspection import Action, JobPage, Refusal
from ultijobs_tui.actions import ACTIONS
from ultijobs_tui.desk import Settings
from ultijobs_tui.screens.plan import PlanDialog


def cursor_on(name: str) -> tuple[str, ...]:
    """Keys from the top of Incident to a row."""
    order = ["name", "7f3a", "billing", "w-17"]
    return ("g", *("j",) * order.index(name))


async def test_enter_in_a_fresh_dialog_cancels_and_nothing_is_applied() -> None:
    async with driving() as driver:
        await driver.press(*cursor_on("7f3a"), "r")
        dialog = await driver.dialog()
        assert isinstance(dialog.focused, Button)
        assert dialog.focused.id == "cancel"
        await driver.press("enter")
        await driver.sees("closed, nothing was changed")
        assert driver.source.applied == []


async def test_a_dialog_says_in_words_what_enter_does_where_the_focus_is() -> None:
    async with driving() as driver:
        await driver.press(*cursor_on("7f3a"), "c")
        await driver.dialog()
        await driver.sees("enter Cancel")
        await driver.press("tab")
        await driver.sees("enter Retry")
        await driver.press("tab")
        await driver.sees("enter next")


async def test_no_two_buttons_of_a_dialog_are_called_the_same() -> None:
    async with driving() as driver:
        await driver.press("3")
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("X")
        dialog = await driver.dialog()
        assert [str(button.label) for button in dialog.query(Button)] == ["Keep", "Cancel"]
        await driver.sees("enter Keep")
        await driver.press("enter")
        await driver.sees("closed, nothing was changed")
        assert driver.source.applied == []


async def test_many_retries_can_be_given_a_pace() -> None:
    async with driving() as driver:
        await driver.press(*cursor_on("7f3a"), "r")
        dialog = await driver.dialog()
        dialog.query_one("#pace", Input).focus()
        await driver.press(*"500/")
        await driver.sees("'500/' is not a pace")
        await driver.press(*"2s")
        await driver.sees("500 per batch, 2s between", "--pace 500/2s")
        await driver.press("enter", "tab", *"3902", "enter")
        await driver.until(lambda: driver.source.applied)
        assert (driver.source.applied[0].options.batch, driver.source.applied[0].options.pause.seconds) == (500, 2)


async def test_what_an_act_said_stays_with_its_screen() -> None:
    async with driving() as driver:
        await driver.press(*cursor_on("7f3a"), "r")
        await driver.dialog()
        await driver.press("enter")
        await driver.sees("closed, nothing was changed")
        await driver.press("3")
        await driver.until(lambda: "closed, nothing was changed" not in driver.text)


async def test_many_jobs_want_their_number_typed() -> None:
    async with driving() as driver:
        await driver.press(*cursor_on("7f3a"), "r")
        dialog = await driver.dialog()
        assert dialog.query_one("#apply", Button).disabled
        await driver.press("3", "9", "0", "1")
        assert dialog.query_one("#apply", Button).disabled
        await driver.press("backspace", "2", "enter")
        await driver.until(lambda: driver.source.applied)
        assert driver.source.applied[0].target.text == "state:dead,failed reason:attempts-exhausted fp:7f3a91c2d4e5"


async def test_a_canary_is_a_plan_for_one_job_and_is_followed_to_its_end() -> None:
    async with driving() as driver:
        await driver.press(*cursor_on("7f3a"), "c")
        dialog = await driver.dialog()
        assert dialog.plan.options.limit == 1
        await driver.press("tab", "enter")
        await driver.until(lambda: any(needs.watch == data.uid(1) for needs in driver.source.fetched))
        row = replace(data.detail().row, state="running", attempt=1)
        driver.source.details[data.uid(1)] = replace(data.detail(), row=row)
        await driver.sees("canary", "running, attempt 1/5")
        done = replace(row, state="done", updated_at=data.NOW + timedelta(seconds=5))
        driver.source.details[data.uid(1)] = replace(data.detail(), row=done)
        await driver.sees("is done: r retries the rest")


async def test_a_pause_takes_its_reason_and_length_and_can_be_undone() -> None:
    async with driving() as driver:
        driver.source.queues = [replace(q, state="running") for q in data.queues()]
        await driver.press("2")
        await driver.until(lambda: driver.grid.table.rows)
        driver.grid.go("mail")
        await driver.press("p")
        dialog = await driver.dialog()
        await driver.press("tab")
        dialog.query_one("#reason", Input).focus()
        await driver.press(*"down", "tab", *"30m")
        assert "--reason down --for 30m" in driver.text
        dialog.query_one("#apply", Button).press()
        await driver.until(lambda: driver.source.applied)
        [plan] = driver.source.applied
        assert (plan.action, plan.target.queue) == (Action.PAUSE, "mail")
        assert (plan.options.reason, plan.options.duration) == ("down", timedelta(minutes=30))
        await driver.press("ctrl+z")
        await driver.until(lambda: len(driver.source.applied) == 2)
        assert driver.source.applied[1].action is Action.RESUME
        await driver.sees("resumed queue mail")


async def test_a_cancel_of_what_never_started_is_taken_back_and_of_what_did_is_not() -> None:
    source = FakeSource(page=JobPage([replace(data.job(1), lease_no=0)], None, data.NOW))
    async with driving(source, Settings(view="jobs")) as driver:
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("X")
        await driver.dialog()
        await driver.press("tab", "enter")
        await driver.sees("cancelled 1", "ctrl+z undo")
        await driver.press("ctrl+z")
        await driver.until(lambda: len(source.applied) == 2)
        assert (source.applied[1].action, source.applied[1].target.act) == (Action.UNDO, data.uid(9_999))
        await driver.sees("undone: 1")
        await driver.press("ctrl+z")
        await driver.sees("nothing to undo")
        source.stays = (Refusal(data.uid(1), "X_NOT_UNDOABLE", "job 1 had started before it was cancelled"),)
        await driver.press("X")
        await driver.dialog()
        await driver.press("tab", "enter")
        await driver.until(lambda: len(source.applied) == 3)
        await driver.press("ctrl+z")
        await driver.sees("nothing to undo: job 1 had started before it was cancelled")


async def test_a_retry_is_taken_back_by_its_act_and_from_a_step_it_says_why_not() -> None:
    source = FakeSource(page=JobPage([data.dead_job(1)], None, data.NOW))
    async with driving(source, Settings(view="jobs")) as driver:
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("r")
        await driver.dialog()
        await driver.press("tab", "enter")
        await driver.sees("retried 1", "ctrl+z undo")
        await driver.press("ctrl+z")
        await driver.until(lambda: len(driver.source.applied) == 2)
        assert (driver.source.applied[1].action, driver.source.applied[1].target.act) == (Action.UNDO, data.uid(9_999))
        assert driver.source.applied[1].equivalent == f"ultijobs jobs undo {data.uid(9_999)}"
        why = "job 1 lost a step record to the retry, and they are not kept"
        driver.source.stays = (Refusal(data.uid(1), "X_NOT_UNDOABLE", why),)
        await driver.press("r")
        await driver.dialog()
        await driver.press("tab", "enter")
        await driver.until(lambda: len(driver.source.applied) == 3)
        await driver.press("ctrl+z")
        await driver.sees(f"nothing to undo: {why}")


async def test_a_dialog_tells_how_many_of_the_marked_jobs_the_list_does_not_show() -> None:
    async with driving(settings=Settings(view="jobs")) as driver:
        await driver.until(lambda: len(driver.grid.table.rows) > 3)
        await driver.press("space", "space", "space")
        driver.source.page = JobPage(data.page().rows[1:], None, data.NOW)
        await driver.sees("3 marked (1 not in this list)")
        await driver.press("X")
        dialog = await driver.dialog()
        assert len(dialog.plan.target.ids) == 3
        await driver.sees("1 of the 3 marked jobs are not in this list")


async def test_all_matching_is_the_filter_itself_and_an_empty_one_is_refused() -> None:
    async with driving(settings=Settings(where="state:dead")) as driver:
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("A", "r")
        dialog = await driver.dialog()
        assert (dialog.plan.target.text, dialog.plan.target.ids) == ("state:dead", ())
        await driver.sees("every job that matches is meant, on this page or not")
        await driver.press("escape", "escape", "escape")
        await driver.sees("all jobs")
        await driver.press("A")
        await driver.sees("an empty filter would mean everything")


async def test_an_unreadable_length_is_told_and_not_applied() -> None:
    async with driving() as driver:
        await driver.press("2")
        await driver.until(lambda: driver.grid.table.rows)
        driver.grid.go("mail")
        await driver.press("p")
        dialog = await driver.dialog()
        dialog.query_one("#for", Input).focus()
        await driver.press(*"soon")
        dialog.query_one("#apply", Button).press()
        await driver.pilot.pause()
        assert driver.source.applied == []
        assert "'soon'" in driver.text


async def test_a_retry_from_a_stored_step_names_the_step() -> None:
    async with driving(settings=Settings(job=data.uid(1).hex[-8:])) as driver:
        await driver.sees("✗ failed")
        await driver.press("g", "r")
        dialog = await driver.dialog()
        assert (dialog.plan.options.from_step, dialog.plan.target.ids) == ("load", (data.uid(1),))


async def test_a_retry_on_the_failed_step_keeps_the_stored_ones() -> None:
    async with driving(settings=Settings(job=data.uid(1).hex[-8:])) as driver:
        await driver.sees("✗ failed")
        await driver.press("r")
        assert (await driver.dialog()).plan.options.from_step is None


async def test_a_dialog_tells_what_is_refused_and_copies_the_command() -> None:
    source = FakeSource(refused=(Refusal(data.uid(2), "X_JOB_DUPLICATE", "job 1 is ready and has the same key"),))
    async with driving(source) as driver:
        await driver.press(*cursor_on("7f3a"), "r")
        dialog = await driver.dialog()
        await driver.sees("refused", "has the same key")
        await driver.press("Y")
        assert driver.app.clipboard == dialog.plan.equivalent


async def test_escape_while_applying_stops_after_the_batch_and_tells_so() -> None:
    source = FakeSource(apply_hangs=True)
    async with driving(source) as driver:
        await driver.press(*cursor_on("7f3a"), "r")
        await driver.dialog()
        await driver.press(*"3902", "enter")
        await driver.sees("500 of 3,902")
        await driver.press("escape")
        await driver.sees("stopped by hand between two batches")


async def test_an_apply_that_fails_is_told_in_the_dialog_and_can_be_closed() -> None:
    source = FakeSource()

    async def broken(plan, **kw):
        raise OSError("connection reset")

    source.apply = broken
    async with driving(source) as driver:
        await driver.press(*cursor_on("7f3a"), "c")
        await driver.dialog()
        await driver.press("tab", "enter")
        await driver.sees("connection reset")
        await driver.press("escape")
        await driver.until(lambda: not isinstance(driver.app.screen, PlanDialog))


async def test_what_can_be_taken_back_needs_no_dialog_unless_there_is_something_to_say() -> None:
    async with driving(FakeSource(page=JobPage([data.dead_job(1)], None, data.NOW))) as driver:
        await driver.press(*cursor_on("billing"), "u")
        await driver.sees("resumed queue billing", "ctrl+z undo")
        await driver.press("3")
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("r")
        await driver.dialog()
        await driver.sees("queue billing is paused: they wait until it is resumed")
        assert [plan.action for plan in driver.source.applied] == [Action.RESUME]


@pytest.mark.parametrize("view", [*"123456789"])
async def test_read_only_greys_every_act_says_why_and_plans_nothing(view: str) -> None:
    source = FakeSource(page=JobPage([data.dead_job(1)], None, data.NOW))
    async with driving(source, Settings(read_only=True)) as driver:
        await driver.press(view)
        await driver.until(lambda: driver.grid.table.rows)
        screen = driver.app.screen
        writes = [a for a in ACTIONS if a.writes and (not a.views or screen.VIEW in a.views)]
        assert writes
        for action in writes:
            await driver.press(action.keys[0])
            await driver.sees("the cockpit is read-only")
        assert source.planned == []
        assert any(f"({a.keys[0]} {a.label})" in driver.text for a in writes)


async def test_a_lost_connection_blocks_acts() -> None:
    async with driving() as driver:
        driver.source.error = OSError("connection refused")
        await driver.sees("LOST", "connection refused")
        await driver.press(*cursor_on("7f3a"), "r")
        await driver.sees("the connection is lost")
        assert driver.source.planned == []


async def test_a_plan_that_cannot_be_made_is_told() -> None:
    source = FakeSource()

    async def broken(*_a, **_kw):
        raise OSError("connection reset")

    source.plan = broken
    async with driving(source) as driver:
        await driver.press(*cursor_on("7f3a"), "r")
        await driver.sees("connection reset")
