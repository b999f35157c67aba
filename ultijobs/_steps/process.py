"""Which process this is, without asking the system at every step."""

from __future__ import annotations

import os
from typing import Final

__all__ = ["PROCESS"]


class _Process:
    """`pid` is that of the process that reads it, in a forked child too."""

    __slots__ = ("pid",)

    def __init__(self) -> None:
        self.look()

    def look(self) -> None:
        self.pid = os.getpid()


PROCESS: Final = _Process()

if hasattr(os, "register_at_fork"):  # Windows has no fork
    os.register_at_fork(after_in_child=PROCESS.look)
