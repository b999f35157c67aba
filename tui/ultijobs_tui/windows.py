"""The windows that any screen can open: why, an input, an error, the help."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from collections.abc import Coroutine
from typing import Final
from uuid import UUID

from textual.app import App

from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Needs
from ultijobs_tui.link import explain
from ultijobs_tui.present.texts import pretty, whole_error
from ultijobs_tui.screens.base import CockpitScreen
from ultijobs_tui.screens.reader import HelpDialog, TextDialog, WhyDialog
from ultijobs_tui.source import Source
from ultijobs_tui.table import Tone, line

__all__ = ["WindowsApp"]

_READ_SECONDS: Final = 5.0


class WindowsApp(App[int]):
    @property
    @abstractmethod
    def source(self) -> Source: ...

    @abstractmethod
    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Puts one line where results are told."""

    def show_why(self, id: UUID) -> None:
        self.push_screen(WhyDialog(id))

    def page_text(self, title: str, text: str) -> None:
        self.push_screen(TextDialog(title, [line(" ", part) for part in text.split("\n")], text))

    def show_input(self, id: UUID) -> None:
        async def read() -> str:
            return pretty(await self.source.input(id))

        self.run_worker(self._read(f"Input of {fmt.short_id(id)}", read()), group="read", exit_on_error=False)

    def show_error(self, id: UUID) -> None:
        async def read() -> str:
            frame = await self.source.fetch(Needs(job=id))
            return whole_error(frame.job) if frame.job else frame.failures.get("job", "there is no such job")

        self.run_worker(self._read(f"Error of {fmt.short_id(id)}", read()), group="read", exit_on_error=False)

    async def _read(self, title: str, read: Coroutine[None, None, str]) -> None:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                text = await read
        except Exception as error:  # noqa: BLE001 - told, the screen below goes on
            self.say(explain(error), Tone.BAD)
        else:
            self.page_text(title, text)

    def help(self) -> None:
        screen = self.screen
        if isinstance(screen, CockpitScreen):
            self.push_screen(HelpDialog(screen.VIEW, screen.refusal))
