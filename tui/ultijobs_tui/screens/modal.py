"""Windows over a screen. The list below stands still while one is open."""

from __future__ import annotations

from typing import TypeVar, cast

from textual.screen import ModalScreen

from ultijobs_tui.desk import Desk
from ultijobs_tui.frame import Frame, Needs

__all__ = ["Modal"]

_R = TypeVar("_R")


class Modal(ModalScreen[_R]):
    ALLOW_SELECT = False

    @property
    def desk(self) -> Desk:
        return cast("Desk", self.app)

    def needs(self) -> Needs:
        return Needs()

    def receive(self, frame: Frame | None) -> None:
        """Shows what it asked for, when it asked."""
