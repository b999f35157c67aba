"""The help of a screen, made from the registry of actions, in sections that can be searched."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from ultijobs_tui.actions import ACTIONS, VIEWS, KeyAction, all_keys
from ultijobs_tui.keymap import DEFAULT, Keymap
from ultijobs_tui.table import Line, Span, Tone, line

__all__ = ["EXPLAINED_AT", "Section", "help_lines", "help_sections", "keys_markdown", "sought"]

EXPLAINED_AT: Final = 31
"""Letters of a line in front of what it says."""
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
    ("↻ ☾ ✉", "a step that was replayed, sleeps, waits for an event"),
    ("16/16 +1", "slots in use; beyond them: has just ended, or its worker is gone"),
    ("↑ ↓", "more than a minute ago, less"), ("812  10,000+  ~2.1M", "exact, at least, an estimate"),
    ("~ before an age", "by this machine's clock, which differs from the database's"),
)  # fmt: skip
_GREY: Final = (
    ("(r Retry)", "cannot be done now: its line above says why, and so does pressing it"),
    ("read-only", "--read-only was given, or the database takes no writes"),
    ("lost, replay", "nothing is written without a connection, nor from a moment in the past"),
    ("not for this row", "a state that the act makes no sense for, or nothing is under the cursor"),
)
_FILTER: Final = (
    ("state:dead,failed", "any of these states: ready delayed running suspended done failed dead cancelled"),
    ("queue: job: tenant: worker: key: id: run:", "by name; a trailing * is a prefix, ids by their tail"),
    ("reason: code: fp:", "why it stopped: stop reason, error code, fingerprint"),
    ("age:>10m", "since due, since start, or since the stop"),
    ("-queue:bulk", "not"),
    ('err~"timed out"  input.x:1', "reads rows one by one; needs an indexed word beside it"),
)
_OWN: Final = (
    ("~/.config/ultijobs/keys.toml", 'keys by the id on the right: export = "ctrl+e"'),
    ("pyproject.toml", "the same under [tool.ultijobs.keys]; the file above wins"),
)


@dataclass(frozen=True, slots=True)
class _Item:
    shown: Line
    keys: tuple[str, ...] = ()

    def says(self, words: Iterable[str]) -> bool:
        text = "".join(span.text for span in (*self.shown.left, *self.shown.right)).casefold()
        return all(word in text for word in words)


@dataclass(frozen=True, slots=True)
class Section:
    title: str
    note: str
    items: tuple[_Item, ...]


def help_sections(view: str, refusal: Callable[[KeyAction], str | None], keys: Keymap = DEFAULT) -> tuple[Section, ...]:
    """What works on this screen, what works everywhere, and what there is to know about both."""
    order = list(_GROUPS)
    actions = sorted(keys.of(view), key=lambda action: order.index(action.group))
    here = tuple(_action(a, refusal(a)) for a in actions if a.views)
    everywhere = tuple(_action(a, refusal(a)) for a in actions if not a.views)
    return (
        Section("this screen", "each act shows a plan first; upper case stops work", here),
        Section("everywhere", "", everywhere),
        Section("filter words", "blank and · comma or · - not", _pairs(_FILTER)),
        Section("signs", "", _pairs(_GLYPHS)),
        Section("why a key is grey", "", _pairs(_GREY)),
        Section("keys of your own", "", _pairs(_OWN)),
    )


def sought(sections: Sequence[Section], text: str) -> list[Line]:
    """The lines that hold each of the words of `text`, under their titles; a key alone is the line of that key."""
    words = text.casefold().split()
    exact = any(text in item.keys for section in sections for item in section.items)
    found: list[Line] = []
    for section in sections:
        items = [item for item in section.items if (text in item.keys if exact else item.says(words))]
        if items:
            title = (Span(" "), Span(section.title, Tone.STRONG), Span(f"   {section.note}", Tone.MUTED))
            found += [*([line()] if found else []), line(*title), *(item.shown for item in items)]
    return found or [line(" ", Span(f"no key and no word says {text!r}", Tone.WARN))]


def help_lines(view: str, refusal: Callable[[KeyAction], str | None], keys: Keymap = DEFAULT) -> list[Line]:
    """All of it."""
    return sought(help_sections(view, refusal, keys), "")


def _action(action: KeyAction, reason: str | None) -> _Item:
    keys = Span(f"   {all_keys(action):<12}", Tone.MUTED if reason else Tone.KEY)
    label = Span(f"{action.label:<16}", Tone.MUTED if reason else Tone.PLAIN)
    said = Span(f"not now: {reason}", Tone.WARN) if reason else Span(action.help, Tone.MUTED)
    return _Item(line(keys, label, said, right=(Span(f"{action.id} ", Tone.MUTED),)), tuple(all_keys(action).split()))


def _pairs(told: Iterable[tuple[str, str]]) -> tuple[_Item, ...]:
    return tuple(_Item(line(Span(f"   {word:<28}", Tone.ACCENT), Span(said, Tone.MUTED))) for word, said in told)


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
