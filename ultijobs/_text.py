"""Text from elsewhere made storable, bounded, and inert on a terminal."""

from __future__ import annotations

import re
from typing import Final

__all__ = ["clip", "inert", "storable", "unstorable"]

_UNSTORABLE: Final = re.compile("[\x00\ud800-\udfff]")
# Controls, DEL, C1, and the marks that reorder or hide text around them.
_ACTIVE: Final = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ufff9-\ufffb\ud800-\udfff]"
)
_ACTIVE_IN_LINE: Final = re.compile(f"[\t\n]|{_ACTIVE.pattern}")


def unstorable(text: str) -> str | None:
    """What in `text` a database refuses ("U+0000", "the lone surrogate U+D800"), or None."""
    found = _UNSTORABLE.search(text)
    if found is None:
        return None
    point = f"U+{ord(found[0]):04X}"
    return point if found[0] == "\x00" else f"the lone surrogate {point}"


def storable(text: str) -> str:
    r"""`text` with U+0000 and lone surrogates as visible escapes (`\x00`, `\ud800`)."""
    return _UNSTORABLE.sub(_escape, text)


def clip(text: str, limit: int) -> str:
    """`text` within `limit` bytes of UTF-8; what is cut leaves a mark that says how much. Storable text comes back."""
    head = storable(text[: limit + 1])
    if len(text) <= limit and len(head.encode()) <= limit:
        return head
    mark = f"… [truncated, {len(text.encode(errors='surrogatepass'))} bytes in all]"
    room = max(0, limit - len(mark.encode()))
    return head.encode()[:room].decode(errors="ignore") + mark


def inert(text: str, *, line: bool = False) -> str:
    """`text` that can neither move a cursor nor reorder a line: control characters become visible escapes.

    Tabs and line feeds stay, unless a single `line` is wanted.
    """
    return (_ACTIVE_IN_LINE if line else _ACTIVE).sub(_escape, text)


def _escape(found: re.Match[str]) -> str:
    point = ord(found[0])
    named = {9: "\\t", 10: "\\n", 13: "\\r"}.get(point)
    if named is not None:
        return named
    return f"\\x{point:02x}" if point <= 0xFF else f"\\u{point:04x}"  # noqa: PLR2004 - one byte
