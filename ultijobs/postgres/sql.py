"""Statements carry `{schema}` where a table's schema belongs; this module renders them, once per driver."""

from __future__ import annotations

import hashlib
import re
from typing import Final

from ultijobs.errors import Invariant

__all__ = ["Sql", "channel_of"]

_PLACE: Final = re.compile(r"\{(schema|schema_name|schema_literal|channel)\}")
_NAME_BYTES: Final = 63


class Sql:
    """Renders statements for one schema.

    `{schema}` is the quoted identifier; `{schema_name}` and `{channel}` stand inside of a literal, and so does
    `{schema_literal}`, the quoted identifier.

    Raises `Invariant` for a name that PostgreSQL cannot hold.
    """

    def __init__(self, schema: str) -> None:
        size = len(schema.encode(errors="replace"))
        if not schema or size > _NAME_BYTES or "\0" in schema:
            raise Invariant(
                f"the schema name {schema!r} cannot be used: a name has 1 to {_NAME_BYTES} bytes and no NUL",
                fix="choose another --schema",
            )
        self.schema: Final = schema
        self.quoted: Final = '"' + schema.replace('"', '""') + '"'
        self.channel: Final = channel_of(schema)
        self._values: Final = {
            "schema": self.quoted,
            "schema_literal": self.quoted.replace("'", "''"),
            "schema_name": schema.replace("'", "''"),
            "channel": self.channel.replace("'", "''"),
        }
        self._rendered: Final[dict[str, str]] = {}

    def __call__(self, statement: str) -> str:
        rendered = self._rendered.get(statement)
        if rendered is None:
            rendered = _PLACE.sub(lambda found: self._values[found[1]], statement)
            self._rendered[statement] = rendered
        return rendered


def channel_of(schema: str) -> str:
    """The NOTIFY channel of a schema; a name too long for one is told by its digest."""
    channel = f"ultijobs:{schema}"
    if len(channel.encode()) <= _NAME_BYTES:
        return channel
    return f"ultijobs:{hashlib.sha256(schema.encode()).hexdigest()[:40]}"
