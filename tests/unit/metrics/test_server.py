"""The port: what it answers, also to those who ask for something else, and while a loop stands still."""

from __future__ import annotations

import http.client
import json
import logging
import socket
from concurrent.futures import ThreadPoolExecutor

import pytest
from prometheus_client.parser import text_string_to_metric_families

from ultijobs._metrics import series
from ultijobs._metrics.health import Health
from ultijobs._metrics.metrics import Metrics
from ultijobs._metrics.server import serving
from ultijobs.errors import MetricsUnavailable

HERE = "127.0.0.1"


@pytest.fixture
def said(caplog: pytest.LogCaptureFixture) -> pytest.LogCaptureFixture:
    caplog.set_level(logging.INFO, "ultijobs")
    return caplog


def port(said: pytest.LogCaptureFixture) -> int:
    return int(said.records[-1].__dict__["fields"]["port"])


def asked(port: int, path: str, method: str = "GET", **headers: str) -> tuple[int, str, str]:
    connection = http.client.HTTPConnection(HERE, port, timeout=5)
    try:
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.headers["Content-Type"], answer.read().decode()
    finally:
        connection.close()


def test_metrics_are_what_a_prometheus_client_reads(said: pytest.LogCaptureFixture):
    metrics = Metrics()
    metrics.add(series.JOBS, 'na"me\\', "ok", by=3)
    metrics.observe(series.RUN_SECONDS, 0.2, "default")
    metrics.replace(series.QUEUE_DEPTH, {("default",): 7})
    with serving(0, HERE, metrics, Health, worker_id="w"):
        status, kind, text = asked(port(said), "/metrics")
        _, open_kind, open_text = asked(port(said), "/metrics", Accept="application/openmetrics-text; version=1.0.0")
    assert (status, kind.split(";")[0]) == (200, "text/plain")
    found = {family.name: family for family in text_string_to_metric_families(text)}
    (jobs,) = found["ultijobs_jobs"].samples
    assert (jobs.name, jobs.labels, jobs.value) == (
        "ultijobs_jobs_total",
        {"queue": 'na"me\\', "outcome": "ok"},
        3,
    )
    assert [sample.value for sample in found["ultijobs_queue_depth"].samples] == [7]
    run = {sample.name: sample.value for sample in found["ultijobs_run_seconds"].samples}
    assert (run["ultijobs_run_seconds_count"], run["ultijobs_run_seconds_sum"]) == (1, 0.2)
    assert open_kind.startswith("application/openmetrics-text")
    assert open_text.endswith("# EOF\n")


def test_health_is_200_or_503_with_the_reasons(said: pytest.LogCaptureFixture):
    states = [Health((), {"running": 1}), Health(("draining",), {"running": 0})]
    with serving(0, HERE, Metrics(), lambda: states.pop(0), worker_id="w"):
        assert asked(port(said), "/health")[::2] == (200, '{"status": "ok", "reasons": [], "running": 1}\n')
        status, kind, text = asked(port(said), "/health/")
    assert (status, kind) == (503, "application/json")
    assert json.loads(text) == {"status": "unavailable", "reasons": ["draining"], "running": 0}


@pytest.mark.parametrize(
    ("method", "path", "status"), [("GET", "/", 404), ("POST", "/health", 405), ("HEAD", "/health", 405)]
)
def test_anything_else_is_refused(said: pytest.LogCaptureFixture, method: str, path: str, status: int):
    with serving(0, HERE, Metrics(), Health, worker_id="w"):
        assert asked(port(said), path, method)[0] == status


async def test_it_answers_while_the_loop_stands_still(said: pytest.LogCaptureFixture):
    with serving(0, HERE, Metrics(), Health, worker_id="w"), ThreadPoolExecutor(1) as elsewhere:
        # Waits in this thread, which is the loop's own.
        answer = elsewhere.submit(asked, port(said), "/health").result(5)
    assert answer[0] == 200


def test_a_scrape_that_fails_is_told_in_one_line_and_answered_with_500(
    said: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
):
    def broken() -> Health:
        raise ValueError("no idea")

    with serving(0, HERE, Metrics(), broken, worker_id="w"):
        number = port(said)
        assert [asked(number, "/health")[0] for _ in range(2)] == [500, 500]
        with socket.create_connection((HERE, number)) as gone:
            gone.send(b"GET /metrics HTTP/1.1\r\n")
        assert asked(number, "/metrics")[0] == 200
    assert [getattr(record, "event", "") for record in said.records[1:]] == ["jobs.metrics.failed"]
    assert capfd.readouterr().err == ""


def test_a_port_that_is_taken_is_told_with_what_to_do():
    with socket.socket() as taken:
        taken.bind((HERE, 0))
        taken.listen()
        number = taken.getsockname()[1]
        serves = serving(number, HERE, Metrics(), Health, worker_id="w")
        with pytest.raises(MetricsUnavailable, match=f"{HERE}:{number}") as refused, serves:
            pass
    assert refused.value.fix is not None


def test_the_port_is_free_again_afterwards(said: pytest.LogCaptureFixture):
    with serving(0, HERE, Metrics(), Health, worker_id="w"):
        number = port(said)
    with serving(number, HERE, Metrics(), Health, worker_id="w"):
        assert asked(number, "/health")[0] == 200
