"""Options that several commands share, and how their values are read."""

from __future__ import annotations

import re
import sys
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Annotated, Final, overload

import typer

from ultijobs.errors import CliBadFlag, DurationInvalid
from ultijobs.inspection import (
    Field,
    JobState,
    Op,
    PlanOptions,
    Term,
    Where,
    parse_duration,
    parse_pace,
    parse_where,
)
from ultijobs_cli.completing import job_names, queue_names

__all__ = [
    "Actor",
    "After",
    "AsOf",
    "Canary",
    "DryRun",
    "Limit",
    "MetricsHost",
    "MetricsPort",
    "Name",
    "NeverAsks",
    "Pace",
    "Queue",
    "Reason",
    "State",
    "Tenant",
    "Watch",
    "WhereText",
    "Yes",
    "filter_of",
    "instant_of",
    "need_terminal",
    "not_empty",
    "plan_options",
    "positive_span_of",
    "span_of",
]

PAGE: Final = 10_000
MOST: Final = 1_000_000


def not_empty(value: str | None) -> str | None:
    """A callback of names: an empty one is refused, since it would silently mean nothing or everything."""
    if value is not None and not value.strip():
        raise typer.BadParameter("is empty")
    return value


Queue = Annotated[
    str | None,
    typer.Option("--queue", metavar="QUEUE", help="Only this queue.", callback=not_empty, autocompletion=queue_names),
]
Tenant = Annotated[
    str | None,
    typer.Option("--tenant", metavar="TENANT", help="Only this tenant, as if there were no other.", callback=not_empty),
]
Name = Annotated[
    str | None,
    typer.Option(
        "--name",
        metavar="JOB",
        help="Only jobs with this name; charge* matches a prefix.",
        callback=not_empty,
        autocompletion=job_names,
    ),
]
WhereText = Annotated[
    list[str] | None, typer.Option("--where", metavar="FILTER", help='A filter, such as "state:dead age:>10m".')
]
State = Annotated[
    list[str] | None,
    typer.Option(
        "--state",
        metavar="STATE",
        help=f"Only these states: {', '.join(JobState)}; separate several with commas.",
        autocompletion=lambda: list(JobState),
    ),
]
Limit = Annotated[int, typer.Option("--limit", metavar="N", min=1, max=PAGE, help="Show at most this many rows.")]
After = Annotated[
    str | None, typer.Option("--after", metavar="CURSOR", help="Continue after the `next` of the previous page.")
]
Watch = Annotated[bool, typer.Option("--watch", help="Refresh every two seconds until ctrl-c.")]
MetricsPort = Annotated[
    int | None,
    typer.Option(
        "--metrics-port",
        metavar="PORT",
        min=0,
        max=65_535,
        help="Serve GET /metrics and GET /health on this port; 0 picks a free one.",
    ),
]
MetricsHost = Annotated[
    str, typer.Option("--metrics-host", metavar="HOST", help="The address that --metrics-port listens on.")
]
Actor = Annotated[str | None, typer.Option("--as", metavar="ACTOR", help="Who is acting, for the activity table.")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="TEXT", help="Why, for the activity table.")]
AsOf = Annotated[
    str | None, typer.Option("--as-of", metavar="TIME", help="Skip rows that were touched after this time.")
]
Canary = Annotated[
    int | None, typer.Option("--limit", metavar="N", min=1, max=MOST, help="Act on at most this many, oldest id first.")
]
Pace = Annotated[str | None, typer.Option("--pace", metavar="N/TIME", help="Pause after every N rows: 500/1s.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Show what would be done; change nothing.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
NeverAsks = Annotated[bool, typer.Option("--yes", "-y", help="Accepted for consistency; this command never asks.")]


def bad(flag: str, cause: str, fix: str) -> CliBadFlag:
    """A refusal that names the flag."""
    return CliBadFlag(f"{flag}: {cause}", fix=fix, meta={"at": flag})


def need_terminal(fix: str) -> None:
    """Raises `CliBadFlag` unless there is a terminal to draw on: keys come from stdin, and Textual draws on stderr."""
    if not all(stream.isatty() for stream in (sys.stdin, sys.stdout, sys.stderr)):
        raise CliBadFlag("the cockpit needs a terminal, on stdin, stdout and stderr", fix=fix)


def filter_of(
    where: list[str] | None,
    *,
    state: list[str] | None = None,
    queue: str | None = None,
    name: str | None = None,
    tenant: str | None = None,
) -> Where:
    """The filter that `--where` and the single options say together. Raises `FilterInvalid`, `CliBadFlag`."""
    parsed = parse_where(" ".join(where or ()), tenant=tenant)
    terms = list(parsed.terms)
    if state:
        terms.append(Term(Field.STATE, Op.IS, tuple(_states(state))))
    for field, value in ((Field.QUEUE, queue), (Field.JOB, name)):
        if value is not None:
            terms.append(Term(field, Op.IS, (value,)))
    return Where(tuple(terms), parsed.tenant)


def _states(given: list[str]) -> list[str]:
    states = [word.strip() for text in given for word in text.split(",")]
    for state in states:
        if state not in tuple(JobState):
            raise bad("--state", f"{state!r:.100} is not a state", f"use one of {', '.join(JobState)}")
    return states


@overload
def span_of(flag: str, text: str) -> timedelta: ...
@overload
def span_of(flag: str, text: str | None) -> timedelta | None: ...
def span_of(flag: str, text: str | None) -> timedelta | None:
    """A duration given on the command line; a bare number is seconds. Raises `CliBadFlag`."""
    if text is None:
        return None
    try:
        return parse_duration(float(text) if _is_number(text) else text, what=flag)
    except DurationInvalid as error:
        raise bad(flag, f"{text!r:.100} is not a duration", f"write {flag} 30s, {flag} 1h30m or {flag} 2d") from error


def positive_span_of(flag: str, text: str) -> timedelta:
    """As `span_of`; no time at all is refused as well."""
    span = span_of(flag, text)
    if not span:
        raise bad(flag, "must be more than zero", f"write {flag} 1s")
    return span


def _is_number(text: str) -> bool:
    return re.fullmatch(r"\d+(\.\d+)?", text) is not None


def instant_of(flag: str, text: str | None) -> datetime | None:
    """An instant given on the command line, with its zone. Raises `CliBadFlag`."""
    if text is None:
        return None
    try:
        at = datetime.fromisoformat(text)
    except ValueError as error:
        raise bad(flag, f"{text!r:.100} is not a time", f"write {flag} 2026-01-31T12:00:00Z") from error
    if at.tzinfo is None:
        raise bad(flag, f"{text!r:.100} has no time zone", f"write {flag} {text}Z")
    return at


def plan_options(
    *, reason: str | None, tenant: str | None, as_of: str | None, limit: int | None, pace: str | None
) -> PlanOptions:
    """How an act on many jobs is carried out, from the options that such commands share. Raises `CliBadFlag`."""
    chosen = PlanOptions(reason=reason, tenant=tenant, as_of=instant_of("--as-of", as_of), limit=limit)
    paced = pace_of(pace)
    return chosen if paced is None else replace(chosen, batch=paced[0], pause=paced[1])


def pace_of(text: str | None) -> tuple[int, timedelta] | None:
    """`500/1s` as rows and the pause after them. Raises `CliBadFlag`."""
    if text is None:
        return None
    try:
        return parse_pace(text)
    except DurationInvalid as error:
        raise bad("--pace", error.cause, "write --pace 500/1s") from error
