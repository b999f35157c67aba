"""What screens say, without a screen."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta

import pytest

from tests.tui import data
from tests.tui.data import NOW
from tests.tui.fake import FakeSource
from ultijobs.inspection import (
    Action,
    Count,
    JobState,
    Plan,
    PlanOptions,
    Progress,
    Refusal,
    StopReason,
    StuckKind,
    Target,
    WaitingOn,
)
from ultijobs_tui.acting import summary
from ultijobs_tui.following import Following
from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.history import History
from ultijobs_tui.look import Look
from ultijobs_tui.paint import line_text, table_text
from ultijobs_tui.present.causes import cause_panel, cause_where
from ultijobs_tui.present.filters import filter_error, of_tenant, quoted
from ultijobs_tui.present.incident import gauges, incident_table, pace, press_of, stuck_panel
from ultijobs_tui.present.jobs import stands_since, waits_for
from ultijobs_tui.present.plan import command_lines, confirm_word, plan_lines
from ultijobs_tui.present.queues import queue_table
from ultijobs_tui.present.run import retry_line, step_table, telling_step
from ultijobs_tui.present.texts import pretty, whole_error
from ultijobs_tui.present.timeline import Scale, axis, bar
from ultijobs_tui.screens.marks import Marks

LOOK = Look(NOW)


def frame(needs: Needs, source: FakeSource | None = None) -> Frame:
    return (source or FakeSource()).frame(needs)


def said(lines: list) -> str:
    return "\n".join(line_text(line, 200) for line in lines)


# -- incident ------------------------------------------------------------------------------------------
def test_the_worst_is_first_and_the_oldest_of_the_worst_before_that() -> None:
    table = incident_table(frame(Needs(overview=True)), LOOK)
    assert [row.key for row in table.rows][:3] == [
        "queue:legacy", "dead:attempts-exhausted:7f3a91c2d4e5", "queue:billing",
    ]  # fmt: skip


def test_a_row_keeps_its_place_while_only_its_count_changes() -> None:
    before = [row.key for row in incident_table(frame(Needs(overview=True)), LOOK).rows]
    lines = [replace(s, count=Count(s.count.value * 7), last=NOW) for s in data.stuck()]
    after = incident_table(frame(Needs(overview=True), FakeSource(overview=data.overview(lines))), LOOK)
    assert [row.key for row in after.rows] == before


def test_every_stuck_row_says_which_key_helps() -> None:
    for row in incident_table(frame(Needs(overview=True)), LOOK).rows:
        assert row.cells[-1].text.split()[0] in {"c", "u", "w", "enter", "ctrl+r"}


def test_nothing_stuck_is_said_with_the_numbers_that_prove_it() -> None:
    table = incident_table(frame(Needs(overview=True), FakeSource(overview=data.calm())), LOOK)
    assert table_text(table, 120) == [
        "Nothing is stuck. oldest ready 0.8s · 0 dead · 8/20 slots busy on 2 workers",
    ]


def test_a_calm_queue_without_a_worker_says_how_to_start_one() -> None:
    calm = replace(data.calm(), workers=0)
    table = incident_table(frame(Needs(overview=True), FakeSource(overview=calm)), LOOK)
    assert table_text(table, 120)[1] == "No worker is running: ultijobs worker starts one."


def test_a_panel_tells_who_paused_a_queue_and_for_how_long() -> None:
    overview = data.overview()
    paused = next(s for s in overview.stuck if s.key == "queue:billing")
    text = said(stuck_panel(paused, overview, History(), LOOK))
    assert 'paused 6m01s ago by ops "provider down" · until somebody resumes it' in text
    assert "press u resume" in text


def test_panels_of_what_waits_for_a_worker_say_how_to_start_one() -> None:
    overview = data.overview()
    queue = replace(overview.queues[0], queue="ocr", state="unserved", workers=0)
    nobody = replace(overview, queues=[queue], workers=0)
    shown = overview.stuck[0]
    unserved = replace(shown, kind=StuckKind.NO_WORKER, queue="ocr", cause=None)
    assert "start one: ultijobs worker --queues ocr" in said(stuck_panel(unserved, nobody, History(), LOOK))
    lapsed = replace(shown, kind=StuckKind.LEASE, queue=None, cause=None)
    text = said(stuck_panel(lapsed, nobody, History(), LOOK))
    assert "as soon as any worker of the application looks" in text
    assert "none is running: ultijobs worker" in text
    assert "none is running" not in said(stuck_panel(lapsed, overview, History(), LOOK))
    unknown = replace(unserved, queue=None)
    assert "start a worker of the release that declares it" in said(stuck_panel(unknown, nobody, History(), LOOK))
    late = replace(shown, kind=StuckKind.CRON, queue=None, cause=None, where=None, held_by=None)
    assert "no scheduler leads: ultijobs scheduler" in said(stuck_panel(late, nobody, History(), LOOK))
    assert "list" not in said(stuck_panel(late, nobody, History(), LOOK))


def test_runs_that_meet_other_code_are_opened_and_not_retried_first() -> None:
    overview = data.overview()
    shown = next(stuck for stuck in overview.stuck if stuck.cause is not None)
    assert shown.cause is not None
    changed = replace(shown, cause=replace(shown.cause, stop_reason=StopReason.CODE_CHANGED))
    assert press_of(changed, LOOK) == ("enter", "jobs")
    assert press_of(shown, LOOK) == ("c", "canary")


def test_gauges_show_a_trend_only_between_exact_counts() -> None:
    history = History()
    first = data.overview()
    history.add(replace(first, as_of=NOW - timedelta(seconds=30)))
    totals = dict(first.stats.totals) | {"dead": Count(4_200), "delayed": Count(10_000, "capped")}
    later = replace(first, stats=replace(first.stats, totals=totals))
    history.add(later)
    text = line_text(gauges(later, history, LOOK), 200)
    assert "dead 4,200↑" in text
    assert "delayed 10,000+ " in text


# -- causes --------------------------------------------------------------------------------------------
def test_a_cause_is_found_by_its_fingerprint_else_by_its_code() -> None:
    cause = data.causes()[0]
    assert cause_where(cause) == "state:dead,failed reason:attempts-exhausted fp:7f3a91c2d4e5"
    coded = replace(cause, fingerprint=None)
    assert cause_where(coded) == "state:dead,failed reason:attempts-exhausted code:builtins.TimeoutError"
    assert cause_where(replace(coded, error_code=None)) is None


@pytest.mark.parametrize(
    ("retried", "died", "reason", "words"),
    [
        (12, 12, "attempts-exhausted", "retry is not working yet"),
        (12, 1, "attempts-exhausted", "retry works"),
        (0, 0, "attempts-exhausted", "none yet"),
        (0, 0, "terminal", "fails the same way until the code changes"),
    ],
)
def test_a_panel_says_what_became_of_those_retried(retried: int, died: int, reason: str, words: str) -> None:
    cause = replace(data.causes()[0], retried=retried, died_again=died, stop_reason=reason)
    assert words in said(cause_panel(cause, History(), LOOK))


def test_an_error_that_the_title_of_a_panel_has_no_room_for_is_told_whole_below_it() -> None:
    error = (
        "json.decoder.JSONDecodeError: Unterminated string starting at: line 1 column 11 (char 10) (not retried: " * 2
    )
    cause = replace(data.causes()[0], error=error)
    text = said(cause_panel(cause, History(), LOOK))
    assert error.strip() in " ".join(text.split())
    assert len(cause_panel(cause, History(), LOOK)) == len(cause_panel(data.causes()[0], History(), LOOK)) + 2


# -- queues --------------------------------------------------------------------------------------------
def test_a_cause_shows_how_fast_it_grows() -> None:
    history, cause = History(), data.causes()[0]
    assert " rate " not in said(cause_panel(cause, history, LOOK))
    for n, count in enumerate((100, 100, 110, 150)):
        line = replace(data.stuck()[1], cause=replace(cause, count=Count(count)))
        history.add(replace(data.overview([line]), as_of=NOW + timedelta(seconds=10 * n)))
    assert history.dying(cause, 8) == [0, 1, 4]
    assert "rate 100/min ▁▃█" in said(cause_panel(cause, history, LOOK))
    assert history.dying_per_minute(replace(cause, fingerprint="other")) is None


def history_of(*ready: int) -> History:
    history = History()
    for n, value in enumerate(ready):
        row = replace(data.queues()[4], ready=Count(value))
        history.add_queues(NOW + timedelta(seconds=20 * n), [row])
    return history


@pytest.mark.parametrize(
    ("ready", "eta"),
    [((100,), "–"), ((100, 100, 110), "growing"), ((100, 80, 60), "1m00s"), ((60, 60, 60), "steady")],
)
def test_an_eta_is_told_when_there_is_enough_to_tell_it(ready: tuple[int, ...], eta: str) -> None:
    row = replace(data.queues()[4], ready=Count(ready[-1]))
    table = queue_table(frame(Needs(queues=True), FakeSource(queues=[row])), history_of(*ready), LOOK)
    assert table.rows[0].cells[4].text == eta


def test_a_paused_or_unserved_queue_never_gets_done() -> None:
    table = queue_table(frame(Needs(queues=True)), History(), LOOK)
    etas = {row.key: row.cells[4].text for row in table.rows}
    assert (etas["billing"], etas["legacy"], etas["default"]) == ("never", "never", "–")


@pytest.mark.parametrize(("sort", "first"), [("oldest", "legacy"), ("ready", "billing"), ("name", "billing")])
def test_queues_are_sorted_as_asked(sort: str, first: str) -> None:
    assert queue_table(frame(Needs(queues=True)), History(), LOOK, sort=sort).rows[0].key == first


# -- jobs ----------------------------------------------------------------------------------------------
@pytest.mark.parametrize(
    ("values", "words"),
    [
        ({"waiting_on": WaitingOn.PAUSED}, "queue paused"),
        ({"waiting_on": WaitingOn.BACKOFF, "error_code": "httpx.ReadTimeout"}, "backoff after httpx.ReadTimeout"),
        ({"waiting_on": WaitingOn.BEHIND, "behind": data.uid(7)}, f"its twin …{data.uid(7).hex[-8:]}"),
        ({"state": "running", "running_step": "render"}, "in step render"),
        ({"state": "running", "progress": Progress(5, 20, "rows")}, "running · 5 of 20 (25%) · rows"),
        ({"state": "running", "progress": Progress(1_250_000, None, "rows")}, "running · 1,250,000 · rows"),
        ({"state": "running", "progress": Progress(0.5, 2, None)}, "running · 0.50 of 2 (25%)"),
        ({"state": "cancelled", "cancel_reason": "twice"}, "cancelled: twice"),
        ({"state": "hibernating"}, "–"),
    ],
)
def test_a_job_says_what_it_waits_for_or_does(values: dict, words: str) -> None:
    assert waits_for(replace(data.job(1), **values)) == words


def test_an_age_counts_since_due_since_start_or_since_the_stop() -> None:
    row = data.job(1, started_at=NOW, finished_at=None)
    assert stands_since(row) == row.due_at
    assert stands_since(replace(row, state="running")) == NOW
    assert stands_since(replace(row, state="dead", finished_at=NOW)) == NOW


# -- marks ---------------------------------------------------------------------------------------------
def test_an_act_fits_when_one_of_the_marked_states_does() -> None:
    marks = Marks()
    marks.add([data.dead_job(1), data.job(2)])
    assert marks.unfit("retry", None, "") is None
    assert marks.unfit("cancel", None, "") is None
    marks.clear()
    marks.toggle(data.dead_job(1))
    assert "only what lives can be cancelled; this is dead" in str(marks.unfit("cancel", None, ""))


def test_a_mark_is_judged_by_its_newest_state() -> None:
    marks = Marks()
    marks.toggle(data.dead_job(1))
    marks.seen([data.job(1)])
    assert marks.unfit("retry", None, "") is not None


def test_all_matching_is_refused_for_an_empty_filter() -> None:
    marks = Marks()
    marks.mark_all()
    assert "everything" in str(marks.unfit("retry", None, ""))
    assert marks.unfit("retry", None, "state:dead") is None


# -- run -----------------------------------------------------------------------------------------------
def test_the_step_that_failed_is_the_one_to_look_at() -> None:
    assert telling_step(data.detail()) == "charge"
    assert telling_step(data.sleeping_detail()) == "approval"


def test_a_retry_from_a_stored_step_names_what_is_lost() -> None:
    detail = data.detail()
    assert "keeps load, reserve · runs again charge" in line_text(retry_line(detail, detail.steps[2]), 200)
    assert "keeps load · runs again reserve, charge" in line_text(retry_line(detail, detail.steps[1]), 200)
    assert "keeps nothing · runs again load, reserve, charge" in line_text(retry_line(detail, detail.steps[0]), 200)


def test_a_status_of_a_newer_release_is_shown_as_it_is() -> None:
    detail = data.detail()
    newer = replace(detail, steps=[replace(detail.steps[0], status="hibernating")])
    assert step_table(newer, LOOK).rows[0].cells[2].text == "hibernating"


def test_the_running_step_is_known_from_the_lease() -> None:
    detail = data.detail()
    row = replace(
        detail.row, state="running", running_step="receipt", started_at=NOW - timedelta(seconds=3), finished_at=None
    )
    last = step_table(replace(detail, row=row), LOOK).rows[-1]
    assert (last.key, last.cells[2].text, last.cells[4].text) == ("receipt", "▶ running", "3.0s")


def test_spans_are_drawn_where_they_were_and_clamped() -> None:
    scale = Scale(NOW, NOW + timedelta(seconds=10), 10)
    at = lambda s: NOW + timedelta(seconds=s)  # noqa: E731 - one line of arithmetic
    assert bar([(at(0), at(1.5)), (at(5), at(5))], scale) == "▇▇···▇"
    assert bar([(at(2), at(99))], scale, waiting=True) == "  ········"
    assert bar([], scale) == ""
    assert Scale(NOW, NOW, 10).at(at(4)) == 0


@pytest.mark.parametrize(
    ("minutes", "width", "drawn"),
    [
        (15, 40, "14:16     14:20        14:25"),
        (300, 40, "14:16        16:00   17:00   18:00"),
        (60 * 24 * 3, 60, "03-14 14:16                 03-16 00:00         03-17 00:00"),
        (4, 40, "14:16:03           14:18:00  14:19:00"),
        (0.5, 40, "14:16:03     +10.0s       +20.0s"),
        (0.01, 30, "14:16:03  +200ms    +400ms"),
        (0, 40, "14:16:03"),
        (15, 3, "14:"),
    ],
)
def test_the_axis_has_as_many_times_as_fit(minutes: float, width: int, drawn: str) -> None:
    scale = Scale(NOW, NOW + timedelta(minutes=minutes), width)
    assert axis(scale) == drawn


def test_the_drawing_of_steps_has_what_their_columns_leave() -> None:
    detail = data.detail()
    for width in (80, 120, 160):
        table = step_table(detail, replace(LOOK, width=width))
        room = dict(table.layout(width - 2))[6]
        assert max(len(row.cells[6].text) for row in table.rows) == room
        assert table.columns[6].title.startswith("14:01")
        assert len(table.columns[6].title) <= room


# -- texts and filters ---------------------------------------------------------------------------------
def test_an_input_is_broken_into_lines_and_cut_when_it_is_long() -> None:
    assert pretty('{"a":1}') == '{\n  "a": 1\n}'
    assert pretty("not json") == "not json"
    assert pretty("x" * 70_000).endswith("70,000 characters in all")


def test_the_whole_error_has_every_attempt_the_newest_first() -> None:
    text = whole_error(data.detail())
    assert text.startswith("attempt 5 · dead")
    assert text.count("attempt ") == 5


def test_the_word_for_a_tenant_is_quoted_where_it_must_be() -> None:
    assert of_tenant("t 1") == 'tenant:"t 1"'
    assert of_tenant(None) == ""


def test_a_filter_error_names_what_to_write() -> None:
    assert filter_error("state:dead") is None
    assert "unknown key 'stat'" in said([filter_error("stat:dead")])


@pytest.mark.parametrize("value", ["plain", "two words", 'a"b', "a,b", "-x", "ü"])
def test_a_quoted_value_reads_back_as_itself(value: str) -> None:
    from ultijobs.inspection import Field, parse_where  # noqa: PLC0415

    assert parse_where(f"key:{quoted(value)}").values(Field.KEY) == (value,)


# -- plans ---------------------------------------------------------------------------------------------
async def plan(action: Action = Action.RETRY, count: int | Count = 3_902, **values: object) -> Plan:
    source = FakeSource(matched=count if isinstance(count, Count) else Count(count))
    target = Target(queue="mail") if action is Action.PAUSE else "state:dead fp:7f3a91"
    return replace(await source.plan(action, target, PlanOptions()), **values)


@pytest.mark.parametrize(
    ("action", "count", "word"),
    [
        (Action.RETRY, 20, None), (Action.RETRY, 21, "21"), (Action.CANCEL, 1, None), (Action.CANCEL, 2, "2"),
        (Action.RETRY, Count(10_000, "capped"), "retry"), (Action.PAUSE, 1, None),
        (Action.DRAIN_QUEUE, Count(10_000, "capped"), "drain"),
    ],
)  # fmt: skip
async def test_many_rows_and_stopped_work_want_a_word(action: Action, count: int, word: str | None) -> None:
    assert confirm_word(await plan(action, count)) == word


async def test_a_plan_says_what_it_refuses_and_that_later_rows_are_left_alone() -> None:
    refused = (Refusal(data.uid(1), "X_JOB_DUPLICATE", "a"), Refusal(data.uid(2), "X_JOB_UNKNOWN", "b"))
    text = said(plan_lines(await plan(refused=refused), 100))
    assert "3,902 jobs" in text
    assert "what arrives later is not touched" in text
    assert "2: X_JOB_DUPLICATE (1), X_JOB_UNKNOWN (1)" in text


async def test_a_plan_says_of_how_many_rows_its_numbers_are() -> None:
    refused = (Refusal(data.uid(1), "X_JOB_DUPLICATE", "a"), Refusal(data.uid(2), "X_JOB_UNKNOWN", "b"))
    large = await plan(count=Count(10_000, "capped"), queues={"a": 150, "b": 50}, tenants=40, refused=refused)
    text = said(plan_lines(large, 100))
    assert "a 150 · b 50   40 tenants   of the first 200" in text
    assert "2 of the first 200: X_JOB_DUPLICATE (1)" in text
    unknown_among_few = await plan(count=3, queues={"a": 2})
    assert "of the first" not in said(plan_lines(unknown_among_few, 100))


async def test_a_warning_is_shown_whole_on_a_narrow_screen() -> None:
    warned = await plan(warnings=("every attempt fails the same way until the code or the data change",))
    lines = said(plan_lines(warned, 44)).splitlines()
    [first] = [at for at, text in enumerate(lines) if text.startswith(" ! ")]
    assert lines[first].removeprefix(" ! ") + " " + lines[first + 1].strip() == warned.warnings[0]


async def test_a_plan_that_is_longer_than_its_dialog_gives_up_lines_of_its_command_alone() -> None:
    ids = tuple(data.uid(n) for n in range(20))
    marked = replace(await plan(), equivalent=f"ultijobs jobs retry {' '.join(map(str, ids))}")
    whole, short = plan_lines(marked, 76), plan_lines(marked, 76, 12)
    assert len(short) == 12 < len(whole)
    assert short[:11] == whole[:11]
    assert "… Y copies all of it" in said(short)


async def test_pace_is_told_when_there_is_more_than_one_batch() -> None:
    paced = await plan(options=PlanOptions(pause=timedelta(seconds=1)))
    assert "500 per batch, 1s between (about 7s)" in said(plan_lines(paced, 100))
    unknown = replace(paced, matched=Count(10_000, "capped"))
    assert "500 per batch, 1s between (at least 20s)" in said(plan_lines(unknown, 100))


def test_no_part_of_a_command_is_hidden() -> None:
    command = "ultijobs jobs retry --where 'state:dead fp:7f3a91c2d4e5' --from-step charge --as-of 2026-03-14T14:16:03Z"
    words = " ".join(line_text(part, 60).removeprefix(" same as").strip() for part in command_lines(command, 60))
    assert words == command


async def test_a_summary_says_when_it_was_applied_to_how_many_and_why_not_to_the_rest() -> None:
    from ultijobs.inspection import ActOutcome  # noqa: PLC0415

    refusal = Refusal(data.uid(3), "X_JOB_DUPLICATE", "a live job has the same key")
    outcome = ActOutcome(3, (data.uid(1), data.uid(2)), (refusal,), (), data.uid(9), NOW + timedelta(seconds=44))
    assert summary(await plan(), outcome) == (
        "✓ 14:16:47 retried 2 · refused 1: X_JOB_DUPLICATE a live job has the same key"
    )


# -- a canary ------------------------------------------------------------------------------------------
async def test_a_canary_is_told_until_it_stops() -> None:
    following = Following()
    detail = data.detail()
    following.start(detail.row.id, await plan(options=PlanOptions(limit=1)))

    def told(state: JobState, **values: object) -> str | None:
        row = replace(detail.row, state=state, updated_at=NOW + timedelta(seconds=9), **values)
        answer = following.tell(row)
        return answer[0] if answer else None

    assert "ready, attempt 5/5 · waits for queue paused" in str(told(JobState.READY, waiting_on=WaitingOn.PAUSED))
    assert "died again, as the rest would: builtins.TimeoutError" in str(told(JobState.DEAD))
    assert told(JobState.DEAD) is None


# -- pace ----------------------------------------------------------------------------------------------
def test_a_pace_is_what_the_known_processes_settled_and_ignores_who_comes_and_goes() -> None:
    history = History()
    counters = [{"a": {"done": 100}}, {"a": {"done": 110}, "b": {"done": 5_000}}, {"b": {"done": 5_020}}]
    for n, counted in enumerate(counters):
        history.add(replace(data.overview(), as_of=NOW + timedelta(seconds=15 * n), counters=counted))
    assert history.settled_per_minute("done") == 60
    assert list(history.settled("done", 12)) == [10, 20]
    assert history.settled_per_minute("dead") == 0


def test_jobs_that_nobody_lived_to_settle_count_as_dead_too() -> None:
    history = History()
    for n, dead in enumerate((10, 14, 20)):
        overview = data.overview()
        totals = dict(overview.stats.totals) | {"dead": Count(dead)}
        stats = replace(overview.stats, totals=totals)
        history.add(replace(overview, as_of=NOW + timedelta(seconds=15 * n), stats=stats, counters={}))
    assert history.settled_per_minute("dead") == 20


def test_a_pace_is_not_told_before_it_is_known() -> None:
    history = History()
    assert pace(history, LOOK) == ()
    history.add(data.overview())
    assert pace(history, LOOK) == ()
