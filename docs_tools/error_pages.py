"""`docs/errors`: a page per code, and a list of them."""

from __future__ import annotations

from ultijobs import errors
from ultijobs.errors import UltijobsError
from ultijobs.inspection import Check
from ultijobs_cli.explanations import CODES, explanation

__all__ = ["page", "pages"]


def pages() -> dict[str, str]:
    return {"errors/README.md": index(), **{f"errors/{code}.md": page(code) for code in CODES}}


def index() -> str:
    rows = "\n".join(f"| [{code}]({code}.md) | {kind.title} |" for code, kind in CODES.items())
    return (
        "# Errors\n\n"
        "Every error has a stable code, a cause and one line that fixes it. `ultijobs explain CODE` says the same.\n\n"
        f"| code | what |\n|---|---|\n{rows}\n"
    )


def page(code: str) -> str:
    kind = CODES[code]
    told = explanation(kind)
    return (
        f"# {code}\n\n{kind.title}. {_origin(kind)}\n\n"
        f"## When\n\n{told.when}\n\n"
        f"## What to do\n\n{told.what_to_do}\n"
        + (
            "\nThe line that comes with it, where the cause gives no better one:\n\n"
            f"    {told.fix}\n\n"
            f"Raised by a handler, it {told.retry}.\n"
            if told.retry
            else ""
        )
    )


def _origin(kind: type[UltijobsError] | Check) -> str:
    if isinstance(kind, Check):
        return f"Found by the check `{kind.name}` of `ultijobs doctor`."
    return f"In code: `{_place(kind)}`."


def _place(kind: type[UltijobsError]) -> str:
    """Where an application imports it from."""
    return f"ultijobs.errors.{kind.__name__}" if hasattr(errors, kind.__name__) else f"ultijobs.{kind.__name__}"
