"""The rules that single fields of a declaration obey; `what` names the declaration and the field."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import timedelta
from typing import Any, Final, TypeVar

from ultijobs._durations import Duration, parse
from ultijobs.errors import Invariant

__all__ = [
    "MOST_PRIORITY",
    "MOST_SLOTS",
    "application",
    "choice",
    "durable_name",
    "iterable",
    "mapping",
    "name",
    "optional_span",
    "several",
    "whole",
]

T = TypeVar("T")

MOST_PRIORITY: Final = 32_767
MOST_SLOTS: Final = 10_000
"""Of one name: each is a row, and all are made by the claim that first needs one."""

# Names travel in notifications, filters and comma-separated flags.
_NAME: Final = re.compile(r"[^\s,\x00-\x20\x7f-\x9f\ud800-\udfff]+")
_LONGEST_NAME: Final = 200


def application(value: T, what: str) -> T:
    """An application, as far as its kind can be told from here."""
    given: Any = value
    if isinstance(given, type) or not hasattr(given, "registry") or not callable(getattr(given, "open", None)):
        raise Invariant(
            f"{what}: app is {given!r:.100}, not an application", fix="pass the App(jobs=[…]) of your module"
        )
    return value


def name(value: Any, what: str) -> str:
    """A durable name: 1 to 200 bytes without spaces, commas and control characters."""
    if not isinstance(value, str) or not _NAME.fullmatch(value) or len(value.encode()) > _LONGEST_NAME:
        raise Invariant(
            f"{what} is {value!r:.250}; it must be a text of 1 to {_LONGEST_NAME} bytes without spaces and commas",
            fix=f'set {what.rpartition(": ")[2]}= to a name such as "emails"',
        )
    return value


def durable_name(given: str | None, fn: Any, what: str) -> str:
    """The declared name, else the function's own; a lambda has none."""
    own: object = getattr(fn, "__name__", None)
    return name((None if own == "<lambda>" else own) if given is None else given, what)


def several(value: Any, what: str) -> tuple[Any, ...]:
    """What a list, a set or another iterable holds; a single text is none."""
    return tuple(iterable(value, what))


def iterable(value: Any, what: str) -> Iterable[Any]:
    if isinstance(value, str | bytes | type) or not isinstance(value, Iterable):
        raise Invariant(f"{what} is {value!r:.100}, not a list", fix=f"set {what.rpartition(': ')[2]}= to a list: […]")
    return value  # pyright: ignore[reportUnknownVariableType] - of whatever, which is checked one by one


def mapping(value: Any, what: str) -> dict[Any, Any]:
    if not isinstance(value, Mapping):
        raise Invariant(
            f"{what} is {value!r:.100}, not a mapping", fix=f"set {what.rpartition(': ')[2]}= to a dict: {{…}}"
        )
    return dict(value)  # pyright: ignore[reportUnknownVariableType, reportUnknownArgumentType] - checked one by one


def whole(value: Any, what: str, *, least: int, most: int | None = None) -> int:
    if type(value) is not int or value < least or (most is not None and value > most):
        bounds = f"of {least} or more" if most is None else f"from {least} to {most}"
        raise Invariant(
            f"{what} is {value!r:.100}; it must be a whole number {bounds}",
            fix=f"set {what.rpartition(': ')[2]}= to a whole number {bounds}",
        )
    return value


def optional_span(value: Duration | None, what: str) -> timedelta | None:
    """A duration of more than zero, or None."""
    return None if value is None else parse(value, what=what, positive=True)


def choice(value: Any, what: str, among: tuple[str, ...]) -> str:
    if not isinstance(value, str) or value not in among:
        words = ", ".join(f'"{word}"' for word in among)
        raise Invariant(f"{what} is {value!r:.100}", fix=f"set {what.rpartition(': ')[2]}= to one of {words}")
    return value
