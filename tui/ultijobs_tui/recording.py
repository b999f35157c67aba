"""Overviews as text, and files of them: what `--record` writes and `--replay` opens. No payload is ever in them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TextIO, cast

from ultijobs._release import release
from ultijobs.errors import Invariant
from ultijobs.inspection import Overview

if TYPE_CHECKING:
    from pydantic import TypeAdapter

__all__ = ["Recorder", "Recording", "decode", "encode"]

_FORMAT: Final = 1
_MOST_BYTES: Final = 64 * 1024 * 1024
_MOST_LINE: Final = 4 * 1024 * 1024
_LINE: Final = re.compile(rb'\{"at": "([0-9T:.+Z-]{19,40})", "overview": \{')
_adapters: dict[str, TypeAdapter[Overview]] = {}


def encode(overview: Overview) -> str:
    """One line of JSON."""
    return json.dumps(overview, default=_plain, ensure_ascii=False)


def decode(text: str | bytes) -> Overview:
    """What `encode` wrote. Raises `ValueError` for anything else."""
    if not _adapters:
        # Only who looks back waits for pydantic.
        from pydantic import TypeAdapter  # noqa: PLC0415 - as said

        _adapters["overview"] = TypeAdapter(Overview)
    return _adapters["overview"].validate_json(text)


def _plain(value: object) -> object:
    if is_dataclass(value):
        return {field.name: getattr(value, field.name) for field in fields(value)}
    if isinstance(value, Mapping):
        return dict(cast("Mapping[str, object]", value))
    return value.isoformat() if isinstance(value, datetime) else str(value)


class Recorder:
    """Appends overviews to a new file that its owner alone reads, until it is 64 MiB long.

    Raises `Invariant` where the file is there already or cannot be made.
    """

    def __init__(self, path: Path, title: str) -> None:
        try:
            handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise Invariant(
                f"--record: {path}: {error.strerror}", fix="name a new file in a folder of yours"
            ) from error
        self._file: TextIO | None = os.fdopen(handle, "w", encoding="utf-8")
        self._path = path
        self._written = 0
        head = {"ultijobs": "recording", "format": _FORMAT, "release": release(), "title": title}
        self._write(json.dumps(head))

    def add(self, overview: Overview) -> str | None:
        """Why recording has ended, told once; None while it goes on."""
        if self._file is None:
            return None
        line = f'{{"at": "{overview.as_of.isoformat()}", "overview": {encode(overview)}}}'
        size = len(line.encode()) + 1
        if size > _MOST_LINE:
            return None
        if self._written + size > _MOST_BYTES:
            self.close()
            return f"recording ended: {self._path} holds 64 MiB"
        try:
            self._write(line)
        except OSError as error:
            self._file = None
            return f"recording ended: {self._path}: {error.strerror}"
        return None

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None

    def _write(self, line: str) -> None:
        assert self._file is not None
        self._file.write(line + "\n")
        self._file.flush()
        self._written += len(line.encode()) + 1


class Recording:
    """A recorded file, opened to look back. Each moment is decoded when it is shown.

    Raises `Invariant` for a file that is none, is of another format, or is too large to be ours.
    """

    def __init__(self, path: Path) -> None:
        try:
            with path.open("rb") as file:
                data = file.read(_MOST_BYTES + 1)  # a pipe or a device has no length to be asked for
        except OSError as error:
            raise _unusable(path, error.strerror or str(error)) from error
        if len(data) > _MOST_BYTES:
            raise _unusable(path, f"is too long: a recording ends at {_MOST_BYTES:,} bytes")
        head, *lines = data.split(b"\n")
        self.title = _head(path, head)
        self._lines = lines[:-1]  # what follows the last line feed was cut while it was written
        self._moments = [_moment(path, number, line) for number, line in enumerate(self._lines, start=2)]
        if not self._lines:
            raise _unusable(path, "holds no moment yet")

    def __len__(self) -> int:
        return len(self._lines)

    def at(self, index: int) -> datetime:
        return self._moments[index]

    def read(self, index: int) -> Overview:
        """Raises `ValueError` for a moment that is damaged."""
        line = self._lines[index]
        return decode(line[line.index(b'"overview": ') + len(b'"overview": ') : -1])


def _head(path: Path, line: bytes) -> str:
    try:
        found: Any = json.loads(line) if len(line) < _MOST_LINE else None
    except (ValueError, RecursionError):
        found = None
    head = cast("dict[str, object]", found) if isinstance(found, dict) else {}
    if head.get("ultijobs") != "recording":
        raise _unusable(path, "is not a recording of ultijobs")
    if head.get("format") != _FORMAT:
        raise Invariant(
            f"{path} is a recording of format {head.get('format')!r:.20}, made by release {head.get('release')!r:.20}",
            fix=f"open it with that release; this one reads format {_FORMAT}",
        )
    title = head.get("title")
    return title if isinstance(title, str) else ""


def _moment(path: Path, number: int, line: bytes) -> datetime:
    found = _LINE.match(line)
    try:
        at = datetime.fromisoformat(found[1].decode()) if found and len(line) <= _MOST_LINE else None
    except ValueError:
        at = None
    if at is None or at.tzinfo is None:
        raise _unusable(path, f"has no moment on line {number}")
    return at


def _unusable(path: Path, cause: str) -> Invariant:
    return Invariant(f"{path} {cause}", fix="give a file that `ultijobs tui --record FILE` has written")
