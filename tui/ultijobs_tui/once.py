"""Incident as plain text: for a chat, a cron mail, a screen reader. The same present-functions as on the screen."""

from __future__ import annotations

from ultijobs_tui.frame import Frame, Needs
from ultijobs_tui.history import History
from ultijobs_tui.look import Look
from ultijobs_tui.paint import ASCII, line_text, table_text
from ultijobs_tui.present.incident import gauges, incident_table, stuck_panel
from ultijobs_tui.table import line

__all__ = ["NEEDS", "once_text"]

NEEDS = Needs(overview=True)


def once_text(frame: Frame, title: str, *, width: int = 120, ascii_only: bool = False) -> str:
    """The whole screen: numbers, every row, and what is known about the first of them."""
    look = Look(frame.as_of, width)
    head = line(f"ultijobs  {title}  {frame.as_of:%Y-%m-%dT%H:%M:%SZ}")
    lines = [line_text(head, width), line_text(gauges(frame.overview, History(), look), width).lstrip(), ""]
    table = incident_table(frame, look)
    lines += table_text(table, width)
    if table.rows and frame.overview is not None:
        first = next(s for s in frame.overview.stuck if s.key == table.rows[0].key)
        lines += ["", *(line_text(part, width) for part in stuck_panel(first, frame.overview, look))]
    text = "\n".join(lines) + "\n"
    return text.translate(ASCII) if ascii_only else text
