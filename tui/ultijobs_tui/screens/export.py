"""What a screen shows, for a file, and the window that asks where to write it. Nothing that exists is written over."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Horizontal, Vertical
from textual.widgets import Input

from ultijobs_tui.present.filters import of_tenant
from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.screens.modal import Modal
from ultijobs_tui.sheet import FORMATS, Sheet, default_name, format_of, render, save, sheet_of
from ultijobs_tui.table import Line, Span, Tone, line
from ultijobs_tui.widgets.field import Field
from ultijobs_tui.widgets.lines import Lines

__all__ = ["ExportDialog", "shown_sheet"]


def shown_sheet(screen: CockpitScreen) -> Sheet | None:
    """The list with the cursor, whole; None before anything was read."""
    desk, table = screen.desk, screen.grid.table
    frame = desk.last_frame
    if frame is None or not table.columns:
        return None
    where = " ".join(filter(None, (screen.shown_where(), of_tenant(desk.tenant))))
    return sheet_of(table, view=screen.VIEW, source=desk.source.title, where=where, as_of=frame.as_of)


class ExportDialog(Modal[Path | None]):
    """Writes what was shown when it was opened; the ending of the name chooses the format."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "close", show=False)]

    def __init__(self, sheet: Sheet, *, write: Callable[[Path, str], None] = save) -> None:
        super().__init__()
        self._sheet = sheet
        self._write = write

    def compose(self) -> ComposeResult:
        with Vertical(id="dialog"):
            yield Lines(id="export-title")
            yield Lines(id="export-lines", classes="panel")
            with Horizontal(classes="field"):
                yield Lines(id="path-label", classes="label")
                yield Field(default_name(self._sheet), id="path", compact=True, select_on_focus=False)
            yield Lines(id="export-hint")

    def on_mount(self) -> None:
        sheet = self._sheet
        rows = f"{len(sheet.rows):,} row{'' if len(sheet.rows) == 1 else 's'}"
        right = (Span(f"as of {sheet.as_of:%H:%M:%S}Z ", Tone.MUTED),)
        self.query_one("#export-title", Lines).set_lines(
            [line(" ", Span("EXPORT what is shown", Tone.STRONG), right=right)]
        )
        self.query_one("#export-lines", Lines).set_lines(
            [
                line(Span(" rows       ", Tone.MUTED), rows),
                line(Span(" where      ", Tone.MUTED), sheet.where or "all"),
                line(Span(" columns    ", Tone.MUTED), " ".join(sheet.columns)),
            ]
        )
        self.query_one("#path-label", Lines).set_lines([line(" ", Span("file", Tone.MUTED))])
        field = self.query_one("#path", Input)
        field.cursor_blink = False
        field.cursor_position = len(field.value)
        field.focus()
        self._hint(_HELP)

    def action_close(self) -> None:
        self.dismiss(None)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        path = Path(event.value.strip()).expanduser()
        kind = format_of(path)
        if kind is None:
            self._hint(line(" ", Span(f"end the name in {', '.join(f'.{kind}' for kind in FORMATS)}", Tone.WARN)))
            return
        try:
            self._write(path, render(self._sheet, kind))
        except FileExistsError:
            self._hint(line(" ", Span(f"{path} is there already: give another name", Tone.WARN)))
        except OSError as error:
            self._hint(line(" ", Span(f"not written: {error.strerror or error}", Tone.BAD)))
        else:
            self.dismiss(path)

    def _hint(self, text: Line) -> None:
        self.query_one("#export-hint", Lines).set_lines([text])


_HELP = line(
    " ", Span("enter", Tone.KEY), " write   ", Span("esc", Tone.KEY), " close   ",
    Span(".csv .json .md by the name's ending", Tone.MUTED),
)  # fmt: skip
