"""The help of a screen, made from the registry of actions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Final

from ultijobs_tui.actions import ACTIONS, VIEWS, KeyAction, all_keys
from ultijobs_tui.keymap import DEFAULT, Keymap
from ultijobs_tui.table import Line, Span, Tone, line

__all__ = ["help_lines", "keys_markdown"]

_GROUPS: Final = {
    "act": "acts: each shows a plan first",
    "list": "the list",
    "look": "look closer",
    "move": "move",
    "tabs": "screens",
}
_GLYPHS: Final = (
    ("!!", "urgent"), ("!", "wants a look"), ("·", "for information"), ("??", "could not be read"), (">", "the cursor"),
    ("*", "marked"), ("+", "new in this list"), ("✓ ✗ ▶ c", "done, stopped short, not ended yet, cancelled"),
    ("– ! ·", "of a task's slots: skipped, missed, removed since"),
    ("(r Retry)", "cannot be done now; press it to learn why"),
)  # fmt: skip
_FILTER: Final = (
    ("state:dead,failed", "any of these states: ready delayed running suspended done failed dead cancelled"),
    ("queue: job: tenant: worker: key: id: run:", "by name; a trailing * is a prefix, ids by their tail"),
    ("reason: code: fp:", "why it stopped: stop reason, error code, fingerprint"),
    ("age:>10m", "since due, since start, or since the stop"),
    ("-queue:bulk", "not"),
    ('err~"timed out"  input.x:1', "reads rows one by one; needs an indexed word beside it"),
)
_OWN: Final = '[tool.ultijobs.keys] of pyproject.toml, or ~/.config/ultijobs/keys.toml: export = "ctrl+e"'


def help_lines(view: str, refusal: Callable[[KeyAction], str | None], keys: Keymap = DEFAULT) -> list[Line]:
    lines: list[Line] = []
    actions = keys.of(view)
    for group, title in _GROUPS.items():
        members = [a for a in actions if a.group == group]
        if not members:
            continue
        lines.append(line(" ", Span(title, Tone.STRONG)))
        lines += [_action(action, refusal(action)) for action in members]
        lines.append(line())
    lines.append(line(" ", Span("filter words", Tone.STRONG), Span("   blank and · comma or · - not", Tone.MUTED)))
    lines += [_pair(word, said) for word, said in _FILTER]
    lines += [line(), line(" ", Span("signs", Tone.STRONG))]
    lines += [_pair(sign, said) for sign, said in _GLYPHS]
    lines += [line(), line(" ", Span("own keys", Tone.STRONG), Span(f"   {_OWN}", Tone.MUTED))]
    return lines


def _action(action: KeyAction, reason: str | None) -> Line:
    keys = Span(f"   {all_keys(action):<12}", Tone.MUTED if reason else Tone.KEY)
    label = Span(f"{action.label:<16}", Tone.MUTED if reason else Tone.PLAIN)
    said = Span(f"not now: {reason}", Tone.WARN) if reason else Span(action.help, Tone.MUTED)
    return line(keys, label, said)


def _pair(word: str, said: str) -> Line:
    return line(Span(f"   {word:<28}", Tone.ACCENT), Span(said, Tone.MUTED))


def keys_markdown() -> str:
    """The same as a page of the documentation."""
    lines = [
        "# Keys of the cockpit",
        "",
        "Made from the registry that the cockpit itself is made from. An act always shows a plan first;",
        "upper case stops work.",
        "",
        "A key of your own is written by the id of its action, in pyproject.toml or, without the first line, in",
        "`~/.config/ultijobs/keys.toml`, which wins. Two actions on one key of a screen are refused by their names.",
        "",
        "```toml",
        "[tool.ultijobs.keys]",
        'export = "ctrl+e"',
        '"history.back" = ["[", "backspace"]',
        "```",
    ]
    for group, title in _GROUPS.items():
        lines += ["", f"## {title[0].upper()}{title[1:]}", "", "| key | does | where | id |", "|---|---|---|---|"]
        for action in ACTIONS:
            if action.group == group:
                where = ", ".join(VIEWS[view] for view in action.views) or "everywhere"
                keys = " ".join(f"`{key}`" for key in all_keys(action).split())
                lines.append(f"| {keys} | **{action.label}**: {action.help} | {where} | `{action.id}` |")
    return "\n".join(lines) + "\n"
