"""What `GET /health` says of any role: is it stopping, is its database away, does it get through its rounds."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Final

from ultijobs._metrics.health import Health
from ultijobs._service.stop import Stop, StopRequest
from ultijobs._service.trouble import Trouble

__all__ = ["PATIENCE", "Pulse", "condition", "milliseconds"]

PATIENCE: Final = 10.0
"""For how long the database may be away, or nothing be answered, in seconds."""
ROUNDS: Final = 5


class Pulse:
    """When a loop last got through its round. Read from any thread."""

    def __init__(self) -> None:
        self._at: float | None = None

    def beat(self) -> None:
        self._at = time.monotonic()

    @property
    def ago(self) -> float | None:
        """Seconds since the last round; None before the first."""
        return None if self._at is None else time.monotonic() - self._at


def condition(
    role: str,
    worker_id: str,
    troubles: Sequence[Trouble],
    stop: StopRequest,
    *,
    patience: float = PATIENCE,
    pulse: Pulse | None = None,
    interval: float = 0.0,
) -> Health:
    """With a pulse, also whether a round was got through lately; it comes every `interval` seconds."""
    stopping = stop.stage is not Stop.NO
    away = max((lasted for each in troubles if (lasted := each.away_for) is not None), default=None)
    reasons: list[str] = []
    facts: dict[str, object] = {
        "role": role,
        "worker_id": worker_id,
        "draining": stopping,
        "database_away_ms": milliseconds(away),
    }
    if stopping:
        reasons.append("draining")
    if away is not None and away > patience:
        reasons.append(f"the database has been away for {away:.0f} s")
    if pulse is not None:
        ago = pulse.ago
        facts["round_ago_ms"] = milliseconds(ago)
        if ago is None:
            reasons.append("starting")
        elif not reasons and ago > max(PATIENCE, ROUNDS * interval):
            reasons.append(f"no round was got through for {ago:.0f} s")
    return Health(tuple(reasons), facts)


def milliseconds(seconds: float | None) -> int | None:
    return None if seconds is None else int(seconds * 1000)
