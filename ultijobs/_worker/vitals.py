"""Whether a worker makes progress, as `GET /health` tells it. Read from any thread, also while the loop is blocked."""

from __future__ import annotations

from typing import Final

from ultijobs._metrics.health import Health
from ultijobs._service.condition import PATIENCE, condition, milliseconds
from ultijobs._service.stop import StopRequest
from ultijobs._service.trouble import Trouble
from ultijobs._worker.crew import Crew
from ultijobs._worker.settings import Settings

__all__ = ["vitals"]

POLLS: Final = 5


def vitals(crew: Crew | None, settings: Settings, trouble: Trouble, stop: StopRequest) -> Health:
    """Without a crew the worker is starting, or waits for its database."""
    lease = settings.lease.total_seconds()
    known = condition("worker", settings.worker_id, [trouble], stop, patience=min(PATIENCE, lease))
    if crew is None:
        return Health((*known.reasons, "starting"), known.facts)
    reasons = list(known.reasons)
    tally, claimer, failing = crew.tally, crew.claimer, crew.keeper.failing_for
    if crew.heartbeat.paused:
        reasons.append("drained by an operator")
    if crew.watch.wedged:
        reasons.append("wedged: a handler blocks the event loop, or goes on past its deadline")
    if failing is not None and failing > min(PATIENCE, lease / 2):
        reasons.append(f"no renewal of the leases has landed for {failing:.0f} s")
    silent = tally.asked_ago_ms / 1000
    if not reasons and claimer.claiming and silent > max(PATIENCE, POLLS * settings.poll.total_seconds()):
        reasons.append(f"no claim was answered for {silent:.0f} s")
    facts = {
        **known.facts,
        "paused": crew.heartbeat.paused,
        "free_slots": claimer.free,
        "running": claimer.running,
        "asked_ago_ms": tally.asked_ago_ms,
        "claimed_ago_ms": tally.claimed_ago_ms,
        "settled_ago_ms": tally.settled_ago_ms,
        "loop_lag_ms": milliseconds(crew.watch.behind),
        "leases": "kept" if failing is None else "failing",
        "leases_failing_ms": milliseconds(failing),
        "listening": crew.heartbeat.listening,
        "counters": tally.counts(),
    }
    return Health(tuple(reasons), facts)
