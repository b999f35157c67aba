"""What the short lists say: leases, workers, backfills, tasks, outbox, activity, database. Pure functions."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.tui import data
from tests.tui.fake import FakeSource, empty_source
from ultijobs.inspection import BackfillState, Count, OutboxDepth, OutboxState
from ultijobs_tui.frame import ActivityAsk, Frame, Needs, OutboxAsk
from ultijobs_tui.history import History
from ultijobs_tui.look import Look
from ultijobs_tui.paint import line_text
from ultijobs_tui.present.activity import activity_table, activity_text
from ultijobs_tui.present.backfills import backfill_panel, backfill_table, share_of, state_word
from ultijobs_tui.present.database import database_table, facts_of
from ultijobs_tui.present.finding import exactly, holds
from ultijobs_tui.present.leases import lease_panel, lease_table, leases_summary, step_words
from ultijobs_tui.present.outbox import blocker_line, outbox_summary, outbox_table
from ultijobs_tui.present.tasks import slot_table, task_table, tasks_summary, upcoming_text
from ultijobs_tui.present.worker import worker_panel
from ultijobs_tui.present.workers import instance_of, worker_table, workers_summary
from ultijobs_tui.table import Line, Span, Table, line

LOOK = Look(data.NOW)
LEASES = Needs(leases=True, workers=True)
WORKERS = Needs(workers=True, leases=True, leader=True)
OUTBOX = Needs(outbox=OutboxAsk(), health=True)


def frame(needs: Needs, source: FakeSource | None = None) -> Frame:
    return (source or FakeSource()).frame(needs)


def keys(table: Table) -> list[str]:
    return [row.key for row in table.rows]


def texts(table: Table, title: str) -> list[str]:
    at = [column.title for column in table.columns].index(title)
    return [row.cells[at].text for row in table.rows]


def said(*lines: Line) -> str:
    return "\n".join(line_text(each, 200) for each in lines)


def words(parts: list[str | Span]) -> str:
    return line_text(line(*parts), 200)


# -- finding -------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("find", "found"),
    [
        ("", True),
        ("EXPORT w-1", True),
        ("worker:w-1", False),
        ("worker:w-17", True),
        ("worker:w-17 step:render nothing", False),
        ("unknown:w-17", False),
        ('step:"render page"', False),
    ],
)
def test_each_word_must_be_there_and_a_named_one_whole(find: str, found: bool) -> None:
    assert holds(find, {"job": "export_csv", "worker": "w-17", "step": "render"}) is found


@pytest.mark.parametrize("value", ["w-17", "web-3:4711", "two words"])
def test_the_word_for_a_value_finds_exactly_it(value: str) -> None:
    assert holds(exactly("worker", value), {"worker": value})
    assert not holds(exactly("worker", value), {"worker": f"{value}x"})


# -- leases --------------------------------------------------------------------------------------------
def test_the_lease_that_ends_first_leads_and_one_that_has_ended_says_since_when() -> None:
    table = lease_table(frame(LEASES), LOOK)
    assert keys(table)[0] == str(data.leases()[0].id)
    assert texts(table, "LEASE LEFT")[0] == "expired 3m32s"
    assert texts(table, "NOTE")[:3] == ["worker gone"] * 3


@pytest.mark.parametrize(("sort", "first"), [("running", 5), ("worker", 5), ("job", 3)])
def test_leases_are_sorted_as_asked(sort: str, first: int) -> None:
    assert keys(lease_table(frame(LEASES), LOOK, sort=sort))[0] == str(data.leases()[first].id)


def test_a_lease_that_has_ended_says_what_becomes_of_its_job() -> None:
    asked = frame(LEASES)
    assert "runs again as soon as" in said(*lease_panel(data.leases()[0], asked, LOOK))
    assert "this was the last attempt" in said(*lease_panel(data.leases()[1], asked, LOOK))


def test_the_step_of_a_claim_that_was_not_renewed_is_not_told_yet() -> None:
    steps = {row.key: row.cells[2].text for row in lease_table(frame(LEASES), LOOK).rows}
    new, renewed, step = (data.leases()[n] for n in (6, 4, 7))
    assert [steps[str(lease.id)] for lease in (new, renewed, step)] == ["not told yet", "–", "welcome"]
    assert step_words(new, data.workers()[0], short=True) == "not yet"
    assert "step not told yet" in said(*lease_panel(new, frame(LEASES), LOOK))


def test_the_leases_are_counted_with_those_that_nobody_holds_any_more() -> None:
    assert words(leases_summary(frame(LEASES))) == "8 running · 3 expired · 3 on a worker that is gone"


# -- workers -------------------------------------------------------------------------------------------
def test_trouble_leads_and_a_gone_worker_that_left_jobs_is_trouble() -> None:
    table = worker_table(frame(WORKERS), History(), LOOK)
    assert texts(table, "WORKER")[:3] == ["w-02", "w-17", "w-11"]
    assert texts(table, "WORKER")[-1] == "w-16"
    assert texts(table, "STATE")[:3] == ["WEDGED", "GONE 4m02s", "DRAINING"]


def test_rates_of_a_worker_are_told_once_ten_seconds_are_known() -> None:
    history, rows = History(), data.workers()
    history.add_workers(data.ago(seconds=30), data.workers_before())
    assert history.worker_per_minute(rows[0].instance, ("done",)) is None
    history.add_workers(data.NOW, rows)
    assert history.worker_per_minute(rows[0].instance, ("done",)) == 28
    assert history.worker_per_minute(rows[0].instance, ("retried", "dead")) == 380


def test_the_workers_are_counted_by_what_they_are() -> None:
    summary = words(workers_summary(frame(WORKERS)))
    assert summary == "6 workers · 1 wedged · 1 draining · 1 drained · 1 gone · 55/240 slots busy"


def test_a_name_means_the_process_that_lives() -> None:
    old, new = data.worker(1, "w-1", "gone"), data.worker(2, "w-1")
    assert instance_of([new, old], "w-1") == new.instance
    assert instance_of([old], "w-1") == old.instance
    assert instance_of([old], "w-2") is None


def test_a_worker_tells_what_it_holds_and_who_leads() -> None:
    text = said(*worker_panel(data.workers()[3], frame(WORKERS), LOOK))
    assert "3 jobs, 3 past their lease" in text
    assert "node-1:77 lease 22s" in text
    assert "any worker of the application takes them over" in text
    assert "free slots –" in text


def test_no_worker_says_how_many_jobs_wait() -> None:
    source = empty_source()
    table = worker_table(frame(WORKERS, source), History(), LOOK)
    assert "12 jobs are due" in said(*table.empty)


# -- backfills -----------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "share"),
    [
        ({"rows": 300, "remaining": Count(100)}, 0.75),
        ({"rows": 999_999, "remaining": Count(1, "estimate")}, 0.99),
        ({"rows": 300, "remaining": Count(0, "estimate")}, None),
        ({"rows": 300, "remaining": None}, None),
        ({"rows": 0, "remaining": Count(0)}, 0.0),
        ({"state": BackfillState.COMPLETED, "rows": 300}, 1.0),
    ],
)
def test_a_pass_is_done_only_at_its_end_and_unknown_when_nobody_knows(
    values: dict[str, Any], share: float | None
) -> None:
    assert share_of(replace(data.backfills()[1], **values)) == share


def test_a_backfill_says_that_it_is_stalled_or_waits() -> None:
    assert [state_word(row) for row in data.backfills()] == [
        "STALLED", "running", "waits: worker", "FAILED", "pending", "completed", "excluded",
    ]  # fmt: skip


def test_a_live_pass_shows_how_its_pace_went_since_it_is_looked_at() -> None:
    row, history = data.backfills()[1], History()
    assert row.run_id is not None
    assert "rows/s" not in said(*backfill_panel(row, history, LOOK))
    for n, rows in enumerate((0, 1_000, 1_500, 1_500, 3_500)):
        history.add_passes(data.NOW + timedelta(seconds=2 * n), {row.run_id: rows})
    assert history.pass_rates(row.run_id, 24) == [500, 250, 0, 1_000]
    assert history.pass_rates(row.run_id, 2) == [375, 500]
    assert "rows/s ▅▃▁█ · running" in said(*backfill_panel(row, history, LOOK))
    stopped = replace(row, state=BackfillState.COMPLETED)
    assert "rows/s" not in said(*backfill_panel(stopped, history, LOOK))


def test_backfills_show_their_pace_and_when_they_are_done() -> None:
    table = backfill_table(frame(Needs(backfills=True)), LOOK, sort="left")
    assert keys(table)[0] == "rewrite_slugs"
    assert (texts(table, "LEFT")[0], texts(table, "ROWS/s")[0], texts(table, "ETA")[0]) == ("~796k", "4,980", "2m40s")


# -- tasks ---------------------------------------------------------------------------------------------
def test_tasks_that_fail_or_are_late_lead() -> None:
    table = task_table(frame(Needs(tasks=True)), LOOK)
    assert keys(table) == ["invoices", "nightly_digest", "sync_rates", "cleanup"]
    assert texts(table, "LATE")[1] == "16m"
    assert texts(table, "NEXT")[-1] == "unknown"


def test_a_schedule_without_a_leader_says_for_how_long() -> None:
    source = FakeSource(leader=replace(data.leader(), lease_until=data.ago(minutes=16)))
    assert "NONE for 16m (last node-1:77)" in words(tasks_summary(frame(Needs(tasks=True, leader=True), source)))


def test_a_line_of_the_ledger_may_stand_for_many_occurrences() -> None:
    table = slot_table(data.slots("sync_rates"), None, LOOK)
    assert texts(table, "OCCURRENCE")[3] == "13:30:00 to 14:00:00"
    assert (texts(table, "SLOTS")[3], texts(table, "OUTCOME")[3]) == ("7", "missed")


def test_what_comes_is_told_in_both_clocks() -> None:
    assert upcoming_text(data.task_detail()).splitlines()[0] == "Sat 2026-03-14 15:20:03 CET   14:20:03Z"


# -- outbox --------------------------------------------------------------------------------------------
def test_the_outbox_says_what_keeps_rows_from_the_queue() -> None:
    source = FakeSource()
    assert "no relay has taken it for 12m" in said(blocker_line(frame(OUTBOX, source), LOOK))
    for depth in (OutboxDepth(Count(3), data.ago(seconds=1), Count(0)), OutboxDepth(Count(0), None, Count(0))):
        source.depth = depth  # Nobody sees the rows of a transaction before it commits: none need be there.
        assert 'not committed yet pid 4412 "importer": transaction open' in said(
            blocker_line(frame(OUTBOX, source), LOOK)
        )
    source.health = replace(data.health(), snapshots=[])
    assert "nothing waits" in said(blocker_line(frame(OUTBOX, source), LOOK))
    source.depth = OutboxDepth(Count(3), data.ago(seconds=1), Count(0))
    assert "it is on its way" in said(blocker_line(frame(OUTBOX, source), LOOK))


def test_the_outbox_tells_its_backlog_and_who_published_last() -> None:
    text = words(outbox_summary(frame(OUTBOX), LOOK))
    assert text == "backlog 12 · oldest 12m00s !! · 2 set aside · last published 2s ago by relay-1"


def test_a_row_set_aside_with_another_says_with_which() -> None:
    table = outbox_table(frame(OUTBOX), LOOK, find="state:set-aside")
    assert len(table.rows) == 2
    assert f"set aside with …{data.uid(110_003).hex[-8:]}" in texts(table, "ERROR")[1]


def test_a_state_that_no_row_is_in_is_named() -> None:
    table = outbox_table(frame(Needs(outbox=OutboxAsk(OutboxState.STAGED)), empty_source()), LOOK)
    assert "No row is staged." in said(*table.empty)


# -- activity ------------------------------------------------------------------------------------------
def test_an_act_tells_how_it_ended_or_that_it_did_not() -> None:
    table = activity_table(frame(Needs(activity=ActivityAsk())), LOOK)
    assert texts(table, "RESULT") == [
        "under way …", "✓ 1 of 1", "✓ 1 of 1", "✓ 200, 12 refused", "✓ 1 of 1", "✗ 1 failed of 4", "? open 1d2h",
    ]  # fmt: skip
    assert texts(table, "ACTION")[1] == "retry from charge (canary)"


def test_an_act_is_told_whole_with_its_command() -> None:
    text = activity_text(data.activity()[1])
    assert "with from_step" in text
    assert text.splitlines()[-1].endswith("--from-step charge --limit 1")


# -- database ------------------------------------------------------------------------------------------
def test_what_is_wrong_with_the_database_leads_each_with_a_statement() -> None:
    facts = facts_of(data.health(), LOOK)
    wrong = [fact.key for fact in facts if fact.severity]
    assert wrong == [
        "blocked:5177", "index:x_jobs_due_ccnew", "connections", "snapshot:4412", "clock", "table:x_jobs",
    ]  # fmt: skip
    assert all(fact.statement for fact in facts)


def test_a_session_that_is_soon_over_is_no_line_and_an_old_one_is_urgent() -> None:
    session = data.health().snapshots[0]
    old = replace(session, pid=1, age_ms=16 * 60_000)
    brief = replace(session, pid=2, age_ms=90)
    facts = {fact.key: fact for fact in facts_of(replace(data.health(), snapshots=[old, brief]), LOOK)}
    assert facts["snapshot:1"].severity == 2
    assert "snapshot:2" not in facts


def test_what_a_store_cannot_answer_is_not_shown_as_zero() -> None:
    table = database_table(frame(Needs(health=True), empty_source()), LOOK)
    assert keys(table) == ["server"]


@pytest.mark.parametrize(
    ("part", "needs"),
    [
        ("leases", LEASES),
        ("workers", WORKERS),
        ("backfills", Needs(backfills=True)),
        ("tasks", Needs(tasks=True)),
        ("outbox", OUTBOX),
        ("activity", Needs(activity=ActivityAsk())),
        ("health", Needs(health=True)),
    ],
)
def test_a_part_that_cannot_be_read_says_why_in_place_of_its_rows(part: str, needs: Needs) -> None:
    failed = frame(needs, FakeSource(failures={part: "statement timeout"}))
    tables = {
        "leases": lambda: lease_table(failed, LOOK),
        "workers": lambda: worker_table(failed, History(), LOOK),
        "backfills": lambda: backfill_table(failed, LOOK),
        "tasks": lambda: task_table(failed, LOOK),
        "outbox": lambda: outbox_table(failed, LOOK),
        "activity": lambda: activity_table(failed, LOOK),
        "health": lambda: database_table(failed, LOOK),
    }
    table = tables[part]()
    assert table.rows == ()
    assert "?? statement timeout" in said(*table.empty)


def test_a_lease_just_renewed_is_a_full_bar_however_short_leases_are() -> None:
    short = [data.lease(1, "a", "w-1", 4, 1), data.lease(2, "b", "w-1", 2, 1)]
    table = lease_table(frame(LEASES, FakeSource(leases=short)), LOOK)
    bars = [text.count("▇") for text in texts(table, "LEASE LEFT")]
    assert bars == [4, 9]
    assert data.NOW + timedelta(seconds=4) == short[0].lease_until
