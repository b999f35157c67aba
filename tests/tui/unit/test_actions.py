"""Keys are data: one registry, no key twice on a screen, its page up to date."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.tui import data
from ultijobs_tui.actions import ACTIONS, VIEWS, all_keys
from ultijobs_tui.app import Cockpit
from ultijobs_tui.keymap import DEFAULT
from ultijobs_tui.look import Look
from ultijobs_tui.paint import line_text
from ultijobs_tui.present.bars import footer_line
from ultijobs_tui.present.help import help_lines, help_sections, sought

views = pytest.mark.parametrize("view", list(VIEWS))


@views
def test_no_key_means_two_things_on_a_screen(view: str) -> None:
    counted = Counter(key for action in DEFAULT.of(view) for key in action.keys)
    assert [key for key, n in counted.items() if n > 1] == []


@views
def test_the_help_has_every_key_of_the_screen(view: str) -> None:
    text = "\n".join(line_text(line, 120) for line in help_lines(view, lambda _: None))
    for action in DEFAULT.of(view):
        assert action.label in text
        assert all_keys(action) in text


def test_the_help_finds_words_and_a_key_alone() -> None:
    sections = help_sections("dead", lambda action: "not today" if action.id == "retry" else None)

    def text(said: str) -> list[list[str]]:
        return [line_text(line, 120).split() for line in sought(sections, said)]

    assert text("r")[1:] == [["r", "Retry", "not", "now:", "not", "today", "retry"]]
    assert [line[0] for line in text("history.")] == ["everywhere", "[", "]"]
    assert [line[0] for line in text("FINGERPRINT stopped:")] == ["filter", "reason:"]
    assert text("xyzzy") == [["no", "key", "and", "no", "word", "says", "'xyzzy'"]]


@views
def test_the_footer_of_a_small_terminal_has_help_and_the_most_wanted_key(view: str) -> None:
    text = line_text(footer_line(view, lambda _: None, Look(data.NOW, 80, 24)), 80)
    assert "? Help" in text
    assert DEFAULT.footer(view)[0 if DEFAULT.footer(view)[0].id != "help" else 1].label in text


def test_only_what_stops_work_is_upper_case_among_the_acts() -> None:
    for action in ACTIONS:
        if action.group == "act":
            assert action.stops == action.keys[0].isupper(), action.id


def test_an_act_always_writes_and_nothing_else_does() -> None:
    assert {a.id for a in ACTIONS if a.writes} == {a.id for a in ACTIONS if a.group == "act"}


def test_every_tab_has_its_screen() -> None:
    assert {f"tab.{mode}" for mode in Cockpit.MODES} == {a.id for a in ACTIONS if a.group == "tabs"}
