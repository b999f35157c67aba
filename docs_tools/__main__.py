"""`python -m docs_tools` writes the generated pages; with `--check` it says which are stale and exits 1."""

from __future__ import annotations

import sys
from pathlib import Path

from docs_tools import cli_reference, error_pages, json_shapes, metrics_page
from ultijobs_tui.present.help import keys_markdown

ROOT = Path(__file__).parents[1]
GENERATED = (ROOT / "docs" / "errors",)
"""Folders that hold generated pages alone."""


def pages() -> dict[Path, str]:
    """Every generated page and its text."""
    made = {
        **cli_reference.pages(),
        **error_pages.pages(),
        **json_shapes.pages(),
        **metrics_page.pages(),
        "keys.md": keys_markdown(),
    }
    return {ROOT / "docs" / name: text for name, text in made.items()}


def stale() -> list[Path]:
    """Pages that are missing, differ, or that nothing makes any more."""
    wanted = pages()
    wrong = [path for path, text in wanted.items() if not path.exists() or path.read_text(encoding="utf-8") != text]
    return wrong + [path for folder in GENERATED for path in sorted(folder.glob("*.md")) if path not in wanted]


def main(words: list[str]) -> int:
    if "--check" in words:
        wrong = stale()
        for path in wrong:
            sys.stderr.write(f"{path.relative_to(ROOT)} is stale: run `make docs`\n")
        return 1 if wrong else 0
    for path in stale():
        path.unlink(missing_ok=True)
    for path, text in pages().items():
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
