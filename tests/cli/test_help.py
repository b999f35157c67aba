"""Help: every command has one, with examples that work."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

import pytest
import typer

from tests.cli.conftest import Cli
from ultijobs_cli.app import app


def commands(node: Any = None, path: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    node = typer.main.get_command(app) if node is None else node
    yield path, node
    for name, child in getattr(node, "commands", {}).items():
        if not child.hidden:
            yield from commands(child, (*path, name))


COMMANDS = dict(commands())


def options_of(path: tuple[str, ...]) -> set[str]:
    return {option for param in COMMANDS[path].params for option in param.opts}


EXAMPLES = [line for node in COMMANDS.values() for line in (node.epilog or "").splitlines()]


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_help_ends_with_an_example_of_that_command(cli: Cli, path: tuple[str, ...]) -> None:
    answer = cli(*path, "--help")
    assert answer.code == 0
    _, _, examples = answer.out.partition("\nExamples:\n")
    assert f"  ultijobs {' '.join(path)}".rstrip() in examples


@pytest.mark.parametrize("path", COMMANDS, ids=" ".join)
def test_every_command_takes_the_global_options(path: tuple[str, ...]) -> None:
    names = options_of(path)
    assert {"--database-url", "--schema", "--app", "--json", "--json-lines", "--log-format"} <= names


def test_every_act_takes_the_same_options() -> None:
    """A script may give them to whatever it calls. What asks for new work has no plan to look at beforehand."""
    acts = {path: names for path in COMMANDS if path != ("tui",) and "--as" in (names := options_of(path))}
    assert len(acts) >= 12
    assert {path for path, names in acts.items() if "--yes" not in names} == set()
    assert {path for path, names in acts.items() if "--reason" not in names} == {("jobs", "enqueue")}
    assert {path for path, names in acts.items() if "--dry-run" not in names} == {
        ("jobs", "enqueue"),
        ("events", "publish"),
    }


@pytest.mark.parametrize("example", EXAMPLES)
def test_every_example_parses(example: str) -> None:
    program, *words = shlex.split(example)
    assert program == "ultijobs"
    node, path = typer.main.get_command(app), []
    while words and words[0] in getattr(node, "commands", {}):
        path.append(words.pop(0))
        node = node.commands[path[-1]]
    context = node.make_context(" ".join(path), words)
    assert context.args == []


def test_no_summary_in_help_is_cut(cli: Cli) -> None:
    for path, node in COMMANDS.items():
        if getattr(node, "commands", None):
            assert not [line for line in cli(*path, "--help").out.splitlines()[1:] if line.endswith("...")]


def test_without_a_command_the_help_is_shown(cli: Cli) -> None:
    answer = cli()
    assert answer.code == 0
    assert answer.out == cli("--help").out


def test_the_version_is_data_too(cli: Cli) -> None:
    assert cli("--version").out.startswith("ultijobs ")
    assert set(cli("--version", "--json").data) == {"version"}


def test_the_global_options_name_their_variables(cli: Cli) -> None:
    shown = cli("stats", "--help").out
    for variable in ("ULTIJOBS_DATABASE_URL", "ULTIJOBS_SCHEMA", "ULTIJOBS_APP"):
        assert variable in shown


def test_a_code_that_resembles_none_is_answered_with_the_list(cli: Cli) -> None:
    assert cli("explain", "X_NOPE").err.splitlines()[1] == "fix: ultijobs explain"
    assert cli("explain", "X_JOB_LEASE_LOT").err.splitlines()[1] == "fix: ultijobs explain X_JOB_LEASE_LOST"
