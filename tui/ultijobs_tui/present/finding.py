"""The words that narrow a short list: all must be there; `name:value` wants the whole of one field."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from ultijobs_tui.table import Column, Span, Table, Tone, line

__all__ = ["exactly", "holds", "nothing_found", "unread"]

_WORD: Final = re.compile(r'(?:([a-z]+):)?(?:"([^"]*)"|(\S+))')


def holds(find: str, fields: Mapping[str, str | None]) -> bool:
    """Whether a row with these `fields` is meant by `find`."""
    everything = " ".join(value for value in fields.values() if value).casefold()
    for name, quoted, bare in _WORD.findall(find.casefold()):
        value = quoted or bare
        if name in fields:
            if (fields[name] or "").casefold() != value:
                return False
        elif (f"{name}:{value}" if name else value) not in everything:
            return False
    return True


def exactly(name: str, value: str) -> str:
    """The word that keeps the rows whose `name` is `value`."""
    return f'{name}:"{value}"' if re.search(r"\s", value) else f"{name}:{value}"


def unread(columns: tuple[Column, ...], failure: str | None) -> Table:
    """In place of rows that were not read yet, or could not be."""
    said = Span(f"?? {failure}", Tone.WARN) if failure else Span("reading…", Tone.MUTED)
    return Table(columns, (), (line(said),))


def nothing_found(columns: tuple[Column, ...], find: str, things: Sequence[object], noun: str) -> Table | None:
    """What is said when `find` leaves none of the `things` there are."""
    if not things or not find:
        return None
    some = f"{len(things)} {noun}{'' if len(things) == 1 else 's'}"
    said = line(f"None of {some} holds {find!r}.  ", Span("esc", Tone.KEY), " leaves this filter")
    return Table(columns, (), (said,))
