"""Checks on the database: sessions, dead rows, locks, connections, notifications, clock, indexes, plans."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import timedelta
from typing import Final

from ultijobs._queue.health import Health, Snapshot, TableHealth
from ultijobs.inspection.doctor.facts import Facts, Thresholds
from ultijobs.inspection.doctor.symptoms import Check, Symptom
from ultijobs.inspection.doctor.wording import age, line, many

__all__ = ["DATABASE"]

_MS: Final = timedelta(milliseconds=1)


def _snapshots(facts: Facts, limits: Thresholds) -> list[Symptom]:
    return [
        Symptom(
            "X_SNAPSHOT_OLD",
            "error" if session.age_ms * _MS > limits.snapshot_urgent else "warning",
            f"{_named(session)} has a transaction open for {age(session.age_ms * _MS)} ({session.state}): "
            "dead rows stay until it ends",
            f"rollback prepared '{session.query}'"
            if session.pid == 0
            else f"select pg_terminate_backend({session.pid})",
            at=session.query if session.pid == 0 else f"pid {session.pid}",
        )
        for session in (facts.health.snapshots if facts.health else ())
        if session.age_ms * _MS > (limits.idle_transaction if session.state.startswith("idle in") else limits.snapshot)
    ]


def _named(session: Snapshot) -> str:
    if session.pid == 0:
        return f"the prepared transaction {session.query}"
    return f"pid {session.pid}" + (f' of "{session.application}"' if session.application else "")


def _bloat(facts: Facts, limits: Thresholds) -> list[Symptom]:
    health = facts.health
    if health is None:
        return []
    return [
        Symptom(
            "X_TABLE_BLOATED",
            "warning",
            f"{table.table} has {many(table.dead, 'dead row')} beside {table.live:,} live ones, "
            + ("never vacuumed" if table.last_autovacuum is None else "last vacuumed ")
            + ("" if table.last_autovacuum is None else f"{age(facts.now - table.last_autovacuum)} ago"),
            f"vacuum (analyze) {table.table}",
            at=table.table,
        )
        for table in health.tables
        if table.dead >= max(limits.dead_rows, table.live) and _unvacuumed(table, facts, limits)
    ]


def _unvacuumed(table: TableHealth, facts: Facts, limits: Thresholds) -> bool:
    return table.last_autovacuum is None or facts.now - table.last_autovacuum > limits.vacuum


def _blocked(facts: Facts, limits: Thresholds) -> list[Symptom]:
    return [
        Symptom(
            "X_STATEMENT_BLOCKED",
            "error",
            f'pid {wait.pid} of "{wait.application}" waits {age(wait.waited_ms * _MS)} for a lock of '
            f"{', '.join(f'pid {pid}' for pid in wait.by) or 'a session that has just ended'}",
            f"select pg_terminate_backend({wait.by[0]})" if wait.by else line("doctor"),
            at=f"pid {wait.pid}",
        )
        for wait in (facts.health.waits if facts.health else ())
        if wait.waited_ms * _MS > limits.blocked
    ]


def _connections(facts: Facts, limits: Thresholds) -> list[Symptom]:
    health = facts.health
    if health is None or health.connections < limits.connections * health.connection_limit or not health.connections:
        return []
    most = ", ".join(f"{name or 'unnamed'} {number}" for name, number in list(health.applications.items())[:3])
    cause = f"{health.connections} of {health.connection_limit} connections are taken, most by {most}"
    return [Symptom("X_CONNECTIONS_SCARCE", "error", cause, "raise max_connections, or put a pooler in front")]


def _notify_queue(facts: Facts, limits: Thresholds) -> list[Symptom]:
    health = facts.health
    if health is None or health.notify_queue < limits.notify_queue:
        return []
    cause = f"the queue of notifications is {health.notify_queue:.0%} full; once it is full, commits that notify fail"
    fix = "end the session that listens inside of a long transaction: " + _oldest(health)
    return [Symptom("X_NOTIFY_QUEUE_FULL", "error", cause, fix)]


def _oldest(health: Health) -> str:
    return f"select pg_terminate_backend({health.snapshots[0].pid})" if health.snapshots else line("doctor")


def _clock(facts: Facts, limits: Thresholds) -> list[Symptom]:
    skew = None if facts.health is None else facts.health.clock_skew_ms
    if skew is None or abs(skew) * _MS < limits.clock:
        return []
    cause = (
        f"this machine's clock is {abs(skew) / 1000:.1f} s {'ahead of' if skew > 0 else 'behind'} the database's; "
        "jobs go by the database's, logs and run_at by this one"
    )
    return [Symptom("X_CLOCK_SKEWED", "warning", cause, "timedatectl set-ntp true")]


def _invalid(facts: Facts, _: Thresholds) -> list[Symptom]:
    return [
        Symptom(
            "X_INDEX_INVALID",
            "error",
            f"index {index} is invalid: it is kept up to date and never used",
            f"reindex index concurrently {index}",
            at=index,
        )
        for index in (facts.health.invalid_indexes if facts.health else ())
    ]


def _plans(facts: Facts, _: Thresholds) -> list[Symptom]:
    return [
        Symptom("X_PLAN_DETOUR", "error", f"{detour}: each costs what the table holds", line("migrate"), at=detour)
        for detour in facts.detours or ()
    ]


DATABASE: Final[Sequence[Check]] = (
    Check("transactions", "X_SNAPSHOT_OLD", "A transaction has been open for long", "health", _snapshots),
    Check("bloat", "X_TABLE_BLOATED", "A table has more dead rows than live ones", "health", _bloat),
    Check("locks", "X_STATEMENT_BLOCKED", "A statement waits for a lock", "health", _blocked),
    Check("connections", "X_CONNECTIONS_SCARCE", "Hardly any connection is left", "health", _connections),
    Check("notifications", "X_NOTIFY_QUEUE_FULL", "The queue of notifications fills up", "health", _notify_queue),
    Check("clock", "X_CLOCK_SKEWED", "This machine's clock and the database's differ", "health", _clock),
    Check("indexes", "X_INDEX_INVALID", "An index is invalid", "health", _invalid),
    Check("claim-plans", "X_PLAN_DETOUR", "Claims do not go by their index", "detours", _plans),
)
