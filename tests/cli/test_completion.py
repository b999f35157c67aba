"""The shells complete commands, flags and closed lists of words."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.processes import Shop


def completed(tmp_path: Path, shell: str, typed: str) -> str:
    words = typed.split(" ")
    env = {"_ULTIJOBS_COMPLETE": f"complete_{shell}", "_TYPER_COMPLETE_ARGS": typed}
    env |= {"COMP_WORDS": typed, "COMP_CWORD": str(len(words) - 1), "_TYPER_COMPLETE_FISH_ACTION": "get-args"}
    return Shop(tmp_path, None).run(**env).out


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("ultijobs que", "queues"),
        ("ultijobs jobs ", "enqueue"),
        ("ultijobs jobs ls --state de", "dead"),
        ("ultijobs jobs ls --lim", "--limit"),
    ],
)
def test_what_is_typed_is_completed(tmp_path: Path, shell: str, typed: str, offered: str) -> None:
    assert offered in completed(tmp_path, shell, typed)


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_the_script_of_each_shell_calls_the_command(tmp_path: Path, shell: str) -> None:
    script = Shop(tmp_path, None).run(_ULTIJOBS_COMPLETE=f"source_{shell}").out
    assert "_ULTIJOBS_COMPLETE" in script
    assert "ultijobs" in script
