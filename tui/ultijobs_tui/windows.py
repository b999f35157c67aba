"""The windows that any screen can open: why, an input, an error, an export, the help; and the pager beside them."""

from __future__ import annotations

import asyncio
import io
from abc import abstractmethod
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Final
from uuid import UUID

from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Needs
from ultijobs_tui.link import explain
from ultijobs_tui.paging import page
from ultijobs_tui.present.tasks import upcoming_text
from ultijobs_tui.present.texts import pretty, whole_error
from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.screens.export import ExportDialog, shown_sheet
from ultijobs_tui.screens.reader import HelpDialog, TextDialog, WhyDialog
from ultijobs_tui.sheet import default_name, render
from ultijobs_tui.source import Source
from ultijobs_tui.table import Tone, line
from ultijobs_tui.widgets.tones import TonedApp

__all__ = ["WindowsApp"]

_READ_SECONDS: Final = 5.0


class WindowsApp(TonedApp):
    @property
    @abstractmethod
    def source(self) -> Source: ...

    @abstractmethod
    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Puts one line where results are told."""

    def show_why(self, id: UUID) -> None:
        self.push_screen(WhyDialog(id))

    def copy(self, text: str) -> None:
        """To the clipboard where the terminal has one, and to the result line where it has none."""
        self.copy_to_clipboard(text)
        self.say(f"copied: {text}")

    def read_text(self, title: str, text: str, note: str = "") -> None:
        """Shows a text in a window."""
        self.push_screen(TextDialog(title, [line(" ", part) for part in text.split("\n")], text, note))

    def page_text(self, title: str, text: str) -> None:
        """Shows a text in the operator's pager; where that cannot be, in a window that says why."""
        refused = page(text, self.suspend)
        if refused is not None:
            self.read_text(title, text, refused)

    def export(self) -> None:
        """Asks where what is shown is written to; in a browser it is downloaded."""
        screen = self.screen
        sheet = shown_sheet(screen) if isinstance(screen, CockpitScreen) else None
        if sheet is None:
            self.say("nothing is shown yet that could be written", Tone.WARN)
        elif self.is_web:
            name = default_name(sheet)
            self.deliver_text(io.StringIO(render(sheet, "csv")), save_filename=name, mime_type="text/csv")
            self.say(f"✓ {name} goes to the browser", Tone.GOOD)
        else:
            self.push_screen(ExportDialog(sheet), self._exported)

    def _exported(self, path: Path | None) -> None:
        if path is not None:
            self.say(f"✓ written: {path}", Tone.GOOD)

    def show_input(self, id: UUID) -> None:
        async def read() -> str:
            return pretty(await self.source.input(id))

        title = f"Input of {fmt.short_id(id)}"
        self.run_worker(self._read(title, read(), self.read_text), group="read", exit_on_error=False)

    def show_error(self, id: UUID) -> None:
        async def read() -> str:
            frame = await self.source.fetch(Needs(job=id))
            return whole_error(frame.job) if frame.job else frame.failures.get("job", "there is no such job")

        title = f"Error of {fmt.short_id(id)}"
        self.run_worker(self._read(title, read(), self.page_text), group="read", exit_on_error=False)

    def show_upcoming(self, task: str) -> None:
        async def read() -> str:
            return upcoming_text(await self.source.task(task))

        title = f"Upcoming of {task}"
        self.run_worker(self._read(title, read(), self.read_text), group="read", exit_on_error=False)

    async def _read(self, title: str, read: Coroutine[None, None, str], show: Callable[[str, str], None]) -> None:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                text = await read
        except Exception as error:  # noqa: BLE001 - told, the screen below goes on
            self.say(explain(error), Tone.BAD)
        else:
            show(title, text)

    def help(self) -> None:
        screen = self.screen
        if isinstance(screen, CockpitScreen):
            self.push_screen(HelpDialog(screen.VIEW, screen.refusal, screen.keys))
