"""Text from jobs is never obeyed by the terminal, nor read as markup."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import Phase, example, given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from tests.tui import data
from tests.tui.driving import driving
from tests.tui.fake import FakeSource
from ultijobs.inspection import BackfillState, Blocked, JobPage, Leader, OutboxPage, OutboxState, Snapshot
from ultijobs_tui.paint import clean, fit, spread
from ultijobs_tui.table import line
from ultijobs_tui.widgets.field import Field
from ultijobs_tui.widgets.filterbar import FilterBar

NASTY = st.text(alphabet=st.sampled_from("ab[]/=\\\x1b\x07\r\n\t\x00\x9b漢字🙂é\u0301\u202e\u200b{}%s$ "), max_size=60)


@given(st.text(), st.integers(0, 60), st.sampled_from(["left", "right"]), st.sampled_from(["start", "end"]))
@example("a漢字漢字", 4, "left", "end")
@example("漢字漢字a", 4, "left", "start")
def test_a_cell_has_exactly_its_width_whatever_is_in_it(text, width, align, elide) -> None:
    assert cell_len(fit(text, width, align=align, elide=elide)) == width


@given(NASTY, NASTY, st.integers(1, 60))
def test_a_line_has_exactly_its_width_whatever_is_in_it(left, right, width) -> None:
    spans = spread(line(left, right=(right,)), width)
    assert sum(cell_len(span.text) for span in spans) == width


@given(st.text())
def test_nothing_that_a_terminal_obeys_is_left(text) -> None:
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 or c in "\u202e\u2066\u200b" for c in clean(text))


@settings(max_examples=2, deadline=None, phases=[Phase.explicit, Phase.generate])
@given(st.lists(NASTY, min_size=25, max_size=25))
@example(["[/usr/lib] closed [/foo]", "[@click=app.quit]x[/]", "\x1b]0;owned\x07\x1b[2J", "list[int]", "\u202eevil"])
async def test_hostile_names_and_errors_are_shown_as_they_are(texts: list[str]) -> None:
    rows = [
        data.dead_job(n, name=t or "x", last_error=t, error_code=t, tenant_id=t, idempotency_key=t, enqueued_by=t)
        for n, t in enumerate(texts)
    ]
    cause = data.causes()[0]
    causes = [
        replace(cause, fingerprint=f"f{n:04}", error=t, error_code=t, step=t, jobs={t: 1}, queues={t: 2})
        for n, t in enumerate(texts)
    ]
    lines = [replace(data.stuck()[1], key=f"s{n}", why=t, cause=causes[n], held_by=t) for n, t in enumerate(texts)]
    detail = replace(data.detail(), row=rows[0])
    many = list(enumerate(texts))
    source = FakeSource(
        overview=data.overview(lines),
        causes=causes,
        page=JobPage(rows, None, data.NOW),
        dead_page=JobPage(rows, None, data.NOW),
        details={rows[0].id: detail},
        queues=[replace(data.queues()[0], queue=f"q{n}{t}", pause_reason=t, paused_by=t) for n, t in enumerate(texts)],
        title=texts[0],
        leases=[
            replace(data.leases()[0], id=rows[n].id, name=t, worker_id=t, running_step=t, tenant_id=t) for n, t in many
        ],
        workers=[
            replace(data.worker(n, t), host=t, code_version=t, version=t, environment=t, queues=(t,), names=(t,))
            for n, t in many
        ],
        leader=Leader(texts[1], 1, data.NOW, data.NOW),
        activity=[
            data.act(n, t, t, data.NOW, actor=t, source=t, reason=t, equivalent=t, detail={t: t}) for n, t in many
        ],
        backfills=[
            data.backfill(f"b{n}{t}", BackfillState.FAILED, queue=t, cursor=t, last_error=t, error_code=t, requires=t)
            for n, t in many
        ],
        tasks=[data.task(f"k{n}{t}", t, tz=t, catch_up=t, last_error=t) for n, t in many],
        slots=lambda name: [replace(data.slots(name)[0], reason=t, outcome=t) for t in texts[:1]],
        outbox=OutboxPage(
            [
                data.staged(n, OutboxState.SET_ASIDE, name=t, queue=t, tenant_id=t, claimed_by=t, last_error=t)
                for n, t in many
            ],
            None,
        ),
        health=replace(
            data.health(),
            snapshots=[Snapshot(n + 1, t, t, 9_000, t) for n, t in many],
            waits=[Blocked(n + 1, t, 9_000, t, ()) for n, t in many],
            invalid_indexes=[f"i{n}{t}" for n, t in many],
            applications=dict.fromkeys(texts, 1),
            lacks=tuple(texts),
        ),
    )
    async with driving(source) as driver:
        seen = driver.text
        for key in ("2", "4", "5", "6", "7", "8", "9", "0", "d", "3", "enter"):
            await driver.press(key)
            await driver.until(lambda: driver.grid.table.rows)
            seen += driver.text
    assert not any((ord(c) < 32 and c != "\n") or 127 <= ord(c) < 160 for c in seen)
    for text in texts[:5]:
        assert clean(text)[:8].strip() in seen


async def test_a_filter_by_a_hostile_name_is_shown_inert_and_still_means_that_name() -> None:
    name = "a\x1b]0;owned\x07\x9b\u202eb"
    async with driving() as driver:
        driver.app.screen.query_one(FilterBar).open(f"queue:{name}")
        await driver.sees("queue:a␛]0;owned␇��b")
        assert driver.app.screen.query_one(Field).value == f"queue:{name}"


async def test_markup_is_text() -> None:
    stuck = [replace(data.stuck()[2], why="[bold red]PAUSED[/] by [/usr/lib]")]
    async with driving(FakeSource(overview=data.overview(stuck))) as driver:
        await driver.sees("[bold red]PAUSED[/] by [/usr/lib]")
