"""Turns a filter into conditions on a row `j`, parted into what an index can bound and what must look at each row."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Final
from uuid import UUID

from ultijobs._queue.where import Field, Op, Term, Where

__all__ = ["Arguments", "Conditions", "conditions", "touches"]

_HISTORY: Final = frozenset({"done", "cancelled"})
_COLUMNS: Final = {
    Field.QUEUE: "j.queue",
    Field.JOB: "j.name",
    Field.TENANT: "j.tenant_id",
    Field.REASON: "j.stop_reason",
    Field.CODE: "j.error_code",
    Field.KEY: "j.idempotency_key",
    Field.WORKER: "j.worker_id",
}
_SCANS: Final = frozenset({Field.ERROR, Field.INPUT, Field.STEP})
_UUID_DIGITS: Final = 32
_SINCE: Final = "coalesce(j.finished_at, case when j.state = 'running' then j.started_at end, j.due_at)"


class Arguments:
    """The parameters of one statement; `add` answers with the place of a value."""

    def __init__(self, *given: object) -> None:
        self.values: list[object] = list(given)

    def add(self, value: object) -> str:
        self.values.append(value)
        return f"${len(self.values)}"


@dataclass(slots=True)
class Conditions:
    """SQL that is true for what matches: `bounded` belongs where rows are read, `looked` after a limit on them."""

    bounded: list[str] = field(default_factory=list[str])
    looked: list[str] = field(default_factory=list[str])

    def where(self, *more: str) -> str:
        return " and ".join([*self.bounded, *more]) or "true"

    def hit(self) -> str:
        return " and ".join(self.looked) or "true"


def touches(where: Where, *, history: bool) -> bool:
    """False when no row of that table can match: done and cancelled rows are history, all others are not."""
    states = where.states()
    if states is not None and not any((state in _HISTORY) is history for state in states):
        return False
    if history and where.values(Field.REASON) is not None:
        return False
    return not (history and states is not None and "cancelled" not in states and _of_errors(where))


def conditions(where: Where, arguments: Arguments, *, history: bool) -> Conditions:
    """The conditions of `where` on x_jobs, or on history: there only ids and `cancelled` have an index."""
    parts = Conditions()
    if history and _of_errors(where):
        parts.bounded.append("j.state = 'cancelled'")
    if where.tenant is not None:
        (parts.looked if history else parts.bounded).append(f"j.tenant_id = {arguments.add(where.tenant)}")
    for term in where.terms:
        text = _condition(term, arguments, history=history)
        if term.negated:
            text = f"not coalesce({text}, false)"
        bounded = _bounds_history(term) if history else term.field not in _SCANS
        (parts.bounded if bounded else parts.looked).append(text)
    return parts


def _of_errors(where: Where) -> bool:
    """Only rows that were cancelled keep their last error when they move to history."""
    return any(t.field in {Field.FINGERPRINT, Field.CODE, Field.ERROR} and not t.negated for t in where.terms)


def _bounds_history(term: Term) -> bool:
    if term.negated:
        return False
    if term.field is Field.STATE:
        return True
    return term.field in {Field.ID, Field.RUN} and all(len(value) == _UUID_DIGITS for value in term.values)


def _condition(term: Term, arguments: Arguments, *, history: bool) -> str:
    match term.field:
        case Field.STATE:
            text = _history_state(term.values) if history else _live_state(term.values)
        case Field.ID:
            text = _id("j.id", term.values, arguments)
        case Field.RUN:
            text = _run(term.values, arguments)
        case Field.FINGERPRINT:
            text = f"j.fingerprint like any({arguments.add([_like(v) + '%' for v in term.values])}::text[])"
        case Field.PRIORITY:
            text = _priority(term, arguments)
        case Field.AGE:
            sign = ">" if term.op is Op.OVER else "<"
            text = f"now() - {_SINCE} {sign} {arguments.add(term.duration)}::interval"
        case Field.ERROR:
            text = f"j.last_error ilike any({arguments.add([f'%{_like(v)}%' for v in term.values])}::text[])"
        case Field.INPUT:
            text = _input(term, arguments)
        case Field.STEP:
            text = _step(term.values, arguments)
        case _:
            text = _one_of(_COLUMNS[term.field], term.values, arguments)
    return text


def _live_state(values: Sequence[str]) -> str:
    stored = sorted({"ready" if value == "delayed" else value for value in values} - _HISTORY)
    if not stored:
        return "false"
    text = f"j.state in ({', '.join(map(_literal, stored))})"
    if "ready" in stored and not {"ready", "delayed"} <= set(values):
        text += f" and (j.state <> 'ready' or j.run_at {'<=' if 'ready' in values else '>'} now())"
    return f"({text})"


def _history_state(values: Sequence[str]) -> str:
    stored = sorted(_HISTORY & set(values))
    if len(stored) == 1:
        return f"j.state = {_literal(stored[0])}"
    return "true" if stored else "false"


def _id(column: str, values: Sequence[str], arguments: Arguments) -> str:
    whole = [UUID(value) for value in values if len(value) == _UUID_DIGITS]
    tails = [f"%{value}" for value in values if len(value) != _UUID_DIGITS]
    parts = [f"{column} = any({arguments.add(whole)}::uuid[])"] if whole else []
    if tails:
        parts.append(f"replace({column}::text, '-', '') like any({arguments.add(tails)}::text[])")
    return f"({' or '.join(parts)})"


def _run(values: Sequence[str], arguments: Arguments) -> str:
    text = _id("j.run_id", values, arguments)
    if all(len(value) == _UUID_DIGITS for value in values):
        # A run begins as its job's own id, and ids have the index.
        return f"({_id('j.id', values, arguments)} and {text})"
    return text


def _priority(term: Term, arguments: Arguments) -> str:
    numbers = [int(value) for value in term.values]
    if term.op is Op.IS:
        return f"j.priority = any({arguments.add(numbers)}::int[])"
    return f"j.priority {'>' if term.op is Op.OVER else '<'} {arguments.add(numbers[0])}::int"


def _input(term: Term, arguments: Arguments) -> str:
    path = arguments.add((term.path or "").split("."))
    value = f"case when json_typeof(j.input #> {path}::text[]) = 'null' then 'null' else j.input #>> {path}::text[] end"
    return _one_of(f"({value})", term.values, arguments)


def _step(values: Sequence[str], arguments: Arguments) -> str:
    stands = _one_of("t.name", values, arguments)
    return (
        f"({_one_of('j.running_step', values, arguments)} or exists (select from {{schema}}.x_job_steps t "
        f"where t.run_id = j.run_id and t.status <> 'completed' and {stands}))"
    )


def _one_of(expression: str, values: Sequence[str], arguments: Arguments) -> str:
    """Any of the values; one that ends in `*` is a prefix."""
    exact = [value for value in values if not value.endswith("*")]
    starts = [_like(value[:-1]) + "%" for value in values if value.endswith("*")]
    parts: list[str] = []
    if len(exact) == 1:
        parts.append(f"{expression} = {arguments.add(exact[0])}::text")
    elif exact:
        parts.append(f"{expression} = any({arguments.add(exact)}::text[])")
    if starts:
        parts.append(f"{expression} like any({arguments.add(starts)}::text[])")
    return f"({' or '.join(parts)})"


def _like(value: str) -> str:
    return value.replace("\\", "\\\\").replace("%", "\\%").replace("_", "\\_")


def _literal(state: str) -> str:
    """States stand in the statement as text, so that partial indexes fit; the words come from a closed list."""
    return "'" + state.replace("'", "''") + "'"
