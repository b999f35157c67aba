"""What a screen shows, as a file: CSV, JSON or Markdown, with its filter and its moment. Pure; written by `save`."""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Final

from ultijobs.inspection import inert
from ultijobs_tui.table import Table

__all__ = ["FORMATS", "Sheet", "default_name", "format_of", "render", "save", "sheet_of"]

FORMATS: Final = ("csv", "json", "md")
_FORMULA: Final = ("=", "@", "+", "-", "\t", "\r")
"""What a spreadsheet takes for a formula when a cell begins with it."""


@dataclass(frozen=True, slots=True)
class Sheet:
    """The rows of one list, whole: nothing is elided, and `key` names each row (an id, a queue) in full."""

    view: str
    source: str
    where: str
    as_of: datetime
    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


def sheet_of(table: Table, *, view: str, source: str, where: str, as_of: datetime) -> Sheet:
    """The columns with a title, behind the full key of each row; control characters are visible escapes."""
    shown = [index for index, column in enumerate(table.columns) if column.title]
    columns = ("key", *(table.columns[index].title.lower() for index in shown))
    rows = tuple(
        (inert(row.key, line=True), *(inert(row.cells[index].text, line=True) for index in shown)) for row in table.rows
    )
    return Sheet(view, source, where, as_of, columns, rows)


def default_name(sheet: Sheet, kind: str = "csv") -> str:
    return f"ultijobs-{sheet.view}-{sheet.as_of:%Y%m%dT%H%M%SZ}.{kind}"


def format_of(path: Path) -> str | None:
    """The format that a name's ending asks for; None for an ending that is none of ours."""
    kind = path.suffix.lower().removeprefix(".")
    return kind if kind in FORMATS else None


def render(sheet: Sheet, kind: str) -> str:
    if kind == "json":
        return _json(sheet)
    return _markdown(sheet) if kind == "md" else _csv(sheet)


def save(path: Path, text: str) -> None:
    """Writes a new file that its owner alone reads. Raises `FileExistsError` for one that is there, also a link."""
    handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
    with os.fdopen(handle, "w", encoding="utf-8", newline="") as file:
        file.write(text)


def _csv(sheet: Sheet) -> str:
    """A plain table; filter and moment are columns, so that every program reads it."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow([*sheet.columns, "where", "as_of"])
    writer.writerows([*map(_plain, row), sheet.where, _instant(sheet)] for row in sheet.rows)
    return out.getvalue()


def _plain(value: str) -> str:
    """A text as a text: what a spreadsheet would compute gets a quote in front."""
    if value.startswith(_FORMULA) and not value.lstrip("+-").replace(",", "").replace(".", "").isdigit():
        return f"'{value}"
    return value


def _json(sheet: Sheet) -> str:
    rows = [dict(zip(sheet.columns, row, strict=True)) for row in sheet.rows]
    head = {"view": sheet.view, "source": sheet.source, "where": sheet.where, "as_of": _instant(sheet)}
    return json.dumps({**head, "rows": rows}, indent=2, ensure_ascii=False) + "\n"


def _markdown(sheet: Sheet) -> str:
    lines = [
        f"**{sheet.view}** of {_cell(sheet.source)}, where `{sheet.where or 'all'}`, as of {_instant(sheet)}",
        "",
        _line(sheet.columns),
        _line(["---"] * len(sheet.columns)),
        *(_line([_cell(value) for value in row]) for row in sheet.rows),
    ]
    return "\n".join(lines) + "\n"


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"


def _cell(value: str) -> str:
    """A text in which nothing is markup."""
    for sign in "\\`*_[]<>|":
        value = value.replace(sign, f"\\{sign}")
    return value


def _instant(sheet: Sheet) -> str:
    return f"{sheet.as_of:%Y-%m-%dT%H:%M:%SZ}"
