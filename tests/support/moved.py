"""An application whose jobs leave one row each, wherever they run."""

from __future__ import annotations

from pydantic import BaseModel

from tests.support.effects import effect
from ultijobs import App, job


class Note(BaseModel):
    n: int


@job(Note, idempotency_key=lambda note: str(note.n), tenant="none", queue="bulk")
async def note(input: Note) -> None:
    await effect(f"note-{input.n}")


app = App(jobs=[note])
