"""Between screens: tabs, into a job and back, filters."""

from __future__ import annotations

from dataclasses import replace
from uuid import UUID

from tests.tui import data
from tests.tui.driving import driving
from tests.tui.fake import FakeSource
from ultijobs.inspection import JobPage, WaitingOn
from ultijobs_tui.desk import Settings
from ultijobs_tui.widgets.grid import Grid


async def test_tabs_open_by_their_numbers() -> None:
    async with driving() as driver:
        for key, word in (
            ("2", "RUN/CAP"),
            ("3", "WAITING ON"),
            ("4", "LEASE LEFT"),
            ("5", "RETRIED→DIED"),
            ("6", "SETTLED"),
            ("7", "ROWS/s"),
            ("8", "CATCH-UP"),
            ("9", "TRIES"),
            ("0", "RESULT"),
            ("d", "SAYS"),
            ("1", "HELD BY"),
        ):
            await driver.press(key)
            await driver.sees(word)


async def test_from_a_cause_to_its_jobs_to_a_run_and_back() -> None:
    async with driving() as driver:
        await driver.press("g", "j", "enter")
        await driver.sees("jobs of 7f3a", "…" + data.uid(1).hex[-8:])
        await driver.press("enter", "enter")
        await driver.sees("✗ failed", "3 recorded")
        await driver.press("escape")
        await driver.sees("jobs of 7f3a")
        await driver.until(lambda: driver.grid.id == "cause-jobs")
        await driver.press("escape")
        await driver.until(lambda: driver.grid.id == "causes")


async def test_esc_goes_back_to_the_row_that_led_here() -> None:
    async with driving() as driver:
        await driver.press("2")
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("j")
        row = driver.grid.cursor.key
        await driver.press("enter")
        await driver.sees("WAITING ON", f"state:ready,delayed,running,suspended,dead,failed queue:{row}")
        await driver.press("escape")
        await driver.sees("RUN/CAP")
        await driver.until(lambda: driver.grid.cursor.key == row)
        await driver.press("w")
        await driver.sees("6 workers", f"find queue:{row}")
        await driver.press("escape")
        await driver.sees("RUN/CAP")
        await driver.press("escape")  # A key of its own led to Queues: there is nothing to go back to.
        await driver.sees("RUN/CAP")


async def test_esc_first_takes_back_what_was_typed_since_a_link_was_followed() -> None:
    async with driving() as driver:
        await driver.press("2")
        await driver.until(lambda: driver.grid.table.rows)
        row = driver.grid.cursor.key
        await driver.press("w")
        await driver.sees("6 workers", f"find queue:{row}")
        await driver.press("slash", "x", "enter")
        await driver.sees(f"find queue:{row}x")
        await driver.press("escape")
        await driver.sees("6 workers")
        await driver.until(lambda: "find" not in driver.text)
        await driver.press("escape")
        await driver.sees("RUN/CAP")


async def test_history_goes_back_and_forward() -> None:
    async with driving() as driver:
        await driver.press("2")
        await driver.sees("RUN/CAP")
        await driver.press("3")
        await driver.sees("WAITING ON")
        await driver.press("left_square_bracket")
        await driver.sees("RUN/CAP")
        await driver.press("right_square_bracket")
        await driver.sees("WAITING ON")


async def test_single_letters_go_into_the_filter_and_not_to_acts() -> None:
    async with driving() as driver:
        await driver.press("3")
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("slash", *"key:rpuXqf1", "enter")
        await driver.sees("filter key:rpuXqf1")
        assert driver.source.planned == []
        assert driver.app.is_running
        await driver.until(lambda: driver.source.fetched[-1].page.where == "key:rpuXqf1")


async def test_an_unreadable_filter_is_told_and_the_list_keeps_the_last_good_one() -> None:
    async with driving() as driver:
        await driver.press("3")
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("slash", *"stat:dead")
        await driver.sees("stat")
        await driver.press("enter", "escape")
        await driver.sees("all jobs")
        assert all(needs.page.where == "" for needs in driver.source.fetched if needs.page)


async def test_an_empty_list_repeats_the_filter() -> None:
    source = FakeSource(page=JobPage([], None, data.NOW))
    async with driving(source, Settings(where="state:ready queue:nowhere")) as driver:
        await driver.sees("No job matches state:ready queue:nowhere")


async def test_a_filter_that_names_what_is_known_nowhere_says_so_and_what_is_spelled_like_it() -> None:
    source = FakeSource(page=JobPage([], None, data.NOW))
    async with driving(source) as driver:
        await driver.press("3", "slash", *"queue:biling", "enter")
        await driver.sees("No job matches queue:biling", "no queue is called 'biling'; there is billing")
        await driver.press("slash", *" state:dead", "enter")
        await driver.sees("No job matches queue:biling state:dead", "no queue is called 'biling'")
        await driver.press("escape", "escape")
        await driver.until(lambda: "no queue is called" not in driver.text)


async def test_a_deep_link_opens_the_job() -> None:
    async with driving(settings=Settings(job=data.uid(1).hex[-8:])) as driver:
        await driver.sees("charge_invoice", "recorded")


async def test_a_deep_link_to_nothing_says_so_and_leaves_incident() -> None:
    async with driving(settings=Settings(job="ffffffffff")) as driver:
        await driver.sees("X_JOB_UNKNOWN", "HELD BY")


async def test_find_on_incident_narrows_as_it_is_typed_and_esc_shows_all() -> None:
    async with driving() as driver:
        await driver.press("slash", *"billing")
        grid = driver.app.screen.query(Grid).first()
        await driver.until(lambda: len(grid.table.rows) == 2)
        await driver.press("escape")
        await driver.until(lambda: len(driver.grid.table.rows) == len(data.stuck()))


async def test_why_answers_for_the_job_under_the_cursor() -> None:
    async with driving() as driver:
        await driver.press("3")
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("h")
        await driver.sees("waits for  paused", "ultijobs queues resume billing")
        assert any(needs.why == data.uid(1) for needs in driver.source.fetched)


async def test_the_help_tells_why_a_key_is_grey() -> None:
    async with driving(settings=Settings(read_only=True)) as driver:
        await driver.press("question_mark")
        await driver.sees("Help: Incident", "type to search", "not now: the cockpit is read-only")


async def test_the_help_is_searched_by_typing_and_letters_do_nothing_else() -> None:
    async with driving() as driver:
        await driver.press("question_mark", *"drain q")
        await driver.sees("search drain q", "no key and no word says 'drain q'")
        await driver.press("backspace", "backspace")
        await driver.press("escape", *"history.b")
        await driver.sees("search history.b", "Previous place")
        assert "this screen" not in driver.text
        await driver.press("escape")
        await driver.sees("type to search", "this screen")
        await driver.press("q", "escape", "escape")
        await driver.until(lambda: "Help:" not in driver.text)


async def test_the_input_is_shown_only_when_asked_for() -> None:
    async with driving(settings=Settings(job=data.uid(1).hex[-8:])) as driver:
        await driver.sees("3 recorded")
        assert 'inv_8001"' not in driver.text
        await driver.press("i")
        await driver.sees('"card": "•••"')


async def test_the_way_back_leads_to_the_row_that_was_left() -> None:
    async with driving(settings=Settings(where="state:dead")) as driver:
        await driver.until(lambda: len(driver.grid.table.rows) > 2)
        await driver.press("j", "j")
        left = driver.grid.cursor.key
        await driver.press("slash", *" queue:mail", "enter")
        await driver.sees("filter state:dead queue:mail")
        await driver.until(lambda: driver.grid.cursor.key not in {None, left})
        await driver.press("left_square_bracket")
        await driver.until(lambda: driver.grid.cursor.key == left, that="the row that was left")


async def test_w_goes_to_the_queue_that_keeps_a_job_and_to_the_twin_before_it() -> None:
    paused = replace(data.job(1), waiting_on=WaitingOn.PAUSED, queue="billing")
    behind = replace(data.job(2), waiting_on=WaitingOn.BEHIND, behind=data.uid(1))
    delayed = replace(data.job(3), waiting_on=WaitingOn.DELAY)
    source = FakeSource(page=JobPage([paused, behind, delayed], None, data.NOW))
    async with driving(source, Settings(view="jobs")) as driver:
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("w")
        await driver.sees("RUN/CAP")
        await driver.until(lambda: driver.grid.cursor.key == "billing")
        await driver.press("left_square_bracket", "j", "w")
        await driver.sees("recorded")
        await driver.press("escape", "j", "w")
        await driver.sees("nobody holds it: it waits for delay")


async def test_a_deep_link_opens_the_queue() -> None:
    async with driving(settings=Settings(queue="mail")) as driver:
        await driver.sees("RUN/CAP")
        await driver.until(lambda: driver.grid.cursor.key == "mail")


async def test_a_theme_is_taken_from_the_start() -> None:
    async with driving(settings=Settings(theme="ansi-light")) as driver:
        assert driver.app.theme == "ansi-light"


async def test_a_long_line_of_an_input_is_shown_to_its_end() -> None:
    class Long(FakeSource):
        async def input(self, id: UUID) -> str | None:
            return '{"note": "' + "a word and another " * 12 + 'and the end"}'

    async with driving(Long(), Settings(job=str(data.uid(1))), size=(80, 24)) as driver:
        await driver.sees("3 recorded")
        await driver.press("i")
        await driver.sees('and the end"')
