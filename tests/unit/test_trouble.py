"""What a loop that keeps failing leaves in the log: the traceback once, ever rarer lines, and the end of it."""

from __future__ import annotations

import logging

import pytest

from ultijobs._service.trouble import Trouble


class Loop:
    """A loop that looks once a second, under a clock of the test's."""

    def __init__(self, caplog: pytest.LogCaptureFixture) -> None:
        self.now = 1_000.0
        self._log = caplog
        self.trouble = Trouble("w", clock=lambda: self.now)
        caplog.set_level(logging.DEBUG, "ultijobs")

    def fails(self, error: Exception, *, seconds: int, doing: str = "claiming") -> list[logging.LogRecord]:
        """The lines of so many failures, a second apart."""
        self._log.clear()
        for _ in range(seconds):
            try:
                raise error
            except Exception as raised:  # noqa: BLE001 - what the loop under test catches
                self.trouble.failed("jobs.worker.tick-failed", doing, raised)
            self.now += 1
        return list(self._log.records)

    def works(self, doing: str = "claiming") -> list[str]:
        self._log.clear()
        self.trouble.worked(doing)
        return [record.getMessage() for record in self._log.records]


@pytest.fixture
def loop(caplog: pytest.LogCaptureFixture) -> Loop:
    return Loop(caplog)


def test_a_failure_that_stays_the_same_is_told_in_full_once_and_then_ever_more_rarely(loop: Loop) -> None:
    lines = loop.fails(ValueError("no such column"), seconds=600)
    assert [record.exc_info is not None for record in lines] == [True] + [False] * (len(lines) - 1)
    assert lines[0].getMessage() == "claiming: ValueError: no such column"
    assert lines[1].getMessage() == "claiming: ValueError: no such column (2 times in 1 s)"
    # After 1, 2, 4 … 32 seconds, then once a minute.
    assert len(lines) == 7 + (600 - 64) // 60
    assert lines[-1].getMessage().startswith("claiming: ValueError: no such column (5")


def test_that_it_works_again_is_one_line_with_how_often_it_failed(loop: Loop) -> None:
    assert loop.works() == []
    loop.fails(ValueError("x"), seconds=90)
    assert loop.works("housekeeping") == []
    assert loop.works() == ["claiming works again; it failed 90 times in 90 s"]
    assert loop.works() == []
    (line,) = loop.fails(ValueError("x"), seconds=1)
    assert line.exc_info


def test_another_failure_is_told_in_full_at_once(loop: Loop) -> None:
    loop.fails(ValueError("x"), seconds=30)
    (line,) = loop.fails(KeyError("y"), seconds=1)
    assert line.exc_info
    (beside,) = loop.fails(ValueError("x"), seconds=1, doing="housekeeping")
    assert beside.exc_info


def test_several_failures_of_one_kind_share_one_line_a_second_and_none_loses_its_traceback(loop: Loop) -> None:
    lines: list[logging.LogRecord] = []
    for _ in range(20):
        for doing in ("claiming", "looking"):
            lines += loop.fails(ValueError("x"), seconds=1, doing=doing)
            loop.now -= 1
        loop.now += 1
    assert {record.getMessage().partition(":")[0] for record in lines if record.exc_info} == {"claiming", "looking"}
    assert len(lines) <= 20
