"""The rows that every screen has: state bar, tabs, footer."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Final

from ultijobs.inspection import Overview
from ultijobs_tui import format as fmt
from ultijobs_tui.actions import KeyAction, key_name
from ultijobs_tui.keymap import Keymap
from ultijobs_tui.link import FIX, LinkState
from ultijobs_tui.look import Look
from ultijobs_tui.table import Line, Span, Tone, line

__all__ = ["Status", "footer_line", "lost_lines", "replay_line", "stale_line", "state_line", "tabs_line"]


_TAB_SHORT: Final = 3
"""Letters of a tab on a narrow screen."""


@dataclass(frozen=True, slots=True)
class Status:
    """The cockpit itself, as the first row tells it."""

    title: str
    read_only: bool
    state: LinkState
    tenant: str | None = field(default=None, kw_only=True)
    shown: datetime | None = field(default=None, kw_only=True)
    """The moment of a replay."""
    recorded: bool = field(default=False, kw_only=True)
    clock: datetime | None
    interval: float = 1.0
    data_age: float | None = None
    db_ms: float = 0.0
    share: float = 0.0
    marks: int = 0
    actor: str = ""
    lost_for: float = 0.0
    retry: int = 0
    retry_in: float = 0.0
    error: str = ""


def state_line(status: Status, look: Look) -> Line:
    """Row 1: where we are, whether it can be written, how old the data is and what reading it costs."""
    mode = Span("ro", Tone.WARN) if status.read_only else Span("rw", Tone.MUTED)
    title = _tail(status.title, 28 if look.wide else 16)
    left: list[str | Span] = [" ", Span("ultijobs", Tone.STRONG), "  ", title, "  ", mode, "  "]
    if status.tenant is not None:
        left += [Span(f"tenant {_head(status.tenant, 24 if look.wide else 12)}", Tone.ACCENT), "  "]
    now = "" if status.clock is None else f"{status.clock:%H:%M:%S}Z "
    if status.state is LinkState.LOST:
        left += [Span(f"✗ LOST {_mmss(status.lost_for)}", Tone.BAD), "  "]
        if status.data_age is not None:
            left.append(f"data {fmt.age(status.data_age * 1000)} old  ")
        left.append(f"retry {status.retry} in {status.retry_in:.0f}s")
        if look.wide:
            left += [" (", Span(look.key("now"), Tone.KEY), " now)  ", Span("acts off", Tone.WARN)]
        return line(*left, right=(now,))
    left.append(_state(status))
    if status.state is LinkState.REPLAY:
        return line(*left, right=(now,))
    if look.wide:
        if status.data_age is not None:
            left.append(f"  data {fmt.age(status.data_age * 1000)}")
        left.append(Span(f"  db {status.db_ms:.0f}ms {status.share * 100:.1f}%", Tone.MUTED))
        if status.marks:
            left += ["  ", Span(f"{status.marks} marked", Tone.ACCENT)]
        return line(*left, right=(Span(f"{status.actor}   ", Tone.MUTED), now))
    left.append(Span(f"  db {status.db_ms:.0f}ms", Tone.MUTED))
    return line(*left, right=(now,))


def lost_lines(status: Status) -> tuple[Line, Line]:
    """In place of tabs and crumb while the connection is lost: what failed, in its own words, and what fixes it."""
    said, _, fix = status.error.partition(FIX)
    told = (Span(" fix: ", Tone.MUTED), Span(fix, Tone.PLAIN)) if fix else ()
    return line(" ", Span(said, Tone.BAD)), line(*told)


def replay_line(status: Status, look: Look) -> Line:
    """In place of the crumb while the past is shown: which moment it is, and the ways through it."""
    if status.shown is None:
        return line()
    when = f"{status.shown:%Y-%m-%d %H:%M:%S}Z"
    keys: list[str | Span] = [Span(" ┄┄ ", Tone.MUTED), Span(when, Tone.WARN), "  "]
    ways = {"back": "back", "forward": "forward", "minute_back": "−1m", "minute_forward": "+1m"}
    for way, word in ways.items():
        keys += [Span(look.key(f"time.{way}"), Tone.KEY), f" {word}  "]
    if not status.recorded:
        keys += [Span(look.key("freeze"), Tone.KEY), " live  "]
    return line(*keys, right=(Span("acts off ", Tone.WARN),) if look.wide else ())


def stale_line(failures: Mapping[str, str], good: datetime) -> Line:
    """In place of the crumb while a part cannot be read: what is shown of it is the last good answer."""
    told = " · ".join(f"{part}: {cause.partition(FIX)[0]}" for part, cause in failures.items())
    return line(" ", Span(f"?? {told}", Tone.WARN), right=(Span(f"shown as of {good:%H:%M:%S} ", Tone.WARN),))


def tabs_line(view: str, overview: Overview | None, look: Look) -> Line:
    """Row 2: the screens by key, the open one in brackets, and how many things are stuck."""
    right: tuple[Span, ...] = ()
    if overview is not None:
        urgent = sum(1 for stuck in overview.stuck if stuck.severity == 2)  # noqa: PLR2004 - Stuck.severity
        wants = sum(1 for stuck in overview.stuck if stuck.severity == 1)
        right = (
            Span(f"!! {urgent}", Tone.BAD if urgent else Tone.MUTED),
            Span(f"  ! {wants} ", Tone.WARN if wants else Tone.MUTED),
        )
    room = look.width - sum(len(span.text) for span in right) - 1
    for most, gap in ((None, 3), (None, 2), (None, 1), (_TAB_SHORT, 1)):
        left = _tabs(view, look.keys, most, gap)
        if sum(len(span.text) for span in left) <= room:
            break
    return Line(left, right)


def _tabs(view: str, keys: Keymap, most: int | None, gap: int) -> tuple[Span, ...]:
    """The brackets of the open tab take the place of the blanks around it."""
    spans: list[Span] = []
    for n, tab in enumerate(keys.tabs()):
        here = tab.id == f"tab.{view}"
        name = f"{key_name(tab)} {tab.label[:most]}"
        before = 1 if n == 0 else gap
        if here:
            spans += [Span(" " * (before - 1)), Span(f"[{name}]", Tone.ACTIVE, press=tab.id)]
        else:
            after_open = spans and spans[-1].tone is Tone.ACTIVE
            spans += [Span(" " * (before - 1 if after_open else before)), Span(name, press=tab.id)]
    return tuple(span for span in spans if span.text)


def footer_line(view: str, refusal: Callable[[KeyAction], str | None], look: Look) -> Line:
    """The last row: what the keys do here, the most wanted first; what cannot be done now stays, in brackets."""
    helped = Span(f" {look.key('help')} Help ", Tone.PLAIN, press="help")
    room = look.width - len(helped.text) - 1
    parts: list[Span] = []
    for action in look.keys.footer(view):
        if action.id == "help":
            continue
        greyed = refusal(action) is not None
        size = len(key_name(action)) + len(action.label) + (5 if greyed else 3)
        if size > room:
            break
        room -= size
        parts += _key(action, greyed=greyed)
    return line(*parts, right=(helped,))


def _key(action: KeyAction, *, greyed: bool) -> list[Span]:
    name = key_name(action)
    if greyed:
        return [Span(f" ({name} {action.label}) ", Tone.MUTED, press=action.id)]
    return [Span(f" {name}", Tone.KEY, press=action.id), Span(f" {action.label} ", press=action.id)]


def _state(status: Status) -> Span:
    if status.state is LinkState.REPLAY and status.shown is not None:
        behind = "" if status.clock is None else f"  −{fmt.exact_age(fmt.ms_between(status.shown, status.clock))}"
        return Span(f"◀ REPLAY {status.shown:%H:%M:%S}Z{behind}", Tone.WARN)
    if status.state is LinkState.FROZEN:
        return Span("━ FROZEN (f live)", Tone.WARN)
    if status.state is LinkState.CONNECTING:
        return Span("▷ CONNECTING", Tone.WARN)
    return Span(f"● LIVE {round(status.interval, 1):g}s", Tone.GOOD)


def _tail(text: str, width: int) -> str:
    return text if len(text) <= width else "…" + text[-(width - 1) :]


def _head(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def _mmss(seconds: float) -> str:
    minutes, rest = divmod(int(seconds), 60)
    return f"{minutes:02d}:{rest:02d}"
