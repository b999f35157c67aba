"""What can be typed after `:` beside the names of actions: `job 1a2b3c`, `queue billing`, `at 14:02`. Pure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Final

__all__ = ["ALONE", "VERBS", "Command", "commands"]

VERBS: Final[Mapping[str, tuple[str, str]]] = {
    "job": ("ID", "open a job by its id, or by the last 6 of its digits"),
    "queue": ("NAME", "go to a queue"),
    "worker": ("NAME", "go to a worker"),
    "where": ("FILTER", "list the jobs of a filter"),
    "dead": ("FILTER", "list the dead letters of a filter"),
    "tenant": ("NAME", "narrow every screen to a tenant; alone: all tenants"),
    "at": ("TIME", "look back: 14:02, 14:02:11, or an instant"),
    "theme": ("NAME", "other colours, until you leave"),
    "refresh": ("TIME", "another interval between two looks: 500ms, 5s"),
}
ALONE: Final = frozenset({"tenant"})
"""These mean something without an argument."""


@dataclass(frozen=True, slots=True)
class Command:
    verb: str
    argument: str
    help: str

    @property
    def text(self) -> str:
        return f"{self.verb} {self.argument}".strip()


def commands(typed: str, known: Mapping[str, Sequence[str]]) -> list[Command]:
    """What `typed` can mean, the nearest first. `known` has names that exist, by verb."""
    word, _, rest = typed.strip().partition(" ")
    argument = rest.strip()
    found: list[Command] = []
    for verb, (_, told) in VERBS.items():
        if not verb.startswith(word.casefold()) or not word:
            continue
        names = [name for name in known.get(verb, ()) if argument.casefold() in name.casefold()]
        exact = argument and argument not in names and verb == word.casefold()
        if exact:
            found.append(Command(verb, argument, told))
        found += [Command(verb, name, told) for name in names[:10] if verb == word.casefold()]
        if not argument and verb in ALONE:
            found.append(Command(verb, "", told))
    return found
