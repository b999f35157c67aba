"""The root of all errors: code, cause, one line that fixes it; and the catalogue of built-in codes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar, Final, Literal

__all__ = ["CATALOGUE", "Invariant", "Retry", "UltijobsError"]

Retry = Literal["terminal", "retryable", "retry-after"]

CATALOGUE: Final[dict[str, type[UltijobsError]]] = {}
"""The built-in class of each code."""


class UltijobsError(Exception):
    """A failure with a code, its cause and one line that fixes it.

    Subclass it with `code` (and `retry`) for an application's own errors: a subclass counts as registered. `retry` says
    what a worker does when a handler raises it: stop (`terminal`), try again by the policy (`retryable`, None), or try
    again after `meta["retry_after_seconds"]` (`retry-after`). A code of the library cannot be taken by a second class.
    `docs` is the command that prints more about the code.
    """

    code: ClassVar[str] = "X_ERROR"
    title: ClassVar[str] = "An error"
    docs: ClassVar[str] = "ultijobs explain"
    retry: ClassVar[Retry | None] = None
    default_fix: ClassVar[str] = "ultijobs explain X_ERROR"

    def __init_subclass__(cls) -> None:
        super().__init_subclass__()
        holder = CATALOGUE.get(cls.code)
        if holder is not None and "code" in cls.__dict__:
            raise Invariant(
                f"{cls.__qualname__} takes the code {cls.code}, which belongs to {holder.__qualname__}",
                fix=f"give {cls.__qualname__} a code of its own",
            )
        if cls.retry not in (None, "terminal", "retryable", "retry-after"):
            raise Invariant(
                f"{cls.__qualname__}.retry is {cls.retry!r}", fix='use "terminal", "retryable", "retry-after" or None'
            )
        if cls.__module__.partition(".")[0] == "ultijobs":
            cls.docs = f"ultijobs explain {cls.code}"
            CATALOGUE[cls.code] = cls

    def __init__(self, cause: str, *, fix: str | None = None, meta: Mapping[str, object] | None = None) -> None:
        super().__init__(cause)
        self.cause = cause
        self.fix = self.default_fix if fix is None else fix
        self.meta: dict[str, object] = dict(meta or {})
        if fix is not None or self.default_fix is not UltijobsError.default_fix:
            self.add_note(f"fix: {self.fix}")  # Python's own traceback shows it below the cause.

    def __str__(self) -> str:
        return f"{self.code}: {self.cause}"

    def __reduce__(self) -> tuple[object, ...]:
        return (_rebuild, (type(self), self.cause, self.fix, self.meta))

    def lines(self) -> tuple[str, str, str]:
        """The three lines that a person reads: code and cause, the fix, where more is written."""
        return (str(self), f"fix: {self.fix}", f"docs: {self.docs}")


def _rebuild(cls: type[UltijobsError], cause: str, fix: str, meta: Mapping[str, object]) -> UltijobsError:
    return cls(cause, fix=fix, meta=meta)


class Invariant(UltijobsError):
    """An argument or a call breaks a rule of the library."""

    code = "X_INVARIANT"
    title = "An argument or a call breaks a rule of the library"
    retry = "terminal"
    default_fix = "correct the argument that the cause names"
