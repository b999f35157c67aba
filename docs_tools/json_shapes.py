"""`docs/json.md`: what each list of the command line prints as JSON, read from the values themselves."""

from __future__ import annotations

import dataclasses
import types
import typing
from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from typing import Any, Final
from uuid import UUID

from ultijobs import inspection

__all__ = ["DATA", "ROWS", "fields", "nested", "pages"]

ROWS: Final[Mapping[str, type[Any]]] = {
    "jobs ls": inspection.JobRow,
    "queues ls": inspection.QueueRow,
    "workers ls": inspection.WorkerRow,
    "leases": inspection.LeaseRow,
    "causes": inspection.Cause,
    "activity": inspection.ActivityRow,
    "events ls": inspection.EventRow,
    "outbox ls": inspection.OutboxRow,
    "tasks ls": inspection.TaskRow,
    "backfill --list": inspection.PassRow,
    "doctor": inspection.Symptom,
    "prune": inspection.KeptRow,
}
"""The command and what its `data.rows[]` are, one a line with `--json-lines`."""

DATA: Final[Mapping[str, type[Any]]] = {"stats": inspection.Stats}
"""The command and what its `data` is."""

_PLAIN: Final = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    UUID: "string, an id",
    datetime: "string, a time",
}

INTRODUCTION: Final = """\
# JSON

What lists print under `data.rows` with `--json`, and one object a line with `--json-lines`. Every key is always there,
null where there is nothing. Ids are UUIDs, times ISO-8601 in UTC with a `Z`, a name that ends in `_ms` holds whole
milliseconds. A count is `{"value": 10000, "kind": "capped"}`; `kind` is `exact`, `capped` (at least so many) or
`estimate`. Releases add keys and words; they do not rename or remove them.

`stats` prints one object as `data`; with `--queue` or `--tenant` its `outbox` is null. `jobs show` prints the row of
`jobs ls` with `input`, `steps`, `attempts`, `retry_delays_ms` and `backfill`. `tasks ls` writes `next` with the offset
of the task's own zone.
"""


def pages() -> dict[str, str]:
    told = [_section(command, fields(row)) for command, row in ROWS.items()]
    told += [_section(f"{command}: data", nested(row)) for command, row in DATA.items()]
    return {"json.md": "\n".join([INTRODUCTION, *told])}


def fields(row: type[Any]) -> dict[str, str]:
    """Each key of a row's JSON, and what it holds."""
    hints = typing.get_type_hints(row)
    return {field.name: _named(hints[field.name]) for field in dataclasses.fields(row)}


def nested(row: type[Any]) -> dict[str, str]:
    """As `fields`, with the keys of the objects in it as `outbox.staged`."""
    hints = typing.get_type_hints(row)
    found: dict[str, str] = {}
    for name, kind in fields(row).items():
        found[name] = kind
        for inner in (hints[name], *typing.get_args(hints[name])):
            if dataclasses.is_dataclass(inner) and inner not in {inspection.Count, *ROWS.values()}:
                keys = fields(typing.cast("type[Any]", inner))
                found |= {f"{name}.{key}": what for key, what in keys.items()}
    return found


def _section(title: str, keys: Mapping[str, str]) -> str:
    lines = "\n".join(f"| `{name}` | {kind} |" for name, kind in keys.items())
    return f"## {title}\n\n| key | value |\n|---|---|\n{lines}\n"


def _named(hint: Any) -> str:
    inner = typing.get_args(hint)
    if typing.get_origin(hint) in {typing.Union, types.UnionType}:
        told = [_named(each) for each in inner if each is not type(None)]
        return " or ".join(told) + (", or null" if type(None) in inner else "")
    if typing.get_origin(hint) is typing.Literal:
        return " ".join(f"`{word}`" for word in inner)
    if isinstance(hint, type):
        return _class(hint)
    if issubclass(typing.get_origin(hint), Mapping):
        return "object of counts" if inner[1] is inspection.Count else "object"
    return f"array of {_named(inner[0])}"


def _class(hint: type[Any]) -> str:
    if issubclass(hint, Enum):
        return " ".join(f"`{word.value}`" for word in hint)
    if hint is inspection.Count:
        return "count"
    for command, row in ROWS.items():
        if hint is row:
            return f"the row of `{command}`"
    if dataclasses.is_dataclass(hint):
        return "object: " + ", ".join(f"`{field.name}`" for field in dataclasses.fields(hint))
    return _PLAIN[hint]
