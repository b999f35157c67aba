"""What an operator takes away: files of what is shown, copies, a text in the pager."""

from __future__ import annotations

import csv
import json
import stat
from contextlib import nullcontext
from dataclasses import replace

import pytest

from tests.tui import data
from tests.tui.driving import driving
from tests.tui.fake import FakeSource
from ultijobs.inspection import JobPage
from ultijobs_tui.desk import Settings
from ultijobs_tui.paging import pager_command
from ultijobs_tui.screens.reader import TextDialog


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch) -> None:
    monkeypatch.chdir(tmp_path)


async def export(driver, name: str | None = None) -> None:
    await driver.press("e")
    await driver.sees("EXPORT what is shown")
    if name is not None:
        driver.app.screen.query_one("#path").value = name
    await driver.press("enter")


async def test_an_export_holds_whole_ids_the_filter_and_the_moment(tmp_path) -> None:
    async with driving(settings=Settings(where="state:dead queue:billing")) as driver:
        await driver.until(lambda: driver.grid.table.rows)
        await export(driver)
        await driver.sees("✓ written: ultijobs-jobs-")
        [file] = tmp_path.iterdir()
        rows = list(csv.DictReader(file.read_text(encoding="utf-8").splitlines()))
        assert [row["key"] for row in rows] == [str(row.id) for row in data.page().rows]
        assert {row["where"] for row in rows} == {"state:dead queue:billing"}
        assert {row["as_of"] for row in rows} == {f"{data.NOW:%Y-%m-%dT%H:%M:%SZ}"}
        assert stat.S_IMODE(file.stat().st_mode) == 0o600


async def test_the_ending_of_the_name_chooses_the_format(tmp_path) -> None:
    async with driving() as driver:
        await driver.press("2")
        await driver.until(lambda: driver.grid.table.rows)
        await export(driver, "q.json")
        await driver.sees("✓ written: q.json")
        written = json.loads((tmp_path / "q.json").read_text(encoding="utf-8"))
        assert (written["view"], written["source"]) == ("queues", driver.source.title)
        assert {row["key"] for row in written["rows"]} == {queue.queue for queue in data.queues()}
        await export(driver, "q.md")
        await driver.sees("✓ written: q.md")
        assert "| key | queue | state |" in (tmp_path / "q.md").read_text(encoding="utf-8")
        await export(driver, "q.exe")
        await driver.sees("end the name in .csv, .json, .md")


async def test_an_export_never_writes_over_a_file(tmp_path) -> None:
    (tmp_path / "here.csv").write_text("mine", encoding="utf-8")
    (tmp_path / "link.csv").symlink_to(tmp_path / "nowhere")
    async with driving() as driver:
        await export(driver, "here.csv")
        await driver.sees("here.csv is there already")
        driver.app.screen.query_one("#path").value = "link.csv"
        await driver.press("enter")
        await driver.sees("link.csv is there already")
        driver.app.screen.query_one("#path").value = "no/such/folder.csv"
        await driver.press("enter")
        await driver.sees("not written: No such file or directory")
    assert (tmp_path / "here.csv").read_text(encoding="utf-8") == "mine"


async def test_what_a_job_wrote_is_neither_a_formula_nor_markup_in_a_file(tmp_path) -> None:
    formula = replace(data.dead_job(1), name="=cmd|' /C calc'!A0")
    markup = replace(data.dead_job(2), name="<b>|*x*\x1b[31m")
    async with driving(FakeSource(page=JobPage([formula, markup], None, data.NOW)), Settings(view="jobs")) as driver:
        await driver.until(lambda: driver.grid.table.rows)
        await export(driver, "j.csv")
        await driver.sees("✓ written: j.csv")
        await export(driver, "j.md")
        await driver.sees("✓ written: j.md")
    text = (tmp_path / "j.csv").read_text(encoding="utf-8")
    assert "\x1b" not in text
    rows = list(csv.DictReader(text.splitlines()))
    assert "'=cmd|' /C calc'!A0" in rows[0].values()
    assert not any(value.startswith("=") for row in rows for value in row.values())
    assert r"\<b\>\|\*x\*\\x1b\[31m" in (tmp_path / "j.md").read_text(encoding="utf-8")


async def test_a_copy_is_on_the_clipboard_and_on_the_screen() -> None:
    async with driving(settings=Settings(view="jobs")) as driver:
        await driver.until(lambda: driver.grid.table.rows)
        await driver.press("y")
        await driver.sees(f"copied: {data.page().rows[0].id}")
        assert driver.app.clipboard == str(data.page().rows[0].id)


async def test_a_text_goes_to_the_pager_inert_and_the_cockpit_comes_back(tmp_path, monkeypatch) -> None:
    pager = tmp_path / "pager"
    pager.write_text(f"#!/bin/sh\ncat > {tmp_path}/paged\n", encoding="utf-8")
    pager.chmod(0o700)
    monkeypatch.setenv("PAGER", str(pager))
    source = FakeSource()
    source.details[data.uid(1)] = replace(
        data.detail(), attempts=[replace(data.detail().attempts[-1], traceback="boom\x1b[2J\nline")]
    )
    async with driving(source, Settings(job=data.uid(1).hex[-8:])) as driver:
        await driver.sees("✗ failed")
        driver.app.suspend = nullcontext
        await driver.press("o")
        await driver.until((tmp_path / "paged").exists)
        assert (tmp_path / "paged").read_text(encoding="utf-8") == "boom\\x1b[2J\nline"
        await driver.sees("✗ failed")


async def test_where_no_pager_can_be_started_the_text_is_shown_and_the_reason_told() -> None:
    async with driving(settings=Settings(job=data.uid(1).hex[-8:])) as driver:
        await driver.sees("✗ failed")
        await driver.press("o")
        await driver.until(lambda: isinstance(driver.app.screen, TextDialog))
        await driver.sees("no pager here", "TimeoutError")


def test_the_pager_is_the_one_that_is_set_and_never_flashes_by(monkeypatch, tmp_path) -> None:
    for name in ("less", "more", "most"):
        (tmp_path / name).write_text("", encoding="utf-8")
        (tmp_path / name).chmod(0o700)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert pager_command({"PAGER": "most -w"}) == ["most", "-w"]
    assert pager_command({"PAGER": "less -FRX"}) == ["less", "-FRX", "-+F"]
    assert pager_command({}) == ["less", "-+F"]
    assert pager_command({"PAGER": "gone"}) == ["more"]
    monkeypatch.setenv("PATH", "/nowhere")
    assert pager_command({}) is None
