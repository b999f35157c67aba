"""The library's log lines: an event name, a message and ids, through standard logging; JSON or text on stderr.

Text that comes from jobs is inert in both forms: no line break, control or direction character reaches a terminal.
"""

from __future__ import annotations

import json
import logging
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, Final, Literal

from ultijobs._text import inert

__all__ = ["FIELDS", "JsonLines", "RateLimit", "TextLines", "configure", "emit", "logger"]

FIELDS: Final = (
    "job_id",
    "run_id",
    "name",
    "attempt",
    "lease_no",
    "worker_id",
    "outbox_id",
    "code",
    "stop_reason",
)
"""What a line carries beside ts, level, event and message, where it applies; in this order."""

logger: Final = logging.getLogger("ultijobs")


def emit(level: int, event: str, message: str, *, exc_info: BaseException | None = None, **fields: object) -> None:
    """Logs one line under its event name; fields that are None are left out."""
    if logger.isEnabledFor(level):
        kept = {key: value for key, value in fields.items() if value is not None}
        logger.log(level, "%s", message, exc_info=exc_info, extra={"event": event, "fields": kept})


class JsonLines(logging.Formatter):
    """One JSON object per line, in ASCII: ts, level, event, message and the fields."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "event": getattr(record, "event", record.name),
            "message": record.getMessage(),
        }
        for key, value in _fields(record):
            line.setdefault(key, value if isinstance(value, (bool, int, float)) else str(value))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """One line for a person; a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        event = getattr(record, "event", record.name)
        fields = "".join(f" {key}={_one_line(str(value))}" for key, value in _fields(record))
        line = f"{_timestamp(record)} {record.levelname.lower():<7} {event}  {_one_line(record.getMessage())}{fields}"
        if record.exc_info:
            trace = self.formatException(record.exc_info).splitlines()
            line += "".join(f"\n    {_one_line(part)}" for part in trace)
        return line


def configure(form: Literal["text", "json"], *, level: int = logging.INFO, stream: IO[str] | None = None) -> None:
    """Sends every log line of this process to `stream` (stderr) in that form; once more replaces the first time's."""
    handler = logging.StreamHandler(stream or sys.stderr)
    handler.setFormatter(JsonLines() if form == "json" else TextLines())
    root = logging.getLogger()
    for old in root.handlers[:]:
        if getattr(old, "of_ultijobs", False):
            root.removeHandler(old)
    handler.of_ultijobs = True  # type: ignore[attr-defined]
    root.addHandler(handler)
    root.setLevel(min(level, logging.WARNING))
    logger.setLevel(level)


class RateLimit:
    """Lets the first line of a kind through in each `every` seconds and counts the others; safe from any thread."""

    def __init__(self, every: float = 1.0, *, clock: Callable[[], float] = time.monotonic) -> None:
        self._every = every
        self._clock = clock
        self._lock = threading.Lock()
        self._last: dict[str, tuple[float, int]] = {}

    def admit(self, kind: str) -> int | None:
        """None when this line is one too many; else how many of its kind were held back since the last one."""
        now = self._clock()
        with self._lock:
            last = self._last.get(kind)
            if last is not None and now - last[0] < self._every:
                self._last[kind] = (last[0], last[1] + 1)
                return None
            self._last[kind] = (now, 0)
            return 0 if last is None else last[1]


def _timestamp(record: logging.LogRecord) -> str:
    return datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _fields(record: logging.LogRecord) -> list[tuple[str, object]]:
    fields: dict[str, object] = getattr(record, "fields", {})
    known = [(key, fields[key]) for key in FIELDS if key in fields]
    return known + [(key, value) for key, value in fields.items() if key not in FIELDS]


def _one_line(text: str) -> str:
    return inert(text, line=True)
