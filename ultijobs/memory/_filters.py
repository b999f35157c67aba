"""What a filter matches, term by term."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import cast

from ultijobs._queue.steps import StepStatus
from ultijobs._queue.where import Field, Op, Term, Where
from ultijobs.memory._rows import Row
from ultijobs.memory._store import Store

__all__ = ["matches"]

_ABSENT = object()


def matches(store: Store, row: Row, where: Where, now: datetime) -> bool:
    if where.tenant is not None and row.tenant_id != where.tenant:
        return False
    return all(_holds(store, row, term, now) is not term.negated for term in where.terms)


def _holds(store: Store, row: Row, term: Term, now: datetime) -> bool:
    if term.field is Field.AGE:
        assert term.duration is not None
        return _beyond(term.op, (now - _since(row)).total_seconds(), term.duration.total_seconds())
    if term.op in {Op.OVER, Op.UNDER}:
        return _beyond(term.op, row.priority, int(term.values[0]))
    if term.op is Op.CONTAINS:
        error = row.last_error
        return error is not None and any(value.casefold() in error.casefold() for value in term.values)
    have = _have(store, row, term, now)
    return any(_one_is(term.field, text, term.values) for text in have if text is not None)


def _have(store: Store, row: Row, term: Term, now: datetime) -> Iterable[str | None]:
    if term.field is Field.STEP:
        return _steps(store, row)
    if term.field is Field.INPUT:
        return [_at_path(row.input, term.path)]
    return [_PLAIN[term.field](row, now)]


_PLAIN: dict[Field, Callable[[Row, datetime], str | None]] = {
    Field.ID: lambda row, _: row.id.hex,
    Field.RUN: lambda row, _: row.run_id.hex,
    Field.STATE: lambda row, now: row.shown_state(now),
    Field.QUEUE: lambda row, _: row.queue,
    Field.JOB: lambda row, _: row.name,
    Field.TENANT: lambda row, _: row.tenant_id,
    Field.REASON: lambda row, _: row.stop_reason,
    Field.CODE: lambda row, _: row.error_code,
    Field.FINGERPRINT: lambda row, _: row.fingerprint,
    Field.KEY: lambda row, _: row.idempotency_key,
    Field.WORKER: lambda row, _: row.worker_id,
    Field.PRIORITY: lambda row, _: str(row.priority),
}


def _one_is(field: Field, have: str, values: tuple[str, ...]) -> bool:
    if field is Field.FINGERPRINT:
        return have.startswith(values)
    if field in {Field.ID, Field.RUN}:
        return have.endswith(tuple(value.replace("-", "").lower() for value in values))
    return any(have.startswith(value[:-1]) if value.endswith("*") else have == value for value in values)


def _beyond(op: Op, have: float, limit: float) -> bool:
    return have > limit if op is Op.OVER else have < limit


def _since(row: Row) -> datetime:
    """Since due while it waits, since its start while it runs, since its end when it has one."""
    if row.finished_at is not None:
        return row.finished_at
    return row.started_at if row.state == "running" and row.started_at is not None else row.due_at


def _steps(store: Store, row: Row) -> Iterator[str]:
    """The steps that a job stands at: the one that runs, and those recorded but not completed."""
    if row.running_step is not None:
        yield row.running_step
    for step in store.steps.get(row.run_id, {}).values():
        if step.status != StepStatus.COMPLETED:
            yield step.name


def _at_path(text: str, path: str | None) -> str | None:
    """The scalar at a dotted path, as the text of a JSON value; strings without their quotes."""
    value: object = json.loads(text)
    for part in (path or "").split("."):
        value = _child(value, part)
        if value is _ABSENT:
            return None
    return value if isinstance(value, str) else json.dumps(value)


def _child(value: object, part: str) -> object:
    if isinstance(value, dict):
        return cast("dict[str, object]", value).get(part, _ABSENT)
    if isinstance(value, list) and part.isdecimal():
        items = cast("list[object]", value)
        return items[int(part)] if int(part) < len(items) else _ABSENT
    return _ABSENT
