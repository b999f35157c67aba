"""How the cockpit itself stands: what its first row says, and which actions that rules out."""

from __future__ import annotations

from datetime import timedelta
from typing import TYPE_CHECKING, Final

from ultijobs_tui.actions import KeyAction
from ultijobs_tui.link import LinkState, explain
from ultijobs_tui.present.bars import Status

if TYPE_CHECKING:
    from ultijobs_tui.app import Cockpit

__all__ = ["refusal_of", "status_of"]

_OF_NOW: Final = frozenset({"why", "input", "pager", "tenant"})
"""What only the database itself can answer."""


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


def refusal_of(app: Cockpit, action: KeyAction) -> str | None:
    """Why an action is ruled out on every screen for now."""
    if app.travel.away and (action.writes or action.id in _OF_NOW):
        return "replay: press f for live" if app.memory.past is None else "this is a recording"
    if not action.writes:
        return None
    if app.settings.read_only:
        return "the cockpit is read-only"
    if app.link.state is LinkState.LOST:
        return "the connection is lost"
    return app.acting.nothing_to_undo() if action.id == "undo" else None
