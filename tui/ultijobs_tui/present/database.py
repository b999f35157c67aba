"""The database as part of the patient: each fact with the statement that an operator may run by hand."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass
from datetime import timedelta
from typing import Final

from ultijobs.inspection import Blocked, Health, Snapshot, TableHealth, Thresholds
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.look import Look
from ultijobs_tui.present.finding import holds, nothing_found, unread
from ultijobs_tui.present.plan import command_lines
from ultijobs_tui.table import Column, Line, Row, Span, Table, Tone, cell, line, rule

__all__ = ["Fact", "database_panel", "database_summary", "database_table", "facts_of"]

_LIMITS: Final = Thresholds()
"""The same as of `ultijobs doctor`."""
_MS: Final = timedelta(milliseconds=1)
_MARKS: Final = {2: ("!!", Tone.BAD), 1: ("! ", Tone.WARN), 0: ("· ", Tone.MUTED)}
_BRIEF_MS: Final = 1_000
"""What is over sooner is how a database works."""
_WHO: Final = "select application_name, state, count(*) from pg_stat_activity group by 1, 2 order by 3 desc"


@dataclass(frozen=True, slots=True)
class Fact:
    """One line: `severity` as of a stuck thing; `statement` is run by nobody but the operator."""

    key: str
    severity: int
    what: str
    who: str
    value: str
    says: str
    statement: str
    detail: str = ""


def facts_of(health: Health, look: Look) -> list[Fact]:
    """What is wrong first, then what is as it should be."""
    facts = [
        *(_blocked(wait) for wait in health.waits if wait.waited_ms >= _BRIEF_MS),
        *(_snapshot(session) for session in health.snapshots if session.age_ms >= _BRIEF_MS),
        *(_invalid(index) for index in health.invalid_indexes),
        *(_server(health) if health.kind == "postgres" else ()),
        Fact("server", 0, "server", health.kind, f"schema {health.schema_version}", health.version, "select version()"),
        *(_table(table, look) for table in health.tables),
    ]
    return sorted(facts, key=lambda fact: -fact.severity)


def _blocked(wait: Blocked) -> Fact:
    by = ", ".join(f"pid {pid}" for pid in wait.by) or "a session that has just ended"
    return Fact(
        key=f"blocked:{wait.pid}",
        severity=2 if wait.waited_ms * _MS > _LIMITS.blocked else 0,
        what="blocked",
        who=f"pid {wait.pid} {wait.application}".strip(),
        value=fmt.age(wait.waited_ms),
        says=f"waits for {by}",
        statement=f"select pg_terminate_backend({wait.by[0]})"
        if wait.by
        else "select * from pg_locks where not granted",
        detail=wait.query,
    )


def _snapshot(session: Snapshot) -> Fact:
    age = session.age_ms * _MS
    idle = session.state.startswith("idle in")
    late = age > (_LIMITS.idle_transaction if idle else _LIMITS.snapshot)
    prepared = session.pid == 0
    return Fact(
        key=f"snapshot:{session.query if prepared else session.pid}",
        severity=2 if age > _LIMITS.snapshot_urgent else 1 if late else 0,
        what="transaction",
        who="prepared" if prepared else f"pid {session.pid} {session.application}".strip(),
        value=fmt.age(session.age_ms),
        says=f"{session.state or 'open'}: dead rows stay until it ends",
        statement=f"rollback prepared '{session.query}'" if prepared else _end(session.pid),
        detail=session.query,
    )


def _end(pid: int) -> str:
    return f"select pg_terminate_backend({pid})"


def _invalid(index: str) -> Fact:
    return Fact(
        key=f"index:{index}",
        severity=2,
        what="invalid index",
        who=index,
        value=fmt.NEVER,
        says="kept up to date and never used",
        statement=f"reindex index concurrently {index}",
    )


def _server(health: Health) -> list[Fact]:
    scarce = bool(health.connections) and health.connections >= _LIMITS.connections * health.connection_limit
    full = health.notify_queue >= _LIMITS.notify_queue
    told = ", ".join(f"{name or 'unnamed'} {number}" for name, number in health.applications.items())
    facts = [
        Fact("connections", 2 if scarce else 0, "connections", "all applications",
             f"{health.connections}/{health.connection_limit}" if health.connection_limit else str(health.connections),
             told or fmt.NEVER, _WHO, told),
        Fact("listeners", 0, "listeners", "ultijobs-listen", str(health.listeners),
             "processes that are told of new work at once; the others poll",
             "select pid, client_addr from pg_stat_activity where application_name = 'ultijobs-listen'"),
        Fact("notify", 2 if full else 0, "notifications", "queue", f"{health.notify_queue:.0%}",
             "full" if full else "how full the server's queue is; at 100% commits that notify fail",
             "select pg_notification_queue_usage()"),
    ]  # fmt: skip
    skew = health.clock_skew_ms
    if skew is not None:
        far = abs(skew) * _MS >= _LIMITS.clock
        said = (
            f"this machine's clock is {'ahead of' if skew > 0 else 'behind'} the database's" if skew else "they agree"
        )
        facts.append(Fact("clock", int(far), "clock", "this machine", fmt.took(abs(skew)), said, "select now()"))
    return facts


def _table(table: TableHealth, look: Look) -> Fact:
    vacuumed = table.last_autovacuum
    late = vacuumed is None or look.now - vacuumed > _LIMITS.vacuum
    bloated = table.dead >= max(_LIMITS.dead_rows, table.live) and late
    since = "never" if vacuumed is None else look.since(vacuumed) if look.absolute else f"{look.since(vacuumed)} ago"
    return Fact(
        key=f"table:{table.table}",
        severity=1 if bloated else 0,
        what="table",
        who=table.table,
        value=f"{fmt.short(table.dead)} dead",
        says=f"{fmt.short(table.live)} live · last autovacuum {since}",
        statement=f"vacuum (analyze) {table.table}",
    )


def database_table(frame: Frame, look: Look, *, find: str = "") -> Table:
    """One row per fact, what is wrong first."""
    columns = (
        Column("", 2),
        Column("WHAT", 11, 14),
        Column("WHO", 12, 32 if look.wide else 20),
        Column("VALUE", 9, 12, align="right"),
        Column("SAYS", 20, grow=True),
    )
    health = frame.health
    if health is None:
        return unread(columns, frame.failures.get("health"))
    facts = facts_of(health, look)
    shown = [fact for fact in facts if holds(find, {"what": fact.what, "who": fact.who, "says": fact.says})]
    if (said := nothing_found(columns, find, facts if not shown else (), "fact")) is not None:
        return said
    rows = tuple(
        Row(
            fact.key,
            (
                cell(*_MARKS[fact.severity]),
                cell(fact.what, _MARKS[fact.severity][1] if fact.severity else None),
                cell(fact.who, Tone.STRONG),
                cell(fact.value),
                cell(fact.says, Tone.MUTED),
            ),
        )
        for fact in shown
    )
    return Table(columns, rows, tuple(line(Span(lack, Tone.MUTED)) for lack in health.lacks))


def database_summary(health: Health | None, look: Look) -> list[str | Span]:
    """`3 things want a look · postgres 16.2`."""
    if health is None:
        return []
    wrong = sum(fact.severity > 0 for fact in facts_of(health, look))
    thing = "thing wants" if wrong == 1 else "things want"
    told = Span(f"{wrong} {thing} a look", Tone.WARN) if wrong else Span("nothing is wrong", Tone.GOOD)
    lacks = [Span(f" · {health.lacks[0]}", Tone.MUTED)] if health.lacks else []
    return [told, f" · {health.kind} {health.version}", *lacks]


def database_panel(fact: Fact | None, look: Look) -> list[Line]:
    """The fact under the cursor, and the statement for it."""
    if fact is None:
        return []
    lines = [rule(f"{fact.what} {fact.who}", fact.value), line(" ", fact.says)]
    if fact.detail and fact.detail != fact.says:
        said = textwrap.shorten(fact.detail, max(20, look.width - 4), placeholder=" …")
        lines.append(line(" ", Span(said, Tone.MUTED)))
    lines += command_lines(fact.statement, look.width, label="by hand")
    lines.append(
        line(" press ", Span(look.key("copy.id"), Tone.KEY), " copy the statement: the cockpit runs none of them")
    )
    return lines
