"""Longer texts for the reader: an input as JSON, every error of a run."""

from __future__ import annotations

import contextlib
import json

from ultijobs.inspection import JobDetail
from ultijobs_tui import format as fmt

__all__ = ["pretty", "whole_error"]

_MOST = 64_000
"""Characters of an input that are shown; the command line prints all of it."""


def pretty(text: str | None) -> str:
    """JSON with its lines broken; what is not JSON as it is."""
    if text is None:
        return "no input is stored"
    with contextlib.suppress(ValueError):
        text = json.dumps(json.loads(text), indent=2, ensure_ascii=False)
    return text if len(text) <= _MOST else f"{text[:_MOST]}\n… {len(text):,} characters in all"


def whole_error(detail: JobDetail) -> str:
    """The newest attempt first, each with its traceback."""
    parts = [
        f"attempt {a.attempt} · {a.outcome} · {a.worker_id or fmt.NEVER} · {fmt.clock(a.ended_at)}\n"
        f"{(a.traceback or a.error or 'no error recorded').rstrip()}"
        for a in reversed(detail.attempts)
    ]
    return "\n\n".join(parts) or detail.row.last_error or "no error recorded"
