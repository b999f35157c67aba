"""What operators say of their acts, as it can be stored: who they are, why they act, and on what."""

from __future__ import annotations

from typing import Final

from ultijobs._text import clip, unstorable
from ultijobs.errors import Invariant
from ultijobs.inspection.models import Target

__all__ = ["MOST_ACTOR", "MOST_REASON", "reason_of", "refuse_names"]

MOST_ACTOR: Final = 200
MOST_REASON: Final = 4_000
"""Bytes. What is longer is cut, with a mark that says so."""
_MOST_NAME: Final = 2_000


def reason_of(given: str | None) -> str | None:
    return None if given is None else clip(given, MOST_REASON)


def refuse_names(target: Target) -> None:
    """Raises `Invariant` for a name that nothing stored can have."""
    for what, name in (("queue", target.queue), ("worker", target.worker), ("backfill", target.backfill)):
        if name is None:
            continue
        if (found := unstorable(name)) is not None:
            raise Invariant(f"{what} {name!r:.100} holds {found}", fix=f"give the name of a {what} that there is")
        if len(name.encode()) > _MOST_NAME:
            raise Invariant(
                f"{what} {name!r:.100} is too long for a name", fix=f"give the name of a {what} that there is"
            )
