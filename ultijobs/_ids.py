"""Identities: UUIDv7, so that ids sort by the time they were made."""

from __future__ import annotations

from uuid import UUID

from uuid_utils.compat import uuid7

__all__ = ["new_id", "read_id"]


def new_id() -> UUID:
    """A new id, later than every id that this process made before."""
    return uuid7()


def read_id(text: str) -> UUID | None:
    """The id that `text` spells in full, or None."""
    try:
        return UUID(text.strip())
    except ValueError:
        return None
