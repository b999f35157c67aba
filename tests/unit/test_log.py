"""Log lines: one object or one line each, whatever a job's text holds."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from ultijobs import _log


@pytest.fixture
def lines() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before = (root.handlers[:], root.level, _log.logger.level)
    stream = io.StringIO()
    yield stream
    root.handlers[:], root.level = before[0], before[1]
    _log.logger.setLevel(before[2])


def test_a_json_line_is_one_object_with_event_message_and_ids(lines: io.StringIO):
    _log.configure("json", stream=lines)
    _log.emit(
        logging.ERROR,
        "jobs.lease.lost",
        "the claim is not held any more\nreally",
        name="mail",
        job_id="j-1",
        attempt=2,
        code=None,
    )
    (line,) = lines.getvalue().splitlines()
    read = json.loads(line)
    assert read.pop("ts").endswith("Z")
    assert read == {
        "level": "error",
        "event": "jobs.lease.lost",
        "message": "the claim is not held any more\nreally",
        "job_id": "j-1",
        "name": "mail",
        "attempt": 2,
    }
    assert line.isascii()


def test_text_from_a_job_cannot_break_a_line_or_colour_a_terminal(lines: io.StringIO):
    _log.configure("text", stream=lines)
    _log.emit(logging.WARNING, "jobs.attempt.failed", "bad\n\x1b[31mred\u202e", name="a\rb")
    (line,) = lines.getvalue().splitlines()
    assert line.isprintable()
    assert r"bad\n\x1b[31mred\u202e name=a\rb" in line


def test_configuring_again_replaces_the_first_handler(lines: io.StringIO):
    first = io.StringIO()
    _log.configure("text", stream=first)
    _log.configure("json", stream=lines)
    _log.emit(logging.INFO, "jobs.worker.started", "started")
    assert first.getvalue() == ""
    assert json.loads(lines.getvalue())["event"] == "jobs.worker.started"


def test_a_traceback_stays_with_its_line(lines: io.StringIO):
    _log.configure("json", stream=lines)
    try:
        raise ValueError("no")
    except ValueError as error:
        _log.emit(logging.ERROR, "jobs.worker.settle-failed", "failed", exc_info=error)
    assert "ValueError: no" in json.loads(lines.getvalue())["traceback"]


def test_repeated_lines_of_one_kind_are_held_to_one_a_second():
    now = 0.0
    limit = _log.RateLimit(1.0, clock=lambda: now)
    assert limit.admit("claim") == 0
    assert limit.admit("claim") is None
    assert limit.admit("settle") == 0
    now = 0.99
    assert limit.admit("claim") is None
    now = 1.0
    assert limit.admit("claim") == 2
    assert limit.admit("claim") is None
