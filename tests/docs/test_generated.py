"""The generated pages say what the code says."""

from __future__ import annotations

import pytest

from docs_tools.__main__ import ROOT, main, pages, stale
from tests.cli.test_help import COMMANDS
from ultijobs_cli.explanations import CODES, explanation


def test_every_generated_page_is_current() -> None:
    assert [str(path.relative_to(ROOT)) for path in stale()] == []
    assert main(["--check"]) == 0


def test_every_command_has_its_section() -> None:
    page = pages()[ROOT / "docs" / "cli.md"]
    for path in COMMANDS:
        if path:
            assert f"## ultijobs {' '.join(path)}\n" in page


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_page_that_says_more_than_its_title(code: str) -> None:
    kind = CODES[code]
    path = ROOT / "docs" / "errors" / f"{code}.md"
    assert path.read_text(encoding="utf-8") == pages()[path]
    told = explanation(kind)
    assert told.when not in {kind.title, (kind.__doc__ or "").strip()}
    assert told.what_to_do != told.fix
