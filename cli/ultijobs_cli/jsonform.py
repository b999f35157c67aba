"""The library's values as JSON: ISO-8601 in UTC with a Z, ids as text, counts with their kind."""

from __future__ import annotations

import dataclasses
import json
import math
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from enum import Enum
from typing import TYPE_CHECKING, cast
from uuid import UUID

if TYPE_CHECKING:
    from _typeshed import DataclassInstance

__all__ = ["columns", "dump", "jsonable"]


def jsonable(value: object) -> object:  # noqa: PLR0911 - one answer per kind of value
    """`value` as JSON has it. A duration is whole milliseconds: its field's name ends in `_ms`."""
    match value:
        case Enum():
            return jsonable(value.value)
        case None | bool() | int() | str():
            return value
        case float():
            return value if math.isfinite(value) else None
        case datetime():
            return value.astimezone(UTC).isoformat().replace("+00:00", "Z")
        case timedelta():
            return round(value / timedelta(milliseconds=1))
        case UUID():
            return str(value)
        case Mapping():
            items = cast("Mapping[object, object]", value).items()
            return {str(key): jsonable(item) for key, item in items}
        case _ if dataclasses.is_dataclass(value) and not isinstance(value, type):
            return jsonable(columns(value))
        case Iterable():
            return [jsonable(item) for item in cast("Iterable[object]", value)]
        case _:
            return str(value)


def columns(row: DataclassInstance) -> dict[str, object]:
    """The fields of a row, not yet in their JSON form."""
    return {field.name: getattr(row, field.name) for field in dataclasses.fields(row)}


def dump(value: object) -> str:
    """One line of ASCII: what a job wrote reaches a terminal only as escapes."""
    return json.dumps(jsonable(value), ensure_ascii=True, allow_nan=False, separators=(", ", ": "))
