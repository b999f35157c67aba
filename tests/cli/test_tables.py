"""What jobs wrote is shown, never obeyed: no table is wider than the terminal, no cell moves the cursor."""

from __future__ import annotations

import io
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from ultijobs_cli.layout import lines
from ultijobs_cli.paint import paint
from ultijobs_cli.tables import Cell, Column, Pairs, Paragraph, Table, grid

HOSTILE = st.text(
    st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x9b\x00\x07\x08\r\n\t\u202e\u2066\u200b\ud800[]\\日本"),
    ),
    max_size=60,
)
ACTIVE = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")


def table(rows: list[tuple[str, str, str]]) -> Table:
    return grid(
        rows,
        [
            Column("ID", lambda row: Cell(row[0], "bold")),
            Column("NAME", lambda row: row[1], rank=1, wide=True),
            Column("NOTE", lambda row: Cell(row[2], "red"), rank=2, wide=True),
        ],
        empty="none",
    )


@given(st.lists(st.tuples(st.just("…b18d17b8"), HOSTILE, HOSTILE), min_size=1, max_size=5), st.integers(12, 200))
def test_hostile_text_is_inert_and_fits_any_width(rows: list[tuple[str, str, str]], width: int) -> None:
    for line in lines(table(rows), width):
        assert cell_len(line.plain) <= width
        assert not ACTIVE.search(line.plain)
        assert "\n" not in line.plain


@given(HOSTILE)
def test_hostile_text_reaches_the_stream_as_escapes(text: str) -> None:
    stream = io.StringIO()
    paint(stream, [Paragraph(text, "red", text), Pairs((("name", Cell(text)),)), table([("1", text, text)])])
    assert not ACTIVE.search(stream.getvalue())


@pytest.mark.parametrize("markup", ["[red]x[/red]", "[/foo]", "[@click=app.quit]x", "list[int]", ":smile:"])
def test_markup_is_shown_as_it_is_written(markup: str) -> None:
    stream = io.StringIO()
    paint(stream, [Paragraph(markup), table([("1", markup, "")])])
    assert stream.getvalue().count(markup) == 2


def test_where_space_is_short_the_highest_rank_goes_first() -> None:
    rows = [("…b18d17b8", "n" * 30, "m" * 30)]
    assert lines(table(rows), 90)[0].plain.split() == ["ID", "NAME", "NOTE"]
    assert lines(table(rows), 24)[0].plain.split() == ["ID", "NAME"]
    assert lines(table(rows), 12)[0].plain.split() == ["ID"]


def test_piped_text_is_never_cut(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    stream = io.StringIO()
    paint(stream, [table([("1", "n" * 500, "m" * 500)])])
    assert "n" * 500 in stream.getvalue()
    assert "m" * 500 in stream.getvalue()


def test_colours_stay_away_from_pipes_and_from_no_color(monkeypatch: pytest.MonkeyPatch) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return True

    monkeypatch.setenv("TERM", "xterm-256color")
    monkeypatch.delenv("NO_COLOR", raising=False)
    coloured, plain, piped = Terminal(), Terminal(), io.StringIO()
    paint(coloured, [Paragraph("x", "red")])
    monkeypatch.setenv("NO_COLOR", "1")
    paint(plain, [Paragraph("x", "red")])
    paint(piped, [Paragraph("x", "red")])
    assert "\x1b[31m" in coloured.getvalue()
    assert "\x1b[31m" not in plain.getvalue()
    assert piped.getvalue() == "x\n"
