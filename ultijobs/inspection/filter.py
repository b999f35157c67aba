"""The filter grammar of `--where`: `state:dead queue:a,b -job:charge* age:>10m err~"timed out"`, and back to text."""

from __future__ import annotations

import re
from difflib import get_close_matches
from typing import Final

from ultijobs import _durations
from ultijobs._queue.records import JobState, StopReason
from ultijobs._queue.where import INDEXED, Field, Op, Term, Where
from ultijobs.errors import DurationInvalid
from ultijobs.inspection._tokens import Word, invalid, quote, split

__all__ = ["KEYS", "format_where", "parse_where"]

KEYS: Final = tuple(f"{f}~" if f is Field.ERROR else f"{f}.x:" if f is Field.INPUT else f"{f}:" for f in Field)
"""Every key of the grammar with its sign, for completion and help."""

_SCANS: Final = frozenset({Field.ERROR, Field.INPUT})
_CLOSED: Final = {Field.STATE: tuple(JobState), Field.REASON: tuple(StopReason)}
_COLUMNS: Final = {
    "name": Field.JOB,
    "tenant_id": Field.TENANT,
    "idempotency_key": Field.KEY,
    "worker_id": Field.WORKER,
    "run_id": Field.RUN,
    "stop_reason": Field.REASON,
    "error_code": Field.CODE,
    "last_error": Field.ERROR,
}
"""What rows call a field, where its key is no part of that."""
_HEX: Final = re.compile(r"[0-9a-f]+")
_ID_TAIL: Final = 6
_INT4: Final = 2**31


def parse_where(text: str, *, tenant: str | None = None) -> Where:
    """The filter that `text` says, scoped to `tenant` where one is given; empty text matches everything.

    A blank is AND, a comma OR, `-` NOT; quotes hold blanks and commas. Raises `FilterInvalid` with `position`, and
    with the nearest word that exists as its fix. `err~` and `input.x:` scan, so they need an indexed word beside them.
    """
    words = split(text)
    terms = tuple(_term(word) for word in words)
    bounded = any(t.field in INDEXED and not t.negated for t in terms)
    for word, term in zip(words, terms, strict=True):
        if term.field in _SCANS and not bounded:
            raise invalid(
                f"{word.key}{word.sign} reads every row it meets, so it needs state:, queue: or another indexed word",
                at=word.at,
                fix=f"add a word such as state:dead before {word.key}{word.sign}",
            )
    return Where(terms, tenant)


def format_where(where: Where) -> str:
    """The text that `parse_where` reads back as these terms; the tenant scope is not part of it."""
    return " ".join(_format(term) for term in where.terms)


def _format(term: Term) -> str:
    minus = "-" if term.negated else ""
    if term.op is Op.CONTAINS:
        return f"{minus}{term.field}~{','.join(map(quote, term.values))}"
    if term.duration is not None:
        return f"{minus}{term.field}:{'>' if term.op is Op.OVER else '<'}{_durations.render(term.duration)}"
    key = f"{term.field}.{term.path}" if term.path is not None else str(term.field)
    return f"{minus}{key}:{','.join(map(quote, term.values))}"


def _term(word: Word) -> Term:
    if not word.sign:
        raise invalid(f"{word.key or 'a quoted text'!r} is not a filter word", at=word.at, fix=_bare_fix(word.key))
    head, _, path = word.key.partition(".")
    field = _field(word, head)
    if field is Field.INPUT:
        if not path or not all(path.split(".")):
            raise invalid("input needs the path of a value", at=word.at, fix="write input.customer.id:VALUE")
        _sign(word, ":")
        return Term(field, Op.IS, word.values, word.negated, path=path)
    if path:
        raise invalid(f"{head} has no parts, so {word.key!r} names nothing", at=word.at, fix=f"write {head}:VALUE")
    if field is Field.ERROR:
        _sign(word, "~")
        return Term(field, Op.CONTAINS, word.values, word.negated)
    _sign(word, ":")
    if field is Field.AGE:
        return _age(word)
    return Term(field, Op.IS, tuple(_value(word, field, value) for value in word.values), word.negated)


def _field(word: Word, head: str) -> Field:
    try:
        return Field(head)
    except ValueError:
        column = _COLUMNS.get(head)
        near = [column] if column else get_close_matches(head, [*Field], 1, 0.4)
        near = near or [f for f in Field if head and f.startswith(head[0])]
        guess = next((k for k in KEYS if near and k.startswith(near[0])), None)
        fix = f"did you mean {guess}" if guess else f"use one of {' '.join(KEYS)}"
        raise invalid(f"unknown key {head!r}", at=word.at, fix=fix) from None


def _sign(word: Word, sign: str) -> None:
    if word.sign != sign:
        raise invalid(
            f"{word.key}{word.sign} is not how {word.key} is asked for", at=word.at, fix=f"write {word.key}{sign}"
        )


def _age(word: Word) -> Term:
    value = word.values[0]
    if len(word.values) != 1 or value[:1] not in ("<", ">"):
        raise invalid("age needs one bound", at=word.at, fix="write age:>10m or age:<10m")
    try:
        duration = _durations.parse(value[1:], what="age")
    except DurationInvalid as exc:
        raise invalid(exc.cause, at=word.at, fix="write age:>10m, age:>1h30m or age:<2d") from None
    return Term(Field.AGE, Op.OVER if value[0] == ">" else Op.UNDER, negated=word.negated, duration=duration)


def _value(word: Word, field: Field, value: str) -> str:
    closed = _CLOSED.get(field)
    if closed is not None and value not in closed:
        near = get_close_matches(value, closed, 1, 0.6)
        fix = f"did you mean {field}:{near[0]}" if near else f"use one of {', '.join(closed)}"
        if field is Field.STATE and not near:
            fix += f"; a state that a newer release wrote is found by -state:{','.join(closed)}"
        raise invalid(f"unknown {field} {value!r}", at=word.at, fix=fix)
    if field in {Field.ID, Field.RUN}:
        digits = value.lower().removeprefix("…").replace("-", "")
        if not _HEX.fullmatch(digits) or not _ID_TAIL <= len(digits) <= 32:  # noqa: PLR2004 - hex digits of a UUID
            raise invalid(
                f"{value!r} is not an id", at=word.at, fix=f"give {field}: a UUID or its last {_ID_TAIL} hex digits"
            )
        return digits
    if field is Field.FINGERPRINT:
        return value.lower()
    if field is Field.PRIORITY:
        try:
            number = int(value)
        except ValueError:
            number = _INT4
        if not -_INT4 <= number < _INT4:
            raise invalid(f"{value!r} is not a priority", at=word.at, fix="write priority:10")
        return str(number)
    return value


def _bare_fix(key: str) -> str:
    digits = key.removeprefix("…")
    if _HEX.fullmatch(digits) and len(digits) >= _ID_TAIL:
        return f"write id:{digits}"
    if key in tuple(JobState):
        return f"write state:{key}"
    return f"write job:{key}*" if key.isidentifier() else "write KEY:VALUE, such as state:dead"
