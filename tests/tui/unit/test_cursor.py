"""The cursor is a key, not a place."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from ultijobs_tui.widgets.keeping import Cursor


def cursor_on(key: str, rows: str) -> Cursor:
    cursor = Cursor()
    cursor.rows(list(rows))
    cursor.choose(rows.index(key))
    return cursor


def test_the_cursor_starts_on_the_first_row() -> None:
    cursor = Cursor()
    cursor.rows(["a", "b"])
    assert (cursor.key, cursor.index, cursor.displaced) == ("a", 0, False)


def test_the_cursor_stays_on_its_key_when_rows_change_places() -> None:
    cursor = cursor_on("c", "abcde")
    cursor.rows(list("edcba"))
    assert (cursor.key, cursor.index, cursor.displaced) == ("c", 2, False)


def test_the_cursor_stays_on_its_key_when_rows_arrive_and_leave_above() -> None:
    cursor = cursor_on("c", "abcde")
    cursor.rows(list("xyzbcde"))
    assert (cursor.key, cursor.index) == ("c", 4)


def test_a_row_that_leaves_gives_the_cursor_to_the_next_and_says_so() -> None:
    cursor = cursor_on("c", "abcde")
    cursor.rows(list("abde"))
    assert (cursor.key, cursor.displaced) == ("d", True)


def test_the_last_row_that_leaves_gives_the_cursor_to_the_one_before() -> None:
    cursor = cursor_on("e", "abcde")
    cursor.rows(list("ab"))
    assert (cursor.key, cursor.displaced) == ("b", True)


def test_choosing_by_hand_ends_the_displacement() -> None:
    cursor = cursor_on("c", "abc")
    cursor.rows(list("ab"))
    cursor.choose(0)
    assert not cursor.displaced


def test_an_empty_list_has_no_cursor_and_the_next_list_starts_at_its_top() -> None:
    cursor = cursor_on("c", "abc")
    cursor.rows([])
    assert cursor.key is None
    cursor.rows(list("xy"))
    assert (cursor.key, cursor.displaced) == ("x", False)


@given(st.lists(st.lists(st.sampled_from("abcdefgh"), unique=True), min_size=1, max_size=12))
def test_the_cursor_is_always_on_a_row_that_is_there(lists: list[list[str]]) -> None:
    cursor = Cursor()
    for keys in lists:
        before = cursor.key
        cursor.rows(keys)
        assert (cursor.key in keys) if keys else cursor.key is None
        if before in keys:
            assert cursor.key == before
