"""The array types that our statements take, told to a connection, so that asyncpg asks no server about them.

Asking costs half a dozen round trips per type and connection, inside the first statement's time limit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["introduce_arrays"]

# Object ids of the array and of its element; both are fixed in every PostgreSQL.
_ARRAYS: Final = {
    "bool": (1000, 16),
    "int2": (1005, 21),
    "int4": (1007, 23),
    "int8": (1016, 20),
    "timestamptz": (1185, 1184),
    "interval": (1187, 1186),
    "uuid": (2951, 2950),
}


def introduce_arrays(connection: Connection[Record]) -> None:
    """Registers them. Where asyncpg has changed its ways nothing happens, and it asks by itself."""
    rows = [
        {
            "oid": oid,
            "ns": "pg_catalog",
            "name": f"_{name}",
            "kind": b"b",
            "basetype": None,
            "elemtype": element,
            "elemtype_name": name,
            "elemdelim": ",",
            "range_subtype": None,
            "attrtypoids": None,
        }
        for name, (oid, element) in _ARRAYS.items()
    ]
    protocol: Any = getattr(connection, "_protocol", None)
    try:
        protocol.get_settings().register_data_types(rows)
    except (AttributeError, KeyError, TypeError):
        return
