"""The filter as the operator types it: what is wrong with it, what could be loosened."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ultijobs.errors import FilterInvalid
from ultijobs.inspection import Field, Op, Term, Where, format_where, parse_where
from ultijobs_tui.table import Line, Span, Tone, line

__all__ = ["GRAMMAR", "empty_jobs", "filter_error", "of_tenant", "quoted"]

GRAMMAR: Final = line(
    " ", Span("state: queue: job: tenant: reason: fp: code: key: worker: age:>10m -not err~text", Tone.MUTED)
)


def filter_error(text: str) -> Line | None:
    """What makes `text` unreadable, and what to write in its place; None when it reads."""
    try:
        parse_where(text)
    except FilterInvalid as error:
        return line(" ", Span(error.cause, Tone.BAD), Span(f" · {error.fix}", Tone.MUTED))
    return None


def of_tenant(tenant: str | None) -> str:
    """The word that narrows to a tenant; none for all of them."""
    return "" if tenant is None else f"tenant:{quoted(tenant)}"


def quoted(value: str) -> str:
    """A value as the grammar takes it."""
    return format_where(Where((Term(Field.KEY, Op.IS, (value,)),))).removeprefix("key:")


def empty_jobs(where: str, strangers: Sequence[str] = ()) -> tuple[Line, ...]:
    """Why there is nothing to list; `strangers` tells of the names that nothing is known under."""
    if not where:
        return (line("No jobs yet. A job appears here when it is enqueued."),)
    return (
        line("No job matches ", Span(where, Tone.ACCENT), "."),
        *(line(Span(told, Tone.WARN)) for told in strangers),
        line(Span("/", Tone.KEY), " change the filter   ", Span("esc", Tone.KEY), " leave it"),
    )
