"""A check and what it finds."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from ultijobs.inspection.doctor.facts import Facts, Part, Thresholds

__all__ = ["Check", "Severity", "Symptom"]

Severity = Literal["error", "warning"]
"""An error holds work up, or soon will; a warning is what an operator should know of and may have wanted."""


@dataclass(frozen=True, slots=True)
class Symptom:
    """One thing that is wrong: its cause, and one command that fixes it or says more."""

    code: str
    severity: Severity
    cause: str
    fix: str
    at: str | None = None
    """Which queue, worker, job name, session or table it is about."""


@dataclass(frozen=True, slots=True)
class Check:
    """One question to the facts. It reads nothing by itself, and finds nothing where its part could not be read."""

    name: str
    code: str
    title: str
    needs: Part
    look: Callable[[Facts, Thresholds], Sequence[Symptom]]

    @property
    def docs(self) -> str:
        """The command that says more about its code."""
        return f"ultijobs explain {self.code}"
