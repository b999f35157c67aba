"""One worker process whole: who it is, whether it makes progress, what it holds, what it knows, what to press."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Final

from ultijobs.inspection import Count, Leader, LeaseRow, WorkerRow
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.look import Look
from ultijobs_tui.present.workers import held_by, lag_tone
from ultijobs_tui.table import Line, Span, Tone, line, rule

__all__ = ["leader_words", "worker_panel"]

_NAMES_SHOWN: Final = 6
_ELSEWHERE: Final = "its jobs run elsewhere as soon as their leases end"


def _code_words(workers: Sequence[WorkerRow]) -> list[str | Span]:
    """Which code the live processes run; more than one version is worth a look."""
    versions = Counter(w.code_version or "not told" for w in workers if not w.ended)
    if not any(w.code_version for w in workers if not w.ended):
        return []
    told = ", ".join(f"{version} x{n}" for version, n in versions.most_common(4))
    return [Span("code ", Tone.MUTED), Span(told, Tone.WARN if len(versions) > 1 else Tone.PLAIN)]


def leader_words(leader: Leader | None, now: datetime) -> list[str | Span]:
    """Who leads the schedule, and for how long yet."""
    if leader is None:
        return [Span("scheduler ", Tone.MUTED), "none yet"]
    if leader.lease_until <= now:
        return [Span("scheduler ", Tone.MUTED), Span(f"NONE for {fmt.age_between(leader.lease_until, now)}", Tone.WARN),
                f" (last {leader.holder})"]  # fmt: skip
    left = fmt.age(fmt.ms_between(now, leader.lease_until))
    return [Span("scheduler ", Tone.MUTED), leader.holder, Span(f" lease {left}", Tone.MUTED)]


def worker_panel(worker: WorkerRow | None, frame: Frame | None, look: Look) -> list[Line]:
    """The process under the cursor whole, and what can be done with it."""
    if worker is None or frame is None:
        return []
    held = held_by(frame.leases or ()).get(worker.worker_id, [])
    versions = _code_words(frame.workers or ())
    rate = line(
        Span(" settled ", Tone.MUTED), _counters(worker.counters),
        Span("   since ", Tone.MUTED), fmt.clock(worker.started_at, now=look.now),
    )  # fmt: skip
    return [
        rule(worker.worker_id, worker.state),
        _who(worker),
        _progress(worker, look),
        rate,
        _in_flight(held, look),
        _knows(worker, frame.overview.unserved_names if frame.overview else {}),
        line(" ", *leader_words(frame.leader, look.now), "   ", *versions)
        if "leader" not in frame.failures
        else line(" ", *versions),
        _advice(worker, held, look),
    ]


def _who(worker: WorkerRow) -> Line:
    return line(
        Span(" process ", Tone.MUTED), f"{worker.host} pid {worker.pid}",
        Span("   release ", Tone.MUTED), worker.version,
        Span("   code ", Tone.MUTED), worker.code_version or fmt.NEVER,
        Span("   environment ", Tone.MUTED), worker.environment or fmt.NEVER,
        Span("   queues ", Tone.MUTED), ", ".join(worker.queues) or fmt.NEVER,
    )  # fmt: skip


def _progress(worker: WorkerRow, look: Look) -> Line:
    free = fmt.NEVER if worker.ended else f"{worker.free_slots} of {worker.concurrency}"
    listens = Span("yes", Tone.PLAIN) if worker.listening else Span("no: it polls", Tone.WARN)
    return line(
        Span(" claimed ", Tone.MUTED), _ago(worker.claimed_at, look),
        Span("   settled ", Tone.MUTED), _ago(worker.settled_at, look),
        Span("   beat ", Tone.MUTED), _ago(worker.heartbeat_at, look),
        Span("   loop lag ", Tone.MUTED), Span(fmt.took(worker.loop_lag_ms), lag_tone(worker)),
        Span("   free slots ", Tone.MUTED), free,
        Span("   listens ", Tone.MUTED), listens,
        Span("   memory ", Tone.MUTED), fmt.size(worker.rss_bytes),
    )  # fmt: skip


def _ago(at: datetime | None, look: Look) -> str:
    return "never" if at is None else look.since(at) if look.absolute else f"{look.since(at)} ago"


def _counters(counters: Mapping[str, int]) -> str:
    told = [f"{name} {count:,}" for name, count in counters.items() if count]
    return " · ".join(told) or "nothing yet"


def _in_flight(held: Sequence[LeaseRow], look: Look) -> Line:
    if not held:
        return line(Span(" holds ", Tone.MUTED), "no job")
    longest = held[0]
    late = sum(lease.expired for lease in held)
    parts: list[str | Span] = [f"{len(held)} job{'' if len(held) == 1 else 's'}"]
    if late:
        parts.append(Span(f", {late} past {'its' if late == 1 else 'their'} lease", Tone.BAD))
    step = f" in step {longest.running_step}" if longest.running_step else ""
    parts += [Span("   longest ", Tone.MUTED), f"{longest.name} {look.since(longest.started_at, exact=True)}{step}"]
    return line(Span(" holds ", Tone.MUTED), *parts)


def _knows(worker: WorkerRow, unserved: Mapping[str, Count]) -> Line:
    names = sorted(worker.names)
    more = f" and {len(names) - _NAMES_SHOWN} more" if len(names) > _NAMES_SHOWN else ""
    parts: list[str | Span] = [", ".join(names[:_NAMES_SHOWN]) or "no job", more]
    if unserved:
        told = ", ".join(f"{name} ({fmt.short_count(count)} due)" for name, count in sorted(unserved.items())[:3])
        parts.append(Span(f"   no worker knows {told}", Tone.WARN))
    return line(Span(" knows ", Tone.MUTED), *parts)


def _advice(worker: WorkerRow, held: Sequence[LeaseRow], look: Look) -> Line:
    enter: list[str | Span] = [Span(look.key("open"), Tone.KEY), " its jobs   "] if held else []
    if worker.ended:
        said = "it left nothing behind"
        if held:
            lapsed = all(lease.expired for lease in held)
            said = "any worker of the application takes them over" if lapsed else _ELSEWHERE
        return line(Span(" press ", Tone.MUTED), *enter, Span(said, Tone.MUTED))
    if worker.state == "wedged":
        why = "its loop stands or a body ignores its deadline: stack in its log, jobs.worker.loop-blocked"
        return line(Span(" press ", Tone.MUTED), *enter, Span(why, Tone.WARN))
    if worker.state in {"draining", "drained"}:
        return line(Span(" press ", Tone.MUTED), Span(look.key("resume"), Tone.KEY), " claim again   ", *enter)
    return line(Span(" press ", Tone.MUTED), Span(look.key("drain"), Tone.KEY), " drain   ", *enter)
