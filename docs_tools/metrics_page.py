"""docs/metrics.md, from the table of series."""

from __future__ import annotations

from typing import Final

from ultijobs._metrics.series import SERIES, Series

__all__ = ["pages"]

_HEAD: Final = """\
# Metrics and health

`--metrics-port PORT` on `ultijobs worker`, `scheduler` and `relay` (and `metrics_port=` of the classes) answers
`GET /metrics`, in the format of Prometheus, and `GET /health`, from threads of their own, so even while a handler
blocks the event loop. Port 0 picks a free one, and the log line `jobs.metrics.serving` says which. With
`--processes N` each process has a port of its own: PORT, PORT + 1, and so on. If the port is not available, the process
exits with 4 before anything is claimed. `--metrics-host` restricts the address; by default it listens on all.

Counters and histograms belong to their process: sum them over all processes. A gauge of the *fleet* is read by one
process among those with a port, every 5 seconds, and exported by that one alone. When it ends another takes over within
5 seconds, when it dies within 20. It is 0 for a queue that is empty or gone, and absent while nobody can read it. A
series has at most 200 sets of labels; what comes after them is counted as `(others)`.

A lost lease is counted once in the fleet: by the worker that lost it, or, when that is gone, stopped or cut off, by
the one that takes over. Cancelled and lost attempts are outcomes of their own, no failures.

"""
_HEALTH: Final = """\

## Health

`GET /health` answers 200 while claims make progress, else 503. `reasons` says why not; all else are facts, in
milliseconds where the name says so.

| field | of | meaning |
|---|---|---|
| `status`, `reasons` | all | `ok`, or `unavailable` with every reason |
| `role`, `worker_id` | all | who answers |
| `draining` | all | it was told to stop |
| `database_away_ms` | all | how long the database has been away; null when it answers |
| `round_ago_ms` | scheduler, relay | since it last got through a round |
| `leads` | scheduler | whether it is the one that dispatches |
| `free_slots`, `running`, `paused` | worker | its slots; whether an operator drained it |
| `asked_ago_ms` | worker | since a claim was answered |
| `claimed_ago_ms`, `settled_ago_ms` | worker | since a claim brought jobs, since a settlement landed |
| `loop_lag_ms` | worker | how long the event loop took to its latest turn, or has taken by now |
| `leases`, `leases_failing_ms` | worker | `kept`, or `failing` and for how long |
| `listening` | worker | whether it is told of new work; else it polls |
| `counters` | worker | as in its heartbeat: done, retried, dead, failed, lost, cancelled, suspended, returned |

| reason | when |
|---|---|
| starting | it has not connected yet |
| draining; drained by an operator | it claims nothing more |
| the database has been away | for more than 10 s, or for a lease when that is shorter |
| wedged | a handler has blocked the loop for 10 s, or goes on past its deadline and its grace |
| no renewal of the leases has landed | for more than 10 s, or for half a lease |
| no claim was answered; no round was got through | for more than 10 s, although nothing holds it back |

A database that is away makes every worker unhealthy at once, and a restart fixes nothing: use it for readiness and
alerts rather than for killing processes.
"""


def pages() -> dict[str, str]:
    rows = "\n".join(_row(each) for each in SERIES)
    table = f"| series | kind | labels | what |\n|---|---|---|---|\n{rows}\n"
    return {"metrics.md": _HEAD + "## Series\n\n" + table + _HEALTH}


def _row(series: Series) -> str:
    kind = f"{series.kind} of the fleet" if series.of_fleet else series.kind
    labels = ", ".join(f"`{label}`" for label in series.labels)
    return f"| `{series.name}` | {kind} | {labels} | {series.help} |"
