"""Splits a filter into words and their values: blanks between words, commas between values, quotes around either."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from ultijobs.errors import FilterInvalid

__all__ = ["Word", "invalid", "quote", "split"]

_SIGNS: Final = ":~"

_LONGEST: Final = 300


@dataclass(frozen=True, slots=True)
class Word:
    """One word as written: `-` before it, its key, the sign after the key, its values, and where it stands."""

    at: int
    negated: bool
    key: str
    sign: str
    """`:`, `~`, or empty for a bare word."""
    values: tuple[str, ...]


def invalid(cause: str, *, at: int, fix: str) -> FilterInvalid:
    return FilterInvalid(f"{_short(cause)} (at character {at + 1})", fix=_short(fix), meta={"position": at})


def _short(said: str) -> str:
    """What quotes a filter of any length still fits on a screen."""
    return said if len(said) <= _LONGEST else f"{said[:_LONGEST]}…"


def split(text: str) -> list[Word]:
    """The words of `text` in order. Raises `FilterInvalid` for an open quote and for a word without a value."""
    for at, char in enumerate(text):
        if char == "\0" or "\ud800" <= char <= "\udfff":
            raise invalid(f"{char!r} cannot stand in any stored text", at=at, fix="remove the character")
    words: list[Word] = []
    at = 0
    while at < len(text):
        if text[at].isspace():
            at += 1
            continue
        word, at = _word(text, at)
        words.append(word)
    return words


def quote(value: str) -> str:
    """`value` as one value of a word, quoted where it must be."""
    if value and not any(c.isspace() or c in ',"\\' for c in value):
        return value
    inner = value.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{inner}"'


def _word(text: str, start: int) -> tuple[Word, int]:
    at = start
    negated = text[at] == "-"
    at += negated
    key_at = at
    while at < len(text) and text[at] not in _SIGNS and text[at] != '"' and not text[at].isspace():
        at += 1
    key = text[key_at:at]
    if at == len(text) or text[at] not in _SIGNS:
        return Word(start, negated, key, "", ()), max(at, start + 1) if key or negated else _quoted(text, at)[1]
    sign = text[at]
    values: list[str] = []
    at += 1
    while True:
        value, end = _quoted(text, at) if at < len(text) and text[at] == '"' else _plain(text, at)
        if end == at:
            raise invalid(f"{key}{sign} lacks a value", at=start, fix=f"write {key or 'state'}{sign}VALUE")
        values.append(value)
        at = end
        if at < len(text) and text[at] == ",":
            at += 1
            continue
        if at < len(text) and not text[at].isspace():
            raise invalid("a blank must follow the closing quote", at=at, fix="put a blank between the words")
        return Word(start, negated, key, sign, tuple(values)), at


def _plain(text: str, at: int) -> tuple[str, int]:
    end = at
    while end < len(text) and text[end] not in ',"' and not text[end].isspace():
        end += 1
    return text[at:end], end


def _quoted(text: str, at: int) -> tuple[str, int]:
    out: list[str] = []
    i = at + 1
    while i < len(text):
        if text[i] == '"':
            return "".join(out), i + 1
        if text[i] == "\\" and i + 1 < len(text):
            i += 1
        out.append(text[i])
        i += 1
    raise invalid("a quote is not closed", at=at, fix='close it with "')
