"""What a filter means, as a value: the terms that both drivers interpret and the grammar parses into."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from enum import StrEnum

__all__ = ["ANY", "INDEXED", "Field", "Op", "Term", "Where"]


class Field(StrEnum):
    """What a term of a filter is about; the value is the word before the colon."""

    ID = "id"
    RUN = "run"
    STATE = "state"
    QUEUE = "queue"
    JOB = "job"
    TENANT = "tenant"
    REASON = "reason"
    CODE = "code"
    FINGERPRINT = "fp"
    KEY = "key"
    WORKER = "worker"
    STEP = "step"
    PRIORITY = "priority"
    AGE = "age"
    ERROR = "err"
    INPUT = "input"


INDEXED = frozenset({Field.ID, Field.RUN, Field.STATE, Field.QUEUE, Field.REASON, Field.FINGERPRINT, Field.KEY})
"""One of these bounds what a query reads; the others only filter the newest 10,000 of it."""


class Op(StrEnum):
    """How a term compares; `over` and `under` belong to ages."""

    IS = "is"
    """Any of the values; one that ends in `*` is a prefix. Fingerprints and ids match as prefix and tail."""
    OVER = "over"
    UNDER = "under"
    CONTAINS = "contains"


@dataclass(frozen=True, slots=True)
class Term:
    """One word of a filter. `path` is the dotted path after `input.`; `duration` belongs to `age`.

    `age` counts since due (waiting), since start (running), since the stop (terminal).
    """

    field: Field
    op: Op
    values: tuple[str, ...] = ()
    negated: bool = False
    duration: timedelta | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Where:
    """All terms hold. Without terms it matches everything, which acts refuse."""

    terms: tuple[Term, ...] = ()
    tenant: str | None = None
    """A scope set by the caller, beside the filter: rows of other tenants do not exist."""

    def states(self) -> tuple[str, ...] | None:
        """The states that can match, when the filter names them."""
        named = [t.values for t in self.terms if t.field is Field.STATE and not t.negated]
        if not named:
            return None
        return tuple(v for v in named[0] if all(v in rest for rest in named[1:]))

    def values(self, field: Field) -> tuple[str, ...] | None:
        """The values of the first plain term on `field`."""
        for term in self.terms:
            if term.field is field and term.op is Op.IS and not term.negated:
                return term.values
        return None


ANY = Where()
