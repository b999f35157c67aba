"""Serves `GET /metrics` and `GET /health` while a role runs, by threads of their own."""

from __future__ import annotations

import contextlib
import logging
import threading
from collections.abc import Callable, Generator
from typing import Final

from ultijobs._log import emit
from ultijobs._metrics.health import Health
from ultijobs._metrics.metrics import Metrics
from ultijobs.errors import MetricsUnavailable

__all__ = ["ANYWHERE", "serving"]

ANYWHERE: Final = "0.0.0.0"  # noqa: S104 - whoever scrapes is on another machine


@contextlib.contextmanager
def serving(
    port: int | None, host: str, metrics: Metrics, health: Callable[[], Health], *, worker_id: str
) -> Generator[None]:
    """Serves for the block; does nothing without a port. Port 0 takes a free one, which the log tells.

    `health` is called on threads of the server. Raises `MetricsUnavailable` when the port cannot be had.
    """
    if port is None:
        yield
        return
    from ultijobs._metrics.endpoint import endpoint  # noqa: PLC0415 - no process without a port needs HTTP or Prometheus

    try:
        server = endpoint(host, port, metrics, health)
    except (OSError, OverflowError) as error:
        raise MetricsUnavailable(
            f"nothing can listen on {host}:{port}: {error}",
            fix="give another --metrics-port, or 0 for a free one",
            meta={"port": port, "host": host},
        ) from error
    thread = threading.Thread(target=server.serve_forever, name="ultijobs-metrics", daemon=True)
    thread.start()
    taken = server.server_address[1]
    emit(
        logging.INFO,
        "jobs.metrics.serving",
        f"GET /metrics and /health on http://{host}:{taken}",
        worker_id=worker_id,
        port=taken,
    )
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()
