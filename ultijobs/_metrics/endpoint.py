"""What the port answers, also while the event loop is blocked: metrics in the formats of Prometheus, health as JSON."""

from __future__ import annotations

import json
import logging
import math
import socket
from collections.abc import Callable, Iterable
from http import HTTPStatus
from socketserver import TCPServer, ThreadingMixIn
from typing import TYPE_CHECKING, Final
from wsgiref.simple_server import WSGIRequestHandler, WSGIServer

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder

from ultijobs._log import RateLimit, emit
from ultijobs._metrics.health import Health
from ultijobs._metrics.metrics import Distribution, Metrics

if TYPE_CHECKING:
    from wsgiref.types import StartResponse, WSGIApplication, WSGIEnvironment

    from prometheus_client import Metric

__all__ = ["endpoint"]

_CLIENT_ANSWERS_WITHIN: Final = 10.0
_STATUS: Final = {status.value: f"{status.value} {status.phrase}" for status in HTTPStatus}


def endpoint(host: str, port: int, metrics: Metrics, health: Callable[[], Health]) -> WSGIServer:
    """A server that listens, and answers once it is run. Raises `OSError` when it cannot listen."""
    registry = CollectorRegistry(auto_describe=False)
    registry.register(_Collector(metrics))
    server = (_Server6 if ":" in host else _Server)((host, port), _Quiet)
    server.set_app(_routes(registry, health))
    return server


class _Collector:
    """Reads `Metrics` when it is scraped."""

    def __init__(self, metrics: Metrics) -> None:
        self._metrics = metrics

    def collect(self) -> Iterable[Metric]:
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


def _routes(registry: CollectorRegistry, health: Callable[[], Health]) -> WSGIApplication:
    said = RateLimit()

    def answer(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        try:
            return found(environ, start_response)
        except Exception as error:  # noqa: BLE001 - a scrape that fails must not fail the work
            if said.admit("failed") is not None:
                told = f"{environ.get('PATH_INFO')} could not be answered: {type(error).__qualname__}: {error}"
                emit(logging.ERROR, "jobs.metrics.failed", told, exc_info=error)
            return _json(start_response, 500, {"error": type(error).__qualname__})

    def found(environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        path = str(environ.get("PATH_INFO", "/")).rstrip("/")
        if environ.get("REQUEST_METHOD") != "GET":
            return _json(start_response, 405, {"error": "GET alone"})
        if path == "/metrics":
            encode, kind = choose_encoder(str(environ.get("HTTP_ACCEPT", "")))
            body = encode(registry)
            start_response(_STATUS[200], [("Content-Type", kind)])
            return [body]
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

    def handle_error(self, request: object, client_address: object) -> None:
        """A client that has gone, or says nothing, is none of our business."""


class _Server6(_Server):
    address_family = socket.AF_INET6


class _Quiet(WSGIRequestHandler):
    """Logs no request, and waits for no client for ever."""

    timeout = _CLIENT_ANSWERS_WITHIN

    def log_message(self, format: str, *args: object) -> None:
        """Says nothing."""
