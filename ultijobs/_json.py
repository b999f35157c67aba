"""JSON that a database stores and gives back unchanged; what is not is refused with its path."""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any, Final, cast

from ultijobs._text import storable, unstorable
from ultijobs.errors import PayloadInvalid

__all__ = [
    "DEEPEST",
    "decode",
    "encode",
    "is_nonfinite",
    "looks_storable",
    "path_of",
    "refuse_oversized",
    "refuse_unstorable",
]

DEEPEST: Final = 100
"""How deep a value may be nested; every JSON parser on the way reads it."""

_NOWHERE: Final = "which no database stores"
_CHARACTER: Final = "remove the character, or pass the text in an encoding such as base64"
_ENCODER: Final = json.JSONEncoder(ensure_ascii=False, separators=(",", ":"), allow_nan=False)
_SCALARS: Final = frozenset({type(None), bool, int, float, str})
_CONTAINERS: Final = frozenset({list, dict})
_PLAIN: Final = (type(None), bool, int, float, str, list, dict)


def encode(value: object, *, what: str, fix: str | None = None, limit: int | None = None, exact: bool = False) -> str:
    """The JSON text of `value`: None, bool, int, finite float, str, list, and dict with str keys.

    `exact` refuses subclasses of those (an IntEnum, a numpy float), which would come back as another type. Raises
    `PayloadInvalid` with `path` for anything else, for U+0000, a lone surrogate, a nesting deeper than `DEEPEST`, and
    for a text of more than `limit` bytes.
    """
    text = _quick(value)
    if text is None:
        # Slow, and only for what is refused or looks like it: where the trouble is.
        for path, problem in _problems(value, exact=exact):
            suited = _CHARACTER if problem.endswith(_NOWHERE) else fix
            raise PayloadInvalid(f"{what} cannot be stored: {path} {problem}", fix=suited, meta={"path": path})
        text = _ENCODER.encode(value)
    if limit is not None and len(text) * 4 > limit:
        refuse_oversized(len(text.encode()), what=what, limit=limit)
    return text


def looks_storable(text: bytes) -> bool:
    """True for a JSON text, valid UTF-8, that certainly has no U+0000 and is not nested too deep."""
    return b"\\u0000" not in text and text.count(b"[") + text.count(b"{") <= DEEPEST


def refuse_oversized(size: int, *, what: str, limit: int) -> None:
    """Raises `PayloadInvalid` for a JSON text of more than `limit` bytes."""
    if size > limit:
        raise PayloadInvalid(
            f"{what} has {size} bytes as JSON, more than the limit of {limit}",
            fix="store the data elsewhere and pass a reference, or raise App(sizes=Sizes(…))",
            meta={"path": "$", "size": size, "limit": limit},
        )


def decode(text: str) -> Any:
    """The value of a JSON text that `encode` made."""
    return json.loads(text)


def refuse_unstorable(text: str, *, what: str) -> None:
    """Raises `PayloadInvalid` with `what` as the path when `text` has U+0000 or a lone surrogate."""
    found = unstorable(text)
    if found is not None:
        raise PayloadInvalid(
            f"{what} holds {found}, {_NOWHERE}",
            fix=_CHARACTER,
            meta={"path": what},
        )


def path_of(value: object, wanted: Callable[[object], bool]) -> str | None:
    """The path of the first `wanted` one in a value of dicts and sequences."""
    return next((path for path, item, _ in _walk(value) if wanted(item)), None)


def is_nonfinite(item: object) -> bool:
    """True for a NaN and an infinity, which an encoder may turn into null."""
    return isinstance(item, float) and not math.isfinite(item)


def _quick(value: object) -> str | None:
    """The text of a value that certainly is storable; None when it is not, or has to be looked at closely."""
    try:
        if not _exact(value):
            return None
        text = _ENCODER.encode(value)
        text.encode()
        deep = text.count("[") + text.count("{") > DEEPEST and _deeper(value, DEEPEST)
    except (TypeError, ValueError, RecursionError):
        return None
    return None if deep or "\\u0000" in text else text


def _exact(value: object) -> bool:
    kind = type(value)
    if kind in _SCALARS:
        return True
    if kind is list:
        return all(map(_exact, cast("list[object]", value)))
    if kind is dict:
        members = cast("dict[object, object]", value)
        return all(type(key) is str for key in members) and all(map(_exact, members.values()))
    return False


def _deeper(value: object, levels: int) -> bool:
    """True when containers are nested deeper than `levels`."""
    if not levels:
        return True
    children: Iterable[object] = (
        cast("dict[object, object]", value).values() if isinstance(value, dict) else cast("list[object]", value)
    )
    return any(type(child) in _CONTAINERS and _deeper(child, levels - 1) for child in children)


def _problems(value: object, *, exact: bool) -> Iterator[tuple[str, str]]:
    for path, item, depth in _walk(value):
        problem = _problem(item, depth, exact=exact)
        if problem is not None:
            yield path, problem
            return  # What lies below may never end.


def _walk(value: object) -> Iterator[tuple[str, object, int]]:
    # A stack, not recursion: the value may be nested deeper than the interpreter's own limit.
    pending: list[tuple[str, object, int]] = [("$", value, 1)]
    while pending:
        path, item, depth = pending.pop()
        yield path, item, depth
        if isinstance(item, dict):
            members = cast("dict[object, object]", item).items()
            pending.extend((_member(path, str(key)), child, depth + 1) for key, child in members)
        elif isinstance(item, list | tuple | set | frozenset):
            elements = cast("Iterable[object]", item)
            pending.extend((f"{path}[{index}]", child, depth + 1) for index, child in enumerate(elements))


def _problem(item: object, depth: int, *, exact: bool) -> str | None:  # noqa: PLR0911 - one answer per rule
    if depth > DEEPEST:
        return f"is nested deeper than {DEEPEST} levels"
    if is_nonfinite(item):
        return f"is {item!r}, which JSON does not carry"
    if (type(item) not in _PLAIN) if exact else (not isinstance(item, _PLAIN)):
        kind = type(item).__qualname__
        return f"is {'an' if kind[0] in 'aeiouAEIOU' else 'a'} {kind}, which JSON does not carry"
    if isinstance(item, str):
        point = unstorable(item)
        return None if point is None else f"holds {point}, {_NOWHERE}"
    if isinstance(item, dict):
        found = (_key_problem(key, exact=exact) for key in cast("dict[object, object]", item))
        return next((problem for problem in found if problem is not None), None)
    if isinstance(item, int) and _too_long(item):
        return f"is a whole number of more than {sys.get_int_max_str_digits()} digits"
    return None


def _key_problem(key: object, *, exact: bool) -> str | None:
    if (type(key) is not str) if exact else (not isinstance(key, str)):
        return f"has the key {key!r}, a {type(key).__qualname__}; a JSON key is a text"
    found = unstorable(cast("str", key))
    return None if found is None else f"has a key that holds {found}, {_NOWHERE}"


def _too_long(item: int) -> bool:
    most = sys.get_int_max_str_digits()
    return most > 0 and item.bit_length() > most * 3.32


def _member(path: str, key: str) -> str:
    return f"{path}.{key}" if key.isidentifier() else f"{path}[{json.dumps(storable(key), ensure_ascii=False)}]"
