"""What a process counts: bounded, inert, and read by a real Prometheus client."""

from __future__ import annotations

import threading
import time

from ultijobs._metrics import series
from ultijobs._metrics.metrics import MOST, OTHERS, Distribution, Metrics


def test_counters_add_up_from_any_thread():
    metrics = Metrics()
    threads = [
        threading.Thread(target=lambda: [metrics.add(series.JOBS, "default", "ok") for _ in range(500)])
        for _ in range(4)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert metrics.read()[series.JOBS] == {("default", "ok"): 2_000}


def test_a_counter_that_was_announced_is_there_at_0():
    metrics = Metrics()
    metrics.add(series.JOBS, "default", "ok", by=0)
    assert metrics.read()[series.JOBS] == {("default", "ok"): 0}


def test_a_histogram_has_cumulative_counts_and_a_sum():
    metrics = Metrics()
    for value in (0.004, 0.005, 0.3, 99_999.0, -1.0):
        metrics.observe(series.WAIT_SECONDS, value, "default")
    (told,) = metrics.read()[series.WAIT_SECONDS].values()
    assert isinstance(told, Distribution)
    counts = dict(told.counts)
    assert (counts[0.005], counts[0.25], counts[0.5], counts[7_200.0], counts[float("inf")]) == (3, 3, 4, 4, 5)
    assert told.sum == 0.004 + 0.005 + 0.3 + 99_999.0


def test_what_comes_after_many_labels_is_counted_as_others():
    metrics = Metrics()
    for number in range(MOST + 50):
        metrics.add(series.LEASES_LOST, f"q{number}")
    told = metrics.read()[series.LEASES_LOST]
    assert len(told) == MOST + 1
    assert told[OTHERS,] == 50


def test_a_label_is_inert_and_short_and_names_that_look_alike_are_one():
    metrics = Metrics()
    metrics.replace(series.QUEUE_DEPTH, {("a\n\x1b[31m",): 2, ("a\\n\\x1b[31m",): 3, ("x" * 10_000,): 1})
    told = metrics.read()[series.QUEUE_DEPTH]
    assert told["a\\n\\x1b[31m",] == 5
    assert all(len(label) <= 100 and label.isprintable() for (label,) in told)


def test_what_is_replaced_is_gone_and_what_is_over_its_time_too():
    metrics = Metrics()
    metrics.replace(series.QUEUE_DEPTH, {("a",): 1})
    metrics.replace(series.QUEUE_DEPTH, {("b",): 1})
    assert metrics.read()[series.QUEUE_DEPTH] == {("b",): 1}
    metrics.replace(series.QUEUE_DEPTH, {("b",): 1}, until=time.monotonic() - 1)
    assert metrics.read()[series.QUEUE_DEPTH] == {}


def test_every_series_is_of_our_name_and_explained():
    for each in series.SERIES:
        assert each.name.startswith("ultijobs_")
        assert each.help.endswith(".") or each.help.endswith("0")
        assert each.name.endswith("_total") == (each.kind == "counter")
        assert bool(each.buckets) == (each.kind == "histogram")
    assert len({each.name for each in series.SERIES}) == len(series.SERIES)
