"""`explain`."""

from __future__ import annotations

from difflib import get_close_matches
from typing import Annotated

import typer

from ultijobs.errors import DeclarationUnknown
from ultijobs_cli.command import Invocation
from ultijobs_cli.explanations import CODES, explanation
from ultijobs_cli.report import Report
from ultijobs_cli.tables import Cell, Column, Pairs, Paragraph, grid

__all__ = ["explain"]


def explain(
    call: Invocation,  # noqa: ARG001 - every body takes one
    code: Annotated[
        str | None, typer.Argument(metavar="CODE", help="The error code.", autocompletion=lambda: list(CODES))
    ] = None,
) -> Report:
    """Explains an error code, or lists all of them.

    $ ultijobs explain X_JOB_LEASE_LOST
    $ ultijobs explain
    """
    if code is None:
        rows = [
            {"code": known, "title": kind.title, "retry": getattr(kind, "retry", None)} for known, kind in CODES.items()
        ]
        table = grid(
            list(CODES.items()),
            [Column("CODE", lambda row: Cell(row[0], "bold")), Column("TITLE", lambda row: row[1].title, wide=True)],
            empty="no codes",
        )
        return Report(f"{len(rows)} codes", {"rows": rows, "next": None}, [table], rows="rows")
    wanted = code.upper().replace("-", "_")
    wanted = wanted if wanted.startswith("X_") else f"X_{wanted}"
    known = CODES.get(wanted)
    if known is None:
        near = get_close_matches(wanted, CODES, 1, 0.75)
        raise DeclarationUnknown(
            f"no error has the code {code!r:.100}", fix=f"ultijobs explain {near[0]}" if near else "ultijobs explain"
        )
    told = explanation(known)
    return Report(
        summary=f"{wanted}: {known.title}",
        data={
            "code": wanted,
            "title": known.title,
            "when": told.when,
            "what_to_do": told.what_to_do,
            "fix": told.fix,
            "retry": getattr(known, "retry", None),
            "docs": known.docs,
        },
        blocks=[
            Paragraph(f"{wanted}: {known.title}", "bold"),
            Paragraph(told.when, prose=True),
            Paragraph(told.what_to_do, title="What to do", prose=True),
            Pairs(
                (
                    ("fix", Cell(told.fix)),
                    *([("in a handler", Cell(told.retry))] if told.retry else []),
                )
            ),
        ],
    )
