"""The columns of x_undo: those of a job that a retry or a cancel changes, and what they were before."""

from __future__ import annotations

from typing import Final

__all__ = ["CHANGED", "FOUND", "KEPT", "OVER"]

CHANGED: Final = (
    "state",
    "attempt",
    "key_held",
    "run_at",
    "due_at",
    "started_at",
    "finished_at",
    "worker_id",
    "stop_reason",
    "cancel_reason",
    "progress",
)
"""What comes back when an act is taken back."""

_OWN: Final = ("job_id", "act", "kind", "dropped", "lease_no")

KEPT: Final = ", ".join((*_OWN, *CHANGED))

FOUND: Final = "{row}.id, {act}, '{kind}', {dropped}, {row}.lease_no, " + ", ".join(
    f"{{row}}.{name}" for name in CHANGED
)
"""The values of `KEPT`, from a row of jobs as it was found."""

OVER: Final = "on conflict (job_id) do update set at = now(), " + ", ".join(
    f"{name} = excluded.{name}" for name in (*_OWN[1:], *CHANGED)
)
"""What an earlier act found is worthless once another one has changed the row."""
