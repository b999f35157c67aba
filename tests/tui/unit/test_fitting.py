"""Acts that a plan would refuse are known before: from what the screen shows, without a question to the database."""

from __future__ import annotations

from dataclasses import replace

import pytest

from tests.tui import data
from ultijobs.inspection import BackfillRow, BackfillState, JobRow
from ultijobs_tui.present.fitting import standing, unfit_for, unfit_for_queue
from ultijobs_tui.screens.backfills import unfit_backfill
from ultijobs_tui.screens.marks import Marks

BACKFILL = next(row for row in data.backfills() if row.state is BackfillState.COMPLETED)
MOVED = replace(data.job(1, "cancelled"), error_code="X_JOB_MOVED")
HELD = replace(data.job(2), behind=data.uid(2))


@pytest.mark.parametrize(
    ("row", "retry", "cancel"),
    [
        (data.dead_job(1), True, False),
        (data.job(1, "cancelled"), True, False),
        (data.job(1, "done"), False, False),
        (data.job(1, "ready"), False, True),
        (data.job(1, "delayed"), False, True),
        (data.job(1, "suspended"), False, True),
        (MOVED, False, False),
        (HELD, False, False),
    ],
)
def test_a_job_takes_the_acts_of_its_state_and_one_that_has_moved_none(row: JobRow, retry: bool, cancel: bool) -> None:
    assert (unfit_for("retry", {standing(row)}) is None) is retry
    assert (unfit_for("cancel", {standing(row)}) is None) is cancel
    assert unfit_for("open", {standing(row)}) is None


def test_marked_jobs_take_what_fits_one_of_them_and_a_filter_what_fits_a_state_of_it() -> None:
    marks = Marks()
    marks.add([data.job(1, "ready"), data.job(2, "running")])
    assert marks.unfit("cancel", None, "") is None
    assert marks.unfit("retry", None, "") == "only what has stopped can be retried; this is ready, running"
    marks.add([data.dead_job(3)])
    assert marks.unfit("retry", None, "") is None
    marks.mark_all()
    assert marks.unfit("cancel", None, "state:dead queue:billing") == "only what lives can be cancelled; this is dead"
    assert marks.unfit("retry", None, "state:dead queue:billing") is None
    assert marks.unfit("retry", None, "queue:billing") is None
    assert marks.unfit("retry", None, "") == "an empty filter would mean everything: filter first"


def test_a_queue_is_paused_or_resumed_as_it_stands() -> None:
    overview = data.overview()
    assert unfit_for_queue("pause", "billing", overview) == "this queue is paused already"
    assert unfit_for_queue("resume", "billing", overview) is None
    assert unfit_for_queue("resume", "mail", overview) == "this queue is not paused"
    assert unfit_for_queue("pause", "mail", overview) is None
    assert unfit_for_queue("pause", "brand-new", overview) is None
    assert unfit_for_queue("resume", "billing", None) is None
    assert unfit_for_queue("pause", None, overview) == "this row is not about one queue: choose it on 2"


@pytest.mark.parametrize(
    ("act", "row", "why"),
    [
        ("start", BACKFILL, "it has completed: F forces a new pass"),
        ("force", BACKFILL, None),
        ("start", replace(BACKFILL, state=BackfillState.RUNNING), "a pass of it is live already"),
        ("force", replace(BACKFILL, state=BackfillState.RUNNING), "a pass of it is live already"),
        (
            "force",
            replace(BACKFILL, state=BackfillState.EXCLUDED, environments=("prod",), environment="staging"),
            "it belongs to prod; here is staging",
        ),
        ("start", replace(BACKFILL, declared=False), "the application does not declare it any more"),
        ("start", replace(BACKFILL, state=BackfillState.CANCELLED), None),
        (
            "retry",
            replace(BACKFILL, state=BackfillState.FAILED, job_state=None),
            "the job of its last pass is not kept any more: b starts a new one",
        ),
        ("resume", replace(BACKFILL, queue=None), "its queue is not known"),
    ],
)
def test_a_backfill_takes_the_acts_of_its_state(act: str, row: BackfillRow, why: str | None) -> None:
    assert unfit_backfill(act, row) == why
