"""Each command in a line that fixes an error is one that the command line takes, written as it can be pasted."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.support.fixes import commands_of, refusal
from ultijobs_cli.explanations import CODES

ROOT = Path(__file__).parents[2]
SOURCES = [path for top in ("ultijobs", "cli", "tui") for path in sorted((ROOT / top).rglob("*.py"))]


def _text(node: ast.expr) -> list[str]:
    match node:
        case ast.Constant(value=str(text)):
            return [text]
        case ast.JoinedStr(values=parts):
            return ["".join(_text(part)[0] if isinstance(part, ast.Constant) else "mail" for part in parts)]
        case ast.IfExp(body=one, orelse=other):
            return [*_text(one), *_text(other)]
        case _:
            return []


def _lines(path: Path) -> Iterator[tuple[str, str]]:
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        told: list[ast.expr] = []
        if isinstance(node, ast.Call):
            told = [each.value for each in node.keywords if each.arg in {"fix", "hint", "frees"}]
        elif isinstance(node, ast.Assign) and any(getattr(each, "id", "") == "default_fix" for each in node.targets):
            told = [node.value]
        for each in told:
            for fix in _text(each):
                yield f"{path.relative_to(ROOT)}:{each.lineno}", fix


FOUND = [(at, command) for path in SOURCES for at, fix in _lines(path) for command in commands_of(fix)]
EXPLAINED = [
    (f"{code}.{field}", command)
    for code, texts in tomllib.loads((ROOT / "cli/ultijobs_cli/explanations.toml").read_text(encoding="utf-8")).items()
    for field, text in texts.items()
    for command in commands_of(text)
]


def test_lines_with_commands_are_found() -> None:
    assert len(FOUND) > 30
    assert len(EXPLAINED) > 20
    assert {code for code, _ in EXPLAINED if code.partition(".")[0] not in CODES} == set()


def _words(value: str) -> str:
    return value.replace(" ", "_")


@pytest.mark.parametrize(("at", "command"), FOUND, ids=_words)
def test_the_command_line_takes_it(at: str, command: str) -> None:
    assert refusal(command) is None, f"{at}: {command}"


@pytest.mark.parametrize(("at", "command"), EXPLAINED, ids=_words)
def test_a_command_of_an_explanation_exists(at: str, command: str) -> None:
    # Prose may name a command without saying what to give it.
    assert (refusal(command) or "MissingParameter").startswith("MissingParameter"), f"{at}: {command}"


def test_a_command_that_is_none_is_noticed() -> None:
    assert refusal("ultijobs jobs shwo 1f3a9c20") is not None
    assert refusal("ultijobs jobs ls --stat dead") is not None
    assert refusal("ultijobs jobs show") is not None
    assert refusal("ultijobs queues pause") is not None
    assert refusal("ultijobs jobs retry 1f3a9c20 1f3a9c21 --yes") is None
