"""A canary after its act: watched until it stops, then said in one line. Pure."""

from __future__ import annotations

from uuid import UUID

from ultijobs.inspection import JobRow, JobState, Plan
from ultijobs_tui import format as fmt
from ultijobs_tui.present.jobs import waits_for
from ultijobs_tui.table import Tone

__all__ = ["Following"]


class Following:
    def __init__(self) -> None:
        self._watched: tuple[UUID, Plan] | None = None

    @property
    def id(self) -> UUID | None:
        """The job to read along."""
        return self._watched[0] if self._watched else None

    def start(self, id: UUID, plan: Plan) -> None:
        self._watched = (id, plan)

    def tell(self, row: JobRow | None) -> tuple[str, Tone] | None:
        """What became of it so far; the last word ends the watch."""
        if row is None or self._watched is None or row.id != self._watched[0]:
            return None
        plan = self._watched[1]
        one = plan.options.limit == 1
        name = f"{'canary ' if one else ''}{fmt.short_id(row.id)}"
        if row.state in {JobState.DEAD, JobState.FAILED} and row.updated_at <= plan.as_of:
            return f"{name}: retried …", Tone.PLAIN
        if row.state in {JobState.READY, JobState.DELAYED, JobState.RUNNING, JobState.SUSPENDED}:
            waits = f" · waits for {waits_for(row)}" if row.waiting_on is not None else ""
            return f"{name}: {row.state}, attempt {fmt.attempts(row)}{waits} …", Tone.PLAIN
        self._watched = None
        if row.state == JobState.DONE:
            return f"✓ {name} is done{': r retries the rest' if one else ''}", Tone.GOOD
        if row.state == JobState.CANCELLED:
            return f"{name} was cancelled", Tone.WARN
        rest = ", as the rest would" if one else ""
        return f"✗ {name} died again{rest}: {row.error_code or row.stop_reason}", Tone.BAD
