"""The supervisor's own decisions, with processes that do nothing but end."""

import sys
from collections.abc import Callable

import pytest

from ultijobs._worker.processes import supervise


def ending(code: str) -> Callable[[int], list[str]]:
    return lambda _: [sys.executable, "-I", "-S", "-c", code]


def events(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [str(getattr(record, "event", "")) for record in caplog.records]


def test_processes_that_end_with_0_were_told_to_and_are_not_replaced(caplog: pytest.LogCaptureFixture):
    assert supervise(ending("pass"), 2) == 0
    assert events(caplog) == []


def test_a_crash_loop_ends_with_1_and_says_so(caplog: pytest.LogCaptureFixture):
    assert supervise(ending("raise SystemExit(3)"), 1) == 1
    assert events(caplog) == ["jobs.worker.process-died"] * 4 + ["jobs.worker.process-gave-up"]
    assert "exited with 3, 5 times" in caplog.records[-1].getMessage()


def test_a_process_that_cannot_start_ends_all_with_4(caplog: pytest.LogCaptureFixture):
    assert supervise(ending("raise SystemExit(4)"), 2) == 4
    assert events(caplog)[0] == "jobs.worker.process-gave-up"


def test_a_killed_process_is_named_by_its_signal(caplog: pytest.LogCaptureFixture):
    assert supervise(ending("import os; os.kill(os.getpid(), 9)"), 1) == 1
    assert "killed by SIGKILL" in caplog.records[0].getMessage()
