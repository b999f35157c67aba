"""Tasks, the outbox and the database: where each leads, and what can be done there."""

from __future__ import annotations

from dataclasses import replace

from textual.widgets import Button

from tests.tui import data
from tests.tui.driving import Driver, driving
from tests.tui.fake import FakeSource
from ultijobs.inspection import Action, BackfillState, OutboxState
from ultijobs_tui.screens.reader import TextDialog


async def on_row(driver: Driver, tab: str, key: str) -> None:
    await driver.press(tab)
    await driver.until(lambda: driver.grid.table.rows)
    assert driver.grid.go(key)
    await driver.pilot.pause()


async def test_the_ledger_below_is_of_the_task_under_the_cursor() -> None:
    async with driving() as driver:
        await on_row(driver, "8", "sync_rates")
        await driver.sees("ledger of sync_rates", "latest 5", "older than the last 1")
        assert driver.source.fetched[-1].slots == "sync_rates"
        await driver.press("k")
        await driver.sees("ledger of nightly_digest", "latest 5")


async def test_from_a_task_to_an_occurrence_to_the_jobs_it_became() -> None:
    slots = data.slots("sync_rates")
    async with driving(FakeSource(details={slots[0].job_ids[0]: data.detail()})) as driver:
        await on_row(driver, "8", "sync_rates")
        await driver.sees("latest 5")
        await driver.press("enter", "j", "enter")
        await driver.sees("filter id:" + slots[1].job_ids[0].hex[:8])
        await driver.press("8")
        await driver.press("g", "enter")
        await driver.sees("✗ failed")


async def test_an_occurrence_that_was_missed_leads_to_no_job() -> None:
    async with driving() as driver:
        await on_row(driver, "8", "sync_rates")
        await driver.sees("latest 5")
        await driver.press("tab", "G", "enter")
        await driver.sees("it has no job")


async def test_what_comes_is_shown_in_the_zone_of_the_task() -> None:
    async with driving() as driver:
        await on_row(driver, "8", "sync_rates")
        await driver.press("i")
        await driver.until(lambda: isinstance(driver.app.screen, TextDialog))
        await driver.sees("15:20:03 CET", "14:20:03Z")


async def test_a_task_runs_only_where_its_code_is_and_the_key_says_so() -> None:
    async with driving() as driver:
        await on_row(driver, "8", "sync_rates")
        await driver.press("r")
        await driver.sees("start with ultijobs tui --app MODULE:NAME", "(r Run now)")
        assert driver.source.planned == []


async def test_a_task_runs_now_through_a_plan() -> None:
    async with driving(FakeSource(runs_tasks=True)) as driver:
        await on_row(driver, "8", "sync_rates")
        await driver.press("r")
        dialog = await driver.dialog()
        assert (dialog.plan.action, dialog.plan.target.task) == (Action.RUN_TASK, "sync_rates")
        await driver.sees("ultijobs tasks run sync_rates")
        await driver.press("escape")
        await driver.until(lambda: driver.app.screen.VIEW == "tasks")
        assert driver.source.applied == []


async def test_what_was_set_aside_is_staged_again_and_nothing_else_can_be() -> None:
    rows = data.outbox().rows
    async with driving() as driver:
        await on_row(driver, "9", str(rows[0].id))
        await driver.press("r")
        await driver.sees("only what was set aside can be staged again; this is staged")
        driver.grid.go(str(rows[3].id))
        await driver.press("r")
        dialog = await driver.dialog()
        assert (dialog.plan.action, dialog.plan.target.ids) == (Action.OUTBOX_RETRY, (rows[3].id,))
        await driver.sees(f"ultijobs outbox retry {rows[3].id}")


async def test_the_outbox_is_narrowed_to_a_state_by_the_database() -> None:
    async with driving() as driver:
        await driver.press("9", "s")
        await driver.until(lambda: driver.source.fetched[-1].outbox.state is OutboxState.SET_ASIDE)
        await driver.sees("set-aside, newest first")
        await driver.press("Y")
        assert driver.app.clipboard == "ultijobs outbox ls --state set-aside"


async def test_from_a_row_of_the_outbox_to_its_job_or_to_its_error_whole() -> None:
    rows = data.outbox().rows
    async with driving() as driver:
        await on_row(driver, "9", str(rows[3].id))
        await driver.press("enter")
        await driver.sees("Traceback (most recent call last)")
        await driver.press("escape")
        await on_row(driver, "9", str(rows[5].id))
        await driver.press("enter")
        await driver.sees("✗ failed")


async def test_what_keeps_the_outbox_is_said() -> None:
    async with driving() as driver:
        await driver.press("9")
        await driver.sees("no relay has taken it for 12m")


async def test_a_statement_is_copied_and_not_run() -> None:
    async with driving() as driver:
        await on_row(driver, "d", "snapshot:4412")
        await driver.press("y")
        assert driver.app.clipboard == "select pg_terminate_backend(4412)"
        await driver.press("enter")
        await driver.sees("insert into staging select * from feed", "by hand: select pg_terminate_backend(4412)")


async def test_from_a_backfill_to_its_run() -> None:
    async with driving() as driver:
        await on_row(driver, "7", "drop_legacy")
        await driver.press("enter")
        await driver.sees("✗ failed")


async def test_a_forced_pass_shows_what_it_would_touch_and_what_must_hold() -> None:
    async with driving() as driver:
        await on_row(driver, "7", "old_sweep")
        await driver.press("F")
        dialog = await driver.dialog()
        assert (dialog.plan.action, dialog.plan.target.backfill) == (Action.FORCE_BACKFILL, "old_sweep")
        await driver.sees("13 pages at 5/s", "✓ the migration 20260301_region is applied", "--write --force")
        assert driver.source.applied == []
        dialog.query_one("#apply", Button).press()
        await driver.until(lambda: driver.source.applied)


async def test_a_pass_that_may_not_run_shows_why_and_cannot_be_applied() -> None:
    async with driving() as driver:
        await on_row(driver, "7", "old_sweep")
        await driver.press("b")
        await driver.sees("it has completed: F forces a new pass")
        rows = [replace(data.backfills()[5], state=BackfillState.PENDING)]
        driver.source.backfills = rows
        await driver.until(lambda: len(driver.grid.table.rows) == 1)
        await driver.press("b")
        dialog = await driver.dialog()
        await driver.sees("✗ no pass of it has completed")
        assert dialog.query_one("#apply", Button).disabled


async def test_a_live_pass_is_cancelled_and_a_failed_one_goes_on_by_its_job() -> None:
    async with driving() as driver:
        for name, key, action in (("rewrite_slugs", "X", Action.CANCEL), ("fix_phone", "r", Action.RETRY)):
            await on_row(driver, "7", name)
            await driver.press(key)
            dialog = await driver.dialog()
            row = next(each for each in data.backfills() if each.name == name)
            assert (dialog.plan.action, dialog.plan.target.ids) == (action, (row.job_id,))
            await driver.press("escape")


async def test_a_stalled_pass_cannot_go_on_and_the_key_says_why() -> None:
    async with driving() as driver:
        await on_row(driver, "7", "drop_legacy")
        await driver.press("r")
        await driver.sees("its source and its count() disagree")
        await driver.press("X")
        await driver.sees("no pass of it is live")


async def test_what_is_stuck_beside_the_queue_leads_to_its_screen() -> None:
    source = FakeSource(overview=data.overview(data.stuck_around()))
    async with driving(source) as driver:
        for key, view, seen in (
            ("outbox:set-aside", "outbox", "2 set aside"),
            ("dead:attempts-exhausted:55aa", "backfills", "STALLED"),
            ("task:nightly_digest", "tasks", "ledger of nightly_digest"),
        ):
            await driver.press("1")
            await driver.until(lambda key=key: driver.grid.go(key))
            await driver.press("enter")
            await driver.until(lambda view=view: view == driver.app.screen.VIEW)
            await driver.sees(seen)


async def test_the_key_of_a_throttled_tenant_narrows_to_it() -> None:
    async with driving(FakeSource(overview=data.overview(data.stuck_around()))) as driver:
        await driver.until(lambda: driver.grid.go("tenant:t42"))
        await driver.press("t")
        await driver.until(lambda: driver.app.tenant == "t42")


async def test_a_stalled_backfill_is_no_dead_letter_to_retry() -> None:
    async with driving(FakeSource(overview=data.overview(data.stuck_around()))) as driver:
        await driver.until(lambda: driver.grid.go("dead:attempts-exhausted:55aa"))
        await driver.press("r")
        await driver.sees("only dead letters can be retried")
        assert driver.source.planned == []
