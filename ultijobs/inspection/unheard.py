"""Names that a filter asks for and nothing is known under: why a list is empty, when a name was mistyped."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from difflib import get_close_matches
from typing import Final

from ultijobs._queue.driver import InspectionStore
from ultijobs._queue.where import ANY, Field, Op, Term, Where

__all__ = ["Unheard", "unheard"]

_MOST: Final = 3
"""Names that are looked up of each kind, and near ones that are told."""
_TALLIED: Final = 1_000
_NAMED: Final = {
    Field.QUEUE: "no queue is called {!r}",
    Field.JOB: "no job is called {!r}",
    Field.TENANT: "no job of a tenant {!r} is known",
}


@dataclass(frozen=True, slots=True)
class Unheard:
    """A name of a filter under which nothing is known, and those that are spelled like it."""

    field: Field
    """`QUEUE`, `JOB` or `TENANT`."""
    value: str
    near: tuple[str, ...]

    def __str__(self) -> str:
        said = _NAMED[self.field].format(self.value[:100])
        return f"{said}; there is {', '.join(self.near)}" if self.near else said


async def unheard(store: InspectionStore, where: Where) -> list[Unheard]:
    """Looks up the queues, jobs and tenants that `where` names, each in at most three bounded reads."""
    found: list[Unheard] = []
    for field in _NAMED:
        values = _values(where, field)
        known = await _known(store, field) if values else set[str]()
        found += [
            Unheard(field, value, tuple(get_close_matches(value.rstrip("*"), known, _MOST, 0.6)))
            for value in values
            if not _is_among(value, known) and not await _has_rows(store, field, value)
        ]
    return found


def _values(where: Where, field: Field) -> list[str]:
    named = [value for term in where.terms if term.field is field and not term.negated for value in term.values]
    if field is Field.TENANT and where.tenant is not None:
        named.append(where.tenant)
    return list(dict.fromkeys(named))[:_MOST]


def _is_among(value: str, known: Collection[str]) -> bool:
    return any(name.startswith(value[:-1]) for name in known) if value.endswith("*") else value in known


async def _known(store: InspectionStore, field: Field) -> set[str]:
    if field is Field.QUEUE:
        return {row.queue for row in await store.queues()}
    tallied = {row.value for row in await store.tally(ANY, field, limit=_TALLIED) if row.value is not None}
    return tallied if field is Field.TENANT else tallied | {entry.name for entry in await store.catalog()}


async def _has_rows(store: InspectionStore, field: Field, value: str) -> bool:
    """Also in history, among its newest rows; of queues everything is known."""
    if field is Field.QUEUE:
        return False
    return bool((await store.jobs(Where((Term(field, Op.IS, (value,)),)), limit=1)).rows)
