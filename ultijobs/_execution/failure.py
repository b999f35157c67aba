"""What is kept of an exception: its code, a text, a traceback and a fingerprint, all bounded and storable."""

from __future__ import annotations

import hashlib
import re
import sysconfig
import traceback
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import FrameType, TracebackType
from typing import Final
from uuid import UUID

from ultijobs._execution.classify import members
from ultijobs._text import clip
from ultijobs.errors import UltijobsError

__all__ = ["Failure", "describe"]

TRACEBACK_LIMIT: Final = 20_000
DEEPEST_CHAIN: Final = 5
MOST_FRAMES: Final = 30
MOST_OF_GROUP: Final = 5
TOLD: Final = 300
"""Characters of a message that its fingerprint looks at."""

_ANY_ID: Final = re.compile(r"\bID\b")
_LIBRARY: Final = str(Path(__file__).parents[1])
_STDLIB: Final = tuple({path for key in ("stdlib", "platstdlib") if (path := sysconfig.get_path(key))})

_VARYING: Final = re.compile(
    r"""
    "[^"]*"                                     # quoted
    | (?<!\w)'[^']*'(?!\w)
    | `[^`]*`
    | \b0x[0-9a-f]+\b                           # an address
    | \b[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b
    | \b(?=[0-9a-f]*[0-9])[0-9a-f]{6,}\b        # an id
    | [-+]?\d+(?:[.,:]\d+)*
    """,
    re.VERBOSE | re.IGNORECASE,
)


@dataclass(frozen=True, slots=True)
class Failure:
    """An exception, ready to be stored."""

    code: str
    text: str
    traceback: str
    fingerprint: str


def describe(error: BaseException, *, limit: int, ending: str = "", job: UUID | None = None) -> Failure:
    """`error` of `job` as it is stored: a text of at most `limit` bytes that ends with `ending`. Never raises."""
    code = _code(error)
    said = _said(error)
    room = max(0, limit - len(ending.encode()) - 1) if ending else limit
    text = clip(f"{code}: {said}{_fix(error, job)}" if said else code, room)
    return Failure(
        code=clip(code, 200),
        text=f"{text} {ending}" if ending else text,
        traceback=clip(_traceback(error), TRACEBACK_LIMIT),
        fingerprint=_fingerprint(code, said, error),
    )


def _code(error: BaseException) -> str:
    if isinstance(error, UltijobsError):
        return str(error.code)
    kind = type(error)
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def _said(error: BaseException) -> str:
    try:
        text = str(error.cause if isinstance(error, UltijobsError) else error)
        inner = members(error)[:MOST_OF_GROUP]
        return "; ".join([text, *(f"{_code(each)}: {_said(each)}" for each in inner)])
    except BaseException as trouble:  # noqa: BLE001 - an exception whose text cannot be had still has to be stored
        return f"its text cannot be had: {type(trouble).__qualname__}"


def _fix(error: BaseException, job: UUID | None) -> str:
    if not isinstance(error, UltijobsError) or error.fix == UltijobsError.default_fix:
        return ""
    # A class speaks of any job; here it is known which.
    own = job is not None and error.fix == type(error).default_fix
    return f" · fix: {_ANY_ID.sub(str(job), error.fix) if own else error.fix}"


def _traceback(error: BaseException) -> str:
    parts: list[str] = []
    seen: set[int] = set()
    at: BaseException | None = error
    while at is not None and id(at) not in seen and len(parts) < DEEPEST_CHAIN:
        seen.add(id(at))
        stack = "".join(traceback.format_list(traceback.extract_tb(_inner(at.__traceback__), limit=-MOST_FRAMES)))
        parts.append(f"{stack}{_code(at)}: {_said(at)[:1_000]}\n")
        at = at.__cause__ or (None if at.__suppress_context__ else at.__context__)
    parts.reverse()
    return "\nand then:\n\n".join(parts)


def _inner(trace: TracebackType | None) -> TracebackType | None:
    """Without the library's own frames on top, which are the same for every job."""
    start = trace
    while trace is not None and trace.tb_frame.f_code.co_filename.startswith(_LIBRARY):
        trace = trace.tb_next
    return start if trace is None else trace


def _fingerprint(code: str, said: str, error: BaseException) -> str:
    said = " ".join(_VARYING.sub("*", said[:TOLD]).split())
    frame = _application_frame(error.__traceback__)
    where = "" if frame is None else f"{frame.f_globals.get('__name__', '?')}:{frame.f_code.co_name}"
    text = f"{code}\x1f{said}\x1f{where}"
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:16]


def _application_frame(trace: TracebackType | None) -> FrameType | None:
    """The innermost frame of the application's own code; else the innermost of all."""
    own: FrameType | None = None
    last: FrameType | None = None
    for frame in _frames(trace):
        last = frame
        name = frame.f_code.co_filename
        if "site-packages" not in name and not name.startswith((_LIBRARY, "<frozen", *_STDLIB)):
            own = frame
    return own or last


def _frames(trace: TracebackType | None) -> Iterator[FrameType]:
    while trace is not None:
        yield trace.tb_frame
        trace = trace.tb_next
