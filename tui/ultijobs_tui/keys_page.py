"""Prints docs/keys.md: `python -m ultijobs_tui.keys_page > docs/keys.md`."""

from __future__ import annotations

import sys

from ultijobs_tui.present.help import keys_markdown

if __name__ == "__main__":
    sys.stdout.write(keys_markdown())
