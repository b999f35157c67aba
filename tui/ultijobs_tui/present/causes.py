"""Dead letters by cause: one row per stop reason and fingerprint, and what is known about it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ultijobs.inspection import Cause
from ultijobs_tui import format as fmt
from ultijobs_tui.frame import Frame
from ultijobs_tui.history import History
from ultijobs_tui.look import Look
from ultijobs_tui.paint import folded
from ultijobs_tui.present.filters import quoted
from ultijobs_tui.table import Column, Line, Row, Span, Table, Tone, cell, line, rule

__all__ = ["cause_key", "cause_panel", "cause_table", "cause_where"]

_RATES: Final = 8
_ERROR_ROWS: Final = 2
"""For an error that the title has no room for."""


def cause_key(cause: Cause) -> str:
    return f"{cause.stop_reason}/{cause.fingerprint}/{cause.error_code}"


def cause_where(cause: Cause, within: str = "") -> str | None:
    """The filter that lists the jobs of a cause; None when it has neither fingerprint nor code to find them by."""
    if cause.fingerprint is None and cause.error_code is None:
        return None
    words = [within or "state:dead,failed"]
    if cause.stop_reason is not None:
        words.append(f"reason:{cause.stop_reason}")
    words.append(
        f"fp:{cause.fingerprint}" if cause.fingerprint is not None else f"code:{quoted(cause.error_code or '')}"
    )
    return " ".join(words)


def short_fingerprint(cause: Cause) -> str:
    """What a cause is called on screens."""
    return cause.fingerprint[:4] if cause.fingerprint else cause.error_code or "no error"


def cause_table(frame: Frame, look: Look, *, where: str = "") -> Table:
    columns = (
        Column("COUNT", 7, 9, align="right"),
        Column("STOP REASON", 11 if look.wide else 9, 18),
        Column("FINGERPRINT · ERROR", 24, grow=True),
        Column("STEP", 6, 14, drop=5),
        Column("JOBS", 4, align="right", drop=4),
        Column("TENANTS", 7, align="right", drop=3),
        Column("FIRST", 8, 11, align="right", drop=2),
        Column("LAST", 6, align="right"),
        Column("RETRIED→DIED", 12, align="right", drop=1),
    )
    causes = frame.causes
    if causes is None:
        why = frame.failures.get("causes")
        return Table(columns, (), (line(Span(f"?? {why}" if why else "reading…", Tone.WARN if why else Tone.MUTED)),))
    rows = tuple(_row(cause, look) for cause in sorted(causes, key=lambda c: (-c.count.value, cause_key(c))))
    empty = line(Span("No dead letters", Tone.GOOD), f" match {where}" if where else ".")
    return Table(columns, rows, (empty,))


def _row(cause: Cause, look: Look) -> Row:
    retried = f"{cause.retried}→{cause.died_again}" if cause.retried else "0"
    name, said = short_fingerprint(cause), first_line(cause.error) or cause.error_code or "no error recorded"
    text = said if said.startswith(name) else f"{name} {said}"
    return Row(
        cause_key(cause),
        (
            cell(fmt.count(cause.count), Tone.STRONG),
            cell(cause.stop_reason or fmt.NEVER, Tone.BAD if cause.stop_reason == "terminal" else Tone.WARN),
            cell(text),
            cell(cause.step or fmt.NEVER, Tone.MUTED),
            cell(str(len(cause.jobs)), Tone.MUTED),
            cell(str(cause.tenants), Tone.MUTED),
            cell(fmt.clock(cause.first_at, now=look.now), Tone.MUTED),
            cell(look.since(cause.last_at)),
            cell(retried, Tone.BAD if cause.died_again else Tone.MUTED),
        ),
    )


def cause_panel(cause: Cause, history: History, look: Look) -> list[Line]:
    """First and last, whom it hits, where it fails, what became of those retried, and what to press."""
    tenants = f" · {cause.tenants} tenant{'' if cause.tenants == 1 else 's'}" if cause.tenants else ""
    name, error = short_fingerprint(cause), first_line(cause.error) or cause.error_code or "no error recorded"
    hit = f"{fmt.count(cause.count)}{tenants}"
    lines = [rule(f"{name}  {error}", hit)]
    if len(folded(lines[0], look.width)) > 1:
        lines = [rule(name, hit), *folded(line(" ", Span(error, Tone.STRONG)), look.width, most=_ERROR_ROWS)]
    lines.append(
        line(
            Span(" first ", Tone.MUTED), fmt.clock(cause.first_at, now=look.now),
            Span("   last ", Tone.MUTED), fmt.clock(cause.last_at, now=look.now),
            *_rate(cause, history),
            Span("   jobs ", Tone.MUTED), shares(cause.jobs),
            Span("   queue ", Tone.MUTED), shares(cause.queues),
        )
    )  # fmt: skip
    code = cause.error_code or fmt.NEVER
    lines.append(
        line(
            Span(" stopped ", Tone.MUTED), cause.stop_reason or fmt.NEVER,
            Span("   code ", Tone.MUTED), code,
            Span("   fails at step ", Tone.MUTED), cause.step or fmt.NEVER,
        )
    )  # fmt: skip
    lines += [line(" ", *_retries(cause)), line(Span(" sample ", Tone.MUTED), samples(cause))]
    lines.append(
        line(
            Span(" press ", Tone.MUTED), Span(look.key("canary"), Tone.KEY), " canary 1   ",
            Span(look.key("retry"), Tone.KEY), f" retry {fmt.count(cause.count)}   ",
            Span(look.key("open"), Tone.KEY), " list   ",
            Span(look.key("pager"), Tone.KEY), " traceback   ",
            Span(look.key("copy.id"), Tone.KEY), f" copy {short_fingerprint(cause)}",
        )
    )  # fmt: skip
    return lines


def _rate(cause: Cause, history: History) -> list[Span]:
    rate = history.dying_per_minute(cause)
    if rate is None:
        return []
    bars = fmt.spark(history.dying(cause, _RATES), _RATES)
    return [
        Span("   rate ", Tone.MUTED),
        Span(f"{rate:,.0f}/min ", Tone.BAD if rate else Tone.PLAIN),
        Span(bars, Tone.BAD),
    ]


def _retries(cause: Cause) -> list[str | Span]:
    if cause.stop_reason == "terminal":
        return [Span("classified terminal: every attempt fails the same way until the code changes", Tone.WARN)]
    if not cause.retried:
        return [Span("retried ", Tone.MUTED), "none yet: a canary tells whether it works again"]
    share = round(100 * cause.died_again / cause.retried)
    facts = f"{cause.retried} → died again {cause.died_again} ({share}%)"
    advice = (
        Span("   ⇒ retry is not working yet: canary first", Tone.WARN)
        if cause.died_again * 2 > cause.retried
        else Span("   ⇒ retry works", Tone.GOOD)
    )
    return [Span("retried ", Tone.MUTED), facts, advice]


def samples(cause: Cause) -> str:
    return "  ".join(fmt.short_id(job) for job in cause.sample[:4]) or fmt.NEVER


def shares(parts: Mapping[str, int], most: int = 3) -> str:
    """`charge_invoice 3,880 · refund 22`, the largest first."""
    ranked = sorted(parts.items(), key=lambda item: (-item[1], item[0]))
    text = " · ".join(f"{name} {n:,}" if len(parts) > 1 else name for name, n in ranked[:most])
    return f"{text} · {len(ranked) - most} more" if len(ranked) > most else text or fmt.NEVER


def first_line(text: str | None) -> str:
    return "" if not text else text.strip().split("\n", 1)[0]
