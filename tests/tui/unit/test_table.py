"""Columns drop by their rank, cells keep their size, and what is measured is what is drawn."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ultijobs_tui.paint import fit, folded, line_text, table_text
from ultijobs_tui.table import Cell, Column, Line, Row, Span, Table, Tone, line

COLUMNS = (
    Column("ID", 4),
    Column("NAME", 6, 12),
    Column("SIDE", 8, drop=2),
    Column("EDGE", 8, drop=1),
    Column("TEXT", 10, grow=True),
)


def table(*names: str) -> Table:
    rows = tuple(Row(name, (Cell(name[:4]), Cell(name), Cell("s"), Cell("e"), Cell("t"))) for name in names)
    return Table(COLUMNS, rows, (line("nothing"),))


def names(layout: list[tuple[int, int]]) -> list[str]:
    return [COLUMNS[index].title for index, _ in layout]


def test_every_column_is_there_when_there_is_room_and_the_rest_grows() -> None:
    layout = table("a").layout(80)
    assert names(layout) == ["ID", "NAME", "SIDE", "EDGE", "TEXT"]
    assert sum(size for _, size in layout) + len(layout) - 1 == 80


def test_the_highest_rank_drops_first_and_what_has_none_stays() -> None:
    assert names(table("a").layout(36)) == ["ID", "NAME", "EDGE", "TEXT"]
    assert names(table("a").layout(24)) == ["ID", "NAME", "TEXT"]
    assert names(table("a").layout(5)) == ["ID", "NAME", "TEXT"]


def test_a_column_is_as_wide_as_its_longest_cell_up_to_its_most() -> None:
    sizes = dict(zip(["ID", "NAME"], table("abcdefghij").natural(), strict=False))
    assert sizes["NAME"] == 10
    assert table("x" * 40).natural()[1] == 12


def test_a_column_does_not_shrink_while_a_screen_is_open() -> None:
    floor = table("abcdefghij").natural()
    assert table("ab").natural(floor)[1] == 10


@given(st.integers(1, 200), st.lists(st.text(max_size=30), max_size=5))
def test_a_layout_never_takes_more_than_there_is_where_the_least_fits(width: int, cells: list[str]) -> None:
    layout = table(*cells).layout(width)
    least = 4 + 6 + 10 + 2
    if width >= least + 6:
        assert sum(size for _, size in layout) + len(layout) - 1 <= width


def test_text_is_elided_at_the_end_and_ids_keep_their_tail() -> None:
    assert fit("charge_invoice", 8) == "charge_…"
    assert fit("0195d2ab1234", 6, elide="start") == "…b1234"
    assert fit("7", 3, align="right") == "  7"
    assert fit("anything", 0) == ""


def test_a_line_cuts_its_left_part_before_its_right_one() -> None:
    assert line_text(line("a long left part", right=("right",)), 12) == "a lon… right"


def test_an_empty_table_says_what_it_has_to_say() -> None:
    assert table_text(table(), 40) == ["nothing"]
    assert table_text(table("ab"), 24)[0].split() == ["ID", "NAME", "TEXT"]


def plain(lines: list[Line], width: int) -> list[str]:
    return [line_text(each, width) for each in lines]


def test_a_line_that_does_not_fit_goes_on_below_what_it_is_about() -> None:
    row = line(" where    ", Span("state:dead queue:billing tenant:acme", Tone.ACCENT), right=(Span("12"),))
    assert plain(folded(row, 30, 10), 30) == [
        " where    state:dead        12",
        "          queue:billing",
        "          tenant:acme",
    ]
    assert folded(row, 80, 10) == [row]


@given(st.lists(st.text("ab\u6f22 ", min_size=1, max_size=30), max_size=6), st.integers(4, 30))
def test_nothing_of_a_folded_line_is_cut(texts: list[str], width: int) -> None:
    parts = folded(line(*texts), width, 1)
    assert "".join(plain(parts, width)).replace(" ", "") == "".join(texts).replace(" ", "")


def test_what_is_left_after_the_last_line_that_may_be_is_cut_with_a_mark() -> None:
    assert plain(folded(line("one two three four"), 6, 0, most=2), 6) == ["one", "two t…"]


def test_what_an_empty_table_says_is_said_whole() -> None:
    told = Table(COLUMNS, (), (line("Nobody has acted yet."),))
    assert table_text(told, 12) == ["Nobody has", "acted yet."]
