"""What screens may ask of the cockpit, and the values they ask with. Keeps screens from knowing the app."""

from __future__ import annotations

from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from datetime import datetime
from typing import Protocol
from uuid import UUID

from ultijobs.inspection import Action, PlanOptions, Target
from ultijobs_tui.actions import KeyAction
from ultijobs_tui.frame import Frame
from ultijobs_tui.history import History
from ultijobs_tui.keymap import DEFAULT, Keymap
from ultijobs_tui.look import Look
from ultijobs_tui.present.bars import Status
from ultijobs_tui.source import Source
from ultijobs_tui.table import Line, Tone

__all__ = ["Desk", "Intent", "Place", "Settings"]


@dataclass(frozen=True, slots=True)
class Settings:
    """How the cockpit was started."""

    job: str | None = None
    where: str | None = None
    view: str = "incident"
    read_only: bool = False
    refresh: float = 1.0
    ascii: bool = False
    tenant: str | None = None
    queue: str | None = None
    theme: str | None = None
    keys: Keymap = DEFAULT
    still: bool = False
    """Nothing is read but by hand."""
    at: datetime | None = None
    """Where a recording is opened."""


@dataclass(frozen=True, slots=True)
class Place:
    """Where the operator is; also what a deep link says."""

    view: str
    where: str | None = None
    key: str | None = None
    job: UUID | None = None
    below: str | None = None
    """Of a screen of two lists: the row of the lower one, when the operator is in that."""


@dataclass(frozen=True, slots=True)
class Intent:
    """What a key press means, with its target captured at the press: what the list does later changes nothing."""

    action: Action
    target: Target | str | tuple[UUID, ...]
    """A text is a filter of jobs."""
    title: str
    options: PlanOptions = field(default_factory=PlanOptions)
    follow: bool = False
    """Of a canary: its job is watched afterwards."""
    note: str = ""
    """What the operator should know about the target, told in the dialog."""
    undo: bool = False
    """It takes back what was just done: it is applied at once."""


class Desk(Protocol):
    @property
    def source(self) -> Source: ...
    @property
    def history(self) -> History: ...
    @property
    def settings(self) -> Settings: ...
    @property
    def last_frame(self) -> Frame | None: ...
    def status(self, marks: int = 0) -> Status: ...
    def look(self) -> Look: ...
    def refusal(self, action: KeyAction) -> str | None:
        """Why an action cannot be done now, whatever the screen."""
        ...

    @property
    def tenant(self) -> str | None:
        """The one that every screen is narrowed to."""
        ...

    def narrow(self, tenant: str | None) -> None:
        """Narrows every screen and every act on jobs to one tenant; None is all of them."""
        ...

    def say(self, text: str, tone: Tone = Tone.PLAIN) -> None:
        """Puts one line where results are told."""
        ...

    @property
    def result(self) -> Line: ...
    def poke(self) -> None: ...
    def act(self, intent: Intent) -> None: ...
    def go(self, place: Place) -> None: ...
    @property
    def leads_up(self) -> bool:
        """Whether a row of another screen led here, and nothing else has been looked for since."""
        ...

    def up(self) -> bool:
        """Goes back to that row; False when there is none."""
        ...

    def show_why(self, id: UUID) -> None: ...
    def show_input(self, id: UUID) -> None: ...
    def show_error(self, id: UUID) -> None: ...
    def show_upcoming(self, task: str) -> None: ...
    def suspend(self) -> AbstractContextManager[None]:
        """Lends the terminal to another program for the block."""
        ...

    def page_text(self, title: str, text: str) -> None: ...
    def copy(self, text: str) -> None: ...
    def everywhere(self, action: str) -> None:
        """Does what a key does on every screen."""
        ...
