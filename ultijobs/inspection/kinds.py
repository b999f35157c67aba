"""Refuses arguments of the wrong kind by their annotation, in one place for every call of the Inspector."""

from __future__ import annotations

import inspect
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from datetime import datetime
from enum import StrEnum
from functools import cache, wraps
from types import NoneType, UnionType
from typing import Any, Final, Literal, TypeVar, Union, cast, get_args, get_origin, get_type_hints
from uuid import UUID

from ultijobs._durations import Duration
from ultijobs._queue.where import Term, Where
from ultijobs.errors import Invariant
from ultijobs.inspection.models import PlanOptions, Target

__all__ = ["kinds_checked"]

_Class = TypeVar("_Class", bound=type[Any])
_Misfit = tuple[str, object, Any]
"""Where it is, what was given, and the annotation."""
_MADE_BY_CALLERS: Final = frozenset({Where, Term, Target, PlanOptions})
"""Values whose fields are looked at too; others come from the library itself."""
_TEXTS: Final = (str, bytes, bytearray, memoryview)
_WORDS: Final[dict[object, str]] = {
    str: "a text",
    UUID: "a UUID",
    int: "a whole number",
    float: "a number",
    bool: "True or False",
    datetime: "a datetime",
    NoneType: "None",
}


def kinds_checked(cls: _Class) -> _Class:
    """Every public coroutine method raises `Invariant` for an argument that its annotation does not allow."""
    for name in dir(cls):
        method = getattr(cls, name)
        if not name.startswith("_") and inspect.iscoroutinefunction(method):
            setattr(cls, name, _checked(method))
    return cls


def _checked(method: Callable[..., Awaitable[Any]]) -> Callable[..., Awaitable[Any]]:
    signature = inspect.signature(method)

    @wraps(method)
    async def checked(*args: Any, **kwargs: Any) -> Any:
        bound = signature.bind(*args, **kwargs)
        for name, hint in _hints(method).items():
            if name in bound.arguments:
                bound.arguments[name] = _fitting(method.__name__, name, bound.arguments[name], hint)
        return await method(*bound.args, **bound.kwargs)

    return checked


def _fitting(method: str, name: str, value: object, hint: Any) -> object:
    """The value; a text that is a member of the enumeration asked for is that member."""
    found = _misfit(value, hint, name)
    if found is not None:
        at, given, wanted = found
        cause = f"{method}: {at} is {given!r:.100}, of type {type(given).__name__}"
        raise Invariant(cause, fix=f"give {_words(wanted)}", meta={"at": at})
    return cast("Any", hint)(value) if inspect.isclass(hint) and issubclass(hint, StrEnum) else value


@cache
def _hints(of: Any) -> dict[str, Any]:
    return get_type_hints(of)


def _misfit(value: object, hint: Any, at: str) -> _Misfit | None:
    origin, args = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType} and hint != Duration:
        return _of_members(value, hint, args, at)
    if origin in {Sequence, tuple}:
        return _of_items(value, hint, args[0], at)
    fits = value in args if origin is Literal else hint == Duration or _is_a(value, origin or hint)
    if not fits:
        return (at, value, hint)
    return _of_fields(value, at) if type(value) in _MADE_BY_CALLERS else None


def _is_a(value: object, kind: Any) -> bool:
    """What cannot be told by looking, such as a protocol, fits."""
    if kind is object or not inspect.isclass(kind) or getattr(kind, "_is_protocol", False):
        return True
    if kind is int or kind is float:
        return isinstance(value, int if kind is int else (int, float)) and not isinstance(value, bool)
    if issubclass(kind, StrEnum):
        return value in tuple(kind)
    return isinstance(value, kind)


def _of_members(value: object, hint: Any, members: Sequence[Any], at: str) -> _Misfit | None:
    """Of a union: one that is of a member's type and wrong inside is told by what is wrong."""
    found = [_misfit(value, member, at) for member in members]
    if None in found:
        return None
    inside = [each for each in found if each is not None and each[0] != at]
    return inside[0] if inside else (at, value, hint)


def _of_items(value: object, hint: Any, item: Any, at: str) -> _Misfit | None:
    whole: _Misfit = (at, value, hint)
    if not isinstance(value, Collection) or isinstance(value, (*_TEXTS, Mapping)):
        return whole
    items = cast("Collection[object]", value)
    return next((found for each in items if (found := _misfit(each, item, f"{at}[]")) is not None), None)


def _of_fields(value: object, at: str) -> _Misfit | None:
    hints = _hints(cast("Any", type(value)))
    found = (_misfit(getattr(value, name), hint, f"{at}.{name}") for name, hint in hints.items())
    return next((each for each in found if each is not None), None)


def _words(hint: Any) -> str:
    origin, args = get_origin(hint), get_args(hint)
    if origin in {Union, UnionType}:
        return " or ".join(map(_words, args))
    if origin is Literal:
        return " or ".join(map(repr, args))
    if origin in {Sequence, tuple}:
        return f"a list, each item {_words(args[0])}"
    if inspect.isclass(hint) and issubclass(hint, StrEnum):
        return f"one of {', '.join(hint)}"
    return _WORDS.get(hint) or f"one of type {getattr(hint, '__name__', hint)}"
