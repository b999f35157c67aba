"""The rules for the arguments of an application."""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, TypeVar, cast, get_args

from ultijobs._definitions import checks
from ultijobs._queue.driver import Driver
from ultijobs.errors import Invariant, Retry, UltijobsError

__all__ = ["classes", "driver", "function", "instance", "outbox", "patterns", "schema", "transactions"]

T = TypeVar("T")

# Schemas are quoted in every statement, so only what cannot be quoted or is reserved is refused.
_SCHEMA: Final = re.compile(r"(?!pg_)[^\x00-\x1f\x7f\"{}\ud800-\udfff]{1,63}")


def schema(value: Any) -> str:
    if not isinstance(value, str) or not _SCHEMA.fullmatch(value):
        raise Invariant(f"App: schema is {value!r:.100}", fix='set schema= to the name of a schema, such as "public"')
    return value


def driver(value: Any) -> str | Driver | None:
    if value is None or (isinstance(value, str) and value):
        return value
    if isinstance(value, str) or not callable(getattr(value, "enqueue", None)):
        raise Invariant(
            f"App: driver is {value!r:.100}", fix='set driver="postgresql://…", or leave it out to use the settings'
        )
    return cast("Driver", value)


def instance(value: T, kind: type[T], field: str) -> T:
    given: Any = value
    if not isinstance(given, kind):
        raise Invariant(f"App: {field} is {given!r:.100}", fix=f"set {field}={kind.__name__}(…)")
    return value


def function(value: T, field: str) -> T:
    if value is not None and not callable(value):
        raise Invariant(f"App: {field} is {value!r:.100}", fix=f"set {field}= to a function")
    return value


def outbox(value: Any) -> str | None:
    if value is not None and (not isinstance(value, str) or not value):
        raise Invariant("App: outbox is not a URL", fix='set outbox="postgresql://…", the database of the application')
    return value


def transactions(value: Any) -> str:
    return checks.choice(value, "App: transactions", ("optional", "required"))


def classes(value: Mapping[type[Exception], Retry]) -> Mapping[type[Exception], Retry]:
    """What foreign exceptions mean; an error of the library or of its shape says so on its own class."""
    given_classes = checks.mapping(value, "App: classify")
    for each, retry in given_classes.items():
        given: Any = each
        named = getattr(given, "__qualname__", repr(given))
        if not isinstance(given, type) or not issubclass(given, Exception):
            raise Invariant(f"App: classify holds {named}, not an exception class", fix="use exception classes as keys")
        if issubclass(given, UltijobsError):
            raise Invariant(f"App: classify holds {named}", fix=f"set retry= on the class {named}")
        checks.choice(retry, f"App: classify[{named}]", get_args(Retry))
    return MappingProxyType(given_classes)


def patterns(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise Invariant(f"App: redact is {value!r:.100}", fix=f"set redact=({value!r:.100},)")
    found = checks.several(value, "App: redact")
    for each in found:
        if not isinstance(each, str) or not each:
            raise Invariant(f"App: redact holds {each!r:.100}", fix='use patterns of keys, such as "*iban*"')
    return found


Transactions = Literal["optional", "required"]
