"""The library's log lines: an event name, a message and ids, through standard logging; JSON or text on stderr.

Text that comes from jobs is inert in both forms: no line break, control or direction character reaches a terminal.
"""

from __future__ import annotations

import json
import logging
import math
import re
import sys
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import IO, Final, Literal, cast

from ultijobs._text import inert

__all__ = ["FIELDS", "RESERVED", "JsonLines", "RateLimit", "TextLines", "configure", "emit", "logger"]

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

RESERVED: Final = frozenset({*vars(logging.makeLogRecord({})), "message", "asctime", "taskName"})
"""Attributes of a record that no `extra` may set."""
_OURS: Final = RESERVED | {"event", "fields"}
_NEEDS_QUOTES: Final = re.compile(r'[\s="]|^$')

logger: Final = logging.getLogger("ultijobs")


def emit(level: int, event: str, message: str, *, exc_info: BaseException | None = None, **fields: object) -> None:
    """Logs one line under its event name; fields that are None are left out."""
    if logger.isEnabledFor(level):
        kept = {key: value for key, value in fields.items() if value is not None}
        logger.log(level, "%s", message, exc_info=exc_info, extra={"event": event, "fields": kept})


class JsonLines(logging.Formatter):
    """One JSON object per line, in ASCII: ts, level, event, message, the fields, and what `extra` gave."""

    def format(self, record: logging.LogRecord) -> str:
        line: dict[str, object] = {
            "ts": _timestamp(record),
            "level": record.levelname.lower(),
            "event": _event(record),
            "message": record.getMessage(),
        }
        for key, value in _fields(record):
            line.setdefault(key, _plain(value))
        if record.exc_info:
            line["traceback"] = self.formatException(record.exc_info)
        return json.dumps(line)


class TextLines(logging.Formatter):
    """One line for a person; a stack or a traceback follows on lines of its own."""

    def format(self, record: logging.LogRecord) -> str:
        fields = dict(_fields(record))
        below = [_text(fields.pop("stack"))] if "stack" in fields else []
        if record.exc_info:
            below.append(self.formatException(record.exc_info))
        shown = "".join(f" {_one_line(key)}={_quoted(_one_line(_text(value)))}" for key, value in fields.items())
        message, event = _one_line(record.getMessage()), _one_line(_event(record))
        line = f"{_timestamp(record)} {record.levelname.lower():<7} {event}  {message}{shown}"
        return line + "".join(f"\n    {_one_line(part)}" for block in below for part in block.splitlines())


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


def _event(record: logging.LogRecord) -> str:
    return _text(getattr(record, "event", record.name))


def _fields(record: logging.LogRecord) -> list[tuple[str, object]]:
    """The fields of a line of ours, then what any logger was given as `extra`."""
    given: object = getattr(record, "fields", None)
    fields: dict[str, object] = dict(cast("dict[str, object]", given)) if isinstance(given, dict) else {}
    for key, value in vars(record).items():
        if key not in _OURS:
            fields.setdefault(key, value)
    known = [(key, fields[key]) for key in FIELDS if key in fields]
    return known + [(str(key), value) for key, value in fields.items() if key not in FIELDS]


def _plain(value: object) -> object:
    """A number as it is, where JSON has it; anything else as its text."""
    if isinstance(value, (bool, int)) or (isinstance(value, float) and math.isfinite(value)):
        return value
    return _text(value)


def _text(value: object) -> str:
    try:
        return str(value)
    except Exception:  # noqa: BLE001 - a line about something must not fail because that cannot be shown
        return f"<{type(value).__name__}>"


def _quoted(text: str) -> str:
    """A value that cannot be taken for the next field."""
    return '"' + text.replace('"', '\\"') + '"' if _NEEDS_QUOTES.search(text) else text


def _one_line(text: str) -> str:
    return inert(text, line=True)
