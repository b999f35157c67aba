"""`docs/guarantees.md` and the suite are kept in step."""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "guarantees.md"
LINE = re.compile(r"^- (?P<promise>.+?) `(?P<path>tests/[\w/.]+\.py)::(?P<name>\w+)`$")


def promises() -> list[tuple[str, str, str]]:
    found = []
    for text in PAGE.read_text().splitlines():
        if text.startswith("- "):
            match = LINE.match(text)
            assert match, f"a promise without its test: {text}"
            found.append((match["promise"], match["path"], match["name"]))
    return found


def names_in(path: Path) -> set[str]:
    return {
        node.name
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_")
    }


def test_the_page_makes_promises() -> None:
    assert len(promises()) >= 40


@pytest.mark.parametrize(("promise", "path", "name"), promises(), ids=lambda value: str(value)[:60])
def test_each_promise_is_shown_by_a_test(promise: str, path: str, name: str) -> None:
    assert (ROOT / path).is_file(), f"{promise!r} names a file that is not there"
    assert name in names_in(ROOT / path), f"{promise!r} names a test that is not in {path}"


def test_no_promise_is_made_twice() -> None:
    texts = [promise for promise, _, _ in promises()]
    assert len(texts) == len(set(texts))
