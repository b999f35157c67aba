"""What a database is told of the tenant whose run uses it: two settings, which policies of row level security read."""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any, Final

from ultijobs._tx.connections import Joined, at_once, connection_of
from ultijobs._tx.kinds import ASYNC, SYNC, kind_of, named
from ultijobs.errors import Invariant

__all__ = ["CROSSING", "Crossing", "crossing", "guard", "guard_sync"]

_GUARD: Final = (
    "select set_config('ultijobs.tenant', $1::text, true) as tenant,"
    " set_config('ultijobs.cross_tenant', $2::text, true) as cross_tenant"
)


class Crossing:
    """One way out of the run's tenant; shut when its block ends, also for tasks that were made in it."""

    __slots__ = ("open", "outer", "reason")

    def __init__(self, reason: str, outer: Crossing | None) -> None:
        self.reason = reason
        self.outer = outer
        self.open = True


CROSSING: Final[ContextVar[Crossing | None]] = ContextVar("ultijobs-crossing", default=None)


def crossing() -> str | None:
    """The reason of the innermost block that is open here; None outside of all."""
    each = CROSSING.get()
    while each is not None and not each.open:
        each = each.outer
    return None if each is None else each.reason


async def guard(tx: Any, tenant: str | None) -> None:
    """Sets both for the rest of the transaction. Raises `Invariant` where there is none, or none of async code."""
    if kind_of(tx) not in ASYNC:
        raise Invariant(f"guard: {named(tx)} is not a transaction of async code", fix="call guard_sync")
    await _set(await connection_of(tx), tenant)


def guard_sync(tx: Any, tenant: str | None) -> None:
    """`guard` for a transaction of sync code."""
    if kind_of(tx) not in SYNC:
        raise Invariant(f"guard_sync: {named(tx)} is not a transaction of sync code", fix="await guard(…) instead")
    at_once(_set(at_once(connection_of(tx)), tenant))


async def _set(connection: Joined, tenant: str | None) -> None:
    if not connection.is_in_transaction():
        raise Invariant(
            "guard: no transaction is open, and a tenant is set for one transaction", fix="open a transaction around it"
        )
    await connection.fetch(_GUARD, tenant or "", crossing() or "")
