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


def test_what_a_logger_is_given_as_extra_is_in_the_line(lines: io.StringIO):
    _log.configure("json", stream=lines)
    logging.getLogger("shop").warning("slow", extra={"order": 7, "share": float("nan"), "path": {"a": [1]}})
    read = json.loads(lines.getvalue())
    assert (read["event"], read["order"], read["share"], read["path"]) == ("shop", 7, "nan", "{'a': [1]}")


def test_a_value_cannot_pass_for_the_next_field(lines: io.StringIO):
    _log.configure("text", stream=lines)
    _log.emit(logging.WARNING, "jobs.attempt.failed", "failed", name='x code=X_FAKE "y"', code="X_REAL")
    assert r' name="x code=X_FAKE \"y\"" code=X_REAL' in lines.getvalue()


def test_a_value_that_cannot_be_shown_does_not_cost_the_line(lines: io.StringIO):
    class Broken:
        def __str__(self) -> str:
            raise ValueError

    _log.configure("json", stream=lines)
    logging.getLogger("shop").warning("odd", extra={"what": Broken(), "fields": 3})
    read = json.loads(lines.getvalue())
    assert (read["message"], read["what"]) == ("odd", "<Broken>")


def test_a_stack_is_readable_in_text(lines: io.StringIO):
    _log.configure("text", stream=lines)
    _log.emit(
        logging.WARNING, "jobs.worker.loop-blocked", "blocked", stack='  File "a.py"\n    x = \x1b1\n', name="mail"
    )
    first, *below = lines.getvalue().splitlines()
    assert first.endswith("blocked name=mail")
    assert below == ['      File "a.py"', "        x = \\x1b1"]
