"""The answer to "why is this job not running?"."""

from __future__ import annotations

from ultijobs.inspection import Why
from ultijobs_tui import format as fmt
from ultijobs_tui.look import Look
from ultijobs_tui.present.plan import command_lines
from ultijobs_tui.table import Line, Span, Tone, line

__all__ = ["why_lines"]


def why_lines(why: Why | None, failure: str | None, look: Look, width: int) -> list[Line]:
    if why is None:
        return [line(" ", Span(failure or "reading…", Tone.WARN if failure else Tone.MUTED))]
    waits = str(why.waiting_on) if why.waiting_on is not None else "nothing"

    def fact(label: str, text: str, tone: Tone = Tone.PLAIN) -> Line:
        return line(Span(f" {label:<10} ", Tone.MUTED), Span(text, tone))

    lines = [
        fact("job", fmt.short_id(why.id)),
        fact("state", why.state, Tone.STRONG),
        fact("waits for", waits, Tone.STRONG),
        fact("since", f"{look.since(why.since, exact=True)}{'' if look.absolute else ' ago'}"),
        fact("holder", why.holder or "nobody"),
    ]
    return [*lines, *command_lines(why.frees, width, label="frees it")]
