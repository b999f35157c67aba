"""The checksum of a backfill: of what it reads and what it does with that, not of how fast or where."""

from __future__ import annotations

import ast
import hashlib
import inspect
import textwrap
from typing import Any

__all__ = ["checksum"]


def checksum(*parts: Any) -> str:
    """32 hex digits over the texts of `parts`; of a function its source from `def` on, without its decorators."""
    text = "\0".join(part if isinstance(part, str) else _source(part) for part in parts)
    return hashlib.sha256(text.encode(errors="backslashreplace")).hexdigest()[:32]


def _source(fn: Any) -> str:
    found: Any = fn
    found = inspect.unwrap(found) if inspect.isroutine(fn) else found.__class__
    try:
        text = textwrap.dedent(inspect.getsource(found))
    except (OSError, TypeError):
        return _compiled(found)
    try:
        body = ast.parse(text).body[0]
    except SyntaxError:
        # A lambda in the middle of an expression.
        return text.strip()
    first = getattr(body, "lineno", 1)
    return "\n".join(text.splitlines()[first - 1 :]).strip()


def _compiled(fn: Any) -> str:
    """What stands for the source of code that has none, such as that of a REPL."""
    code = getattr(fn, "__code__", None)
    if code is None:
        return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', '?')}"
    return f"{code.co_code.hex()} {code.co_names} {[c for c in code.co_consts if isinstance(c, str | int | float)]}"
