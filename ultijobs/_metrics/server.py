"""`GET /metrics` and `GET /health`, answered by threads of their own: also while the event loop is blocked."""

from __future__ import annotations

import contextlib
import json
import logging
import math
import socket
import threading
from collections.abc import Callable, Generator, Iterable
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from ultijobs._log import emit
from ultijobs._metrics.health import Health
from ultijobs._metrics.metrics import Distribution, Metrics
from ultijobs.errors import MetricsUnavailable

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from prometheus_client import CollectorRegistry, Metric

__all__ = ["ANYWHERE", "serving"]

ANYWHERE: Final = "0.0.0.0"  # noqa: S104 - whoever scrapes is on another machine
_CLIENT_ANSWERS_WITHIN: Final = 10.0
_STATUS: Final = {200: "200 OK", 404: "404 Not Found", 405: "405 Method Not Allowed", 503: "503 Service Unavailable"}


class _Collector:
    """Reads `Metrics` when it is scraped."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
        from prometheus_client.core import (  # noqa: PLC0415 - no process without a port needs it
            CounterMetricFamily,
            GaugeMetricFamily,
            HistogramMetricFamily,
        )

        for series, values in self._metrics.read().items():
            if series.kind == "histogram":
                histogram = HistogramMetricFamily(series.name, series.help, labels=series.labels)
                for labels, value in values.items():
                    if isinstance(value, Distribution):
                        buckets = [(_bound(bound), count) for bound, count in value.counts]
                        histogram.add_metric(labels, buckets, value.sum)
                yield histogram
                continue
            kind = CounterMetricFamily if series.kind == "counter" else GaugeMetricFamily
            family = kind(series.name, series.help, labels=series.labels)
            for labels, value in values.items():
                if not isinstance(value, Distribution):
                    family.add_metric(labels, value)
            yield family


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
    from prometheus_client import CollectorRegistry  # noqa: PLC0415 - as above

    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(metrics))
    try:
        server = _server_class(host)((host, port), _Quiet)
    except (OSError, OverflowError) as error:
        raise MetricsUnavailable(
            f"nothing can listen on {host}:{port}: {error}",
            fix="give another --metrics-port, or 0 for a free one",
            meta={"port": port, "host": host},
        ) from error
    server.set_app(_routes(registry, health))
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


def _routes(registry: CollectorRegistry, health: Callable[[], Health]) -> WSGIApplication:
    from prometheus_client.exposition import choose_encoder  # noqa: PLC0415 - as above

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", "/")).rstrip("/")
        if environ.get("REQUEST_METHOD") != "GET":
            return _json(start_response, 405, {"error": "GET alone"})
        if path == "/metrics":
            encode, kind = choose_encoder(str(environ.get("HTTP_ACCEPT", "")))
            start_response(_STATUS[200], [("Content-Type", kind)])
            return [encode(registry)]
        if path == "/health":
            state = health()
            return _json(start_response, 200 if state.ok else 503, state.shown())
        return _json(start_response, 404, {"error": "there are /metrics and /health"})

    return answer


def _json(start_response: StartResponse, status: int, body: dict[str, object]) -> list[bytes]:
    start_response(_STATUS[status], [("Content-Type", "application/json"), ("Cache-Control", "no-store")])
    return [json.dumps(body).encode() + b"\n"]


def _bound(bound: float) -> str:
    return "+Inf" if math.isinf(bound) else repr(bound)


class _Server(ThreadingMixIn, WSGIServer):
    """A thread per request; none of them holds the process up."""

    daemon_threads = True

    def server_bind(self) -> None:
        """As that of `HTTPServer`, which would ask the name service who this host is."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = str(self.server_address[0]), self.server_address[1]
        self.setup_environ()


class _Server6(_Server):
    address_family = socket.AF_INET6


def _server_class(host: str) -> type[_Server]:
    return _Server6 if ":" in host else _Server


class _Quiet(WSGIRequestHandler):
    """Logs no request, and waits for no client for ever."""

    timeout = _CLIENT_ANSWERS_WITHIN

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""
