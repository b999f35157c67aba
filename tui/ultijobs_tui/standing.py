"""How the cockpit itself stands, for its first row."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING

from ultijobs_tui.link import LinkState, explain
from ultijobs_tui.present.bars import Status

if TYPE_CHECKING:
    from ultijobs_tui.app import Cockpit

__all__ = ["status_of"]


def status_of(app: Cockpit, marks: int) -> Status:
    link, frame, travel = app.link, app.read_frame, app.travel
    return Status(
        title=app.source.title,
        read_only=app.settings.read_only,
        tenant=app.tenant,
        state=LinkState.REPLAY if travel.away else link.state,
        clock=frame.as_of + timedelta(seconds=app.since_frame()) if frame else None,
        shown=travel.at,
        recorded=app.memory.past is not None,
        interval=app.poller.delay,
        data_age=link.data_age(),
        db_ms=frame.took_ms if frame else 0.0,
        share=app.poller.share,
        marks=marks,
        actor=app.source.actor,
        lost_for=link.lost_for(),
        retry=link.failures,
        retry_in=link.retry_in(),
        error=explain(link.error) if link.error else "",
    )
