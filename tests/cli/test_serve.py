"""`tui --serve`: what is refused before anything is served."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli
from ultijobs_cli.commands import cockpit


@pytest.mark.parametrize(
    ("flags", "said"),
    [
        (("--serve-host", "0.0.0.0"), "can be reached from other machines"),
        (("--serve-host", "db.example"), "can be reached from other machines"),
        (("--serve-host", "0.0.0.0", "--allow-remote", "--read-write"), "whoever reaches the page could act"),
    ],
)
def test_a_page_for_others_wants_a_flag_and_is_never_one_that_acts(queue: Cli, flags, said) -> None:
    answer = queue("tui", "--serve", *flags)
    assert answer.code != 0
    assert said in answer.err
    assert "fix: " in answer.err


def test_without_its_package_the_page_names_what_to_install(queue: Cli, monkeypatch) -> None:
    monkeypatch.setattr(cockpit, "find_spec", lambda _: None)
    answer = queue("tui", "--serve")
    assert answer.code == 4
    assert "pip install 'ultijobs[serve]'" in answer.err
