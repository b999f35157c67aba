"""One screen as plain text: for a chat, a cron mail, a screen reader. What it says is what the screen shows."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from textual.pilot import Pilot
from textual.widget import Widget

from ultijobs_tui.app import Cockpit
from ultijobs_tui.desk import Place
from ultijobs_tui.paint import ASCII, line_text, table_text
from ultijobs_tui.table import line
from ultijobs_tui.widgets.grid import Grid
from ultijobs_tui.widgets.lines import Lines

__all__ = ["once_text"]

_HEIGHT: Final = 60
"""High enough for what a screen shows below its list."""
_ROUNDS: Final = 4
"""Some screens ask for more when they know what is under their cursor."""
_FRAME: Final = frozenset({"state", "tabs", "filter-label", "result", "footer"})


async def once_text(app: Cockpit, *, width: int = 120, ascii_only: bool = False) -> str:
    """The screen that `app` begins at: its list whole, and what it says of the first row.

    `app` stands still: it was made with `Settings(still=True)`. Raises what reading raises.
    """
    written: list[str] = []
    failed: list[Exception] = []

    async def look(pilot: Pilot[object]) -> None:
        try:
            await _read(app, pilot)
            written.extend(_text(app, width))
        except Exception as error:  # noqa: BLE001 - raised again below: in here it would end in a traceback on the screen
            failed.append(error)
        app.exit(0)

    await app.run_async(headless=True, size=(width, _HEIGHT), auto_pilot=look)
    if failed:
        raise failed[0]
    text = "\n".join(written) + "\n"
    return text.translate(ASCII) if ascii_only else text


async def _read(app: Cockpit, pilot: Pilot[object]) -> None:
    await pilot.pause()
    if app.settings.job is not None:
        app.go(Place("run", job=await app.source.find(app.settings.job)))
        await pilot.pause()
    if app.memory.past is not None:
        return
    for _ in range(_ROUNDS):
        asked = app.asks()
        app.feed(await app.source.fetch(asked))
        await pilot.pause()
        if app.asks() == asked:
            return


def _text(app: Cockpit, width: int) -> Iterator[str]:
    moment = app.travel.at or (app.read_frame.as_of if app.read_frame else None)
    when = f"{moment:%Y-%m-%dT%H:%M:%SZ}" if moment is not None else ""
    tenant = f"  tenant {app.tenant}" if app.tenant is not None else ""
    yield line_text(line(f"ultijobs  {app.source.title}{tenant}  {when}"), width)
    for part in app.screen.query("Lines, Grid").results(Widget):
        if isinstance(part, Grid):
            yield from table_text(part.table, width)
        elif isinstance(part, Lines) and part.id not in _FRAME:
            yield from (line_text(text, width) for text in part.lines)
