"""Commands that are made when they are asked for: a command line pays for the one command that it runs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, MutableMapping
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

import typer

from ultijobs_cli.command import Body, command, group_body
from ultijobs_cli.help import Group

if TYPE_CHECKING:
    import typer._click as click

__all__ = ["Branch", "Branches", "typer_of"]

_COMMANDS: Final = "ultijobs_cli.commands"


@dataclass(frozen=True, slots=True)
class Branch:
    """A group: what it is for, what it does by default, and its commands."""

    help: str
    bare: str
    commands: Mapping[str, str]


class Branches(MutableMapping[str, "click.Command"]):
    """The commands of a group by name. A `str` names one as `module.function`, below the package of the commands."""

    def __init__(self, places: Mapping[str, str | Branch]) -> None:
        self._places = places
        self._made: dict[str, click.Command] = {}

    def __getitem__(self, name: str) -> click.Command:
        if name not in self._made:
            self._made[name] = _made(name, self._places[name])
        return self._made[name]

    def __setitem__(self, name: str, made: click.Command) -> None:
        self._places = {**self._places, name: ""}
        self._made[name] = made

    def __delitem__(self, name: str) -> None:
        self._places = {known: place for known, place in self._places.items() if known != name}
        self._made.pop(name, None)

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)


def typer_of(kind: type[Group], **settings: Any) -> typer.Typer:
    """A tree of ours, which renders its help itself and leaves errors to its root."""
    return typer.Typer(cls=kind, rich_markup_mode=None, pretty_exceptions_enable=False, **settings)


def _made(name: str, place: str | Branch) -> click.Command:
    tree = typer_of(Group, add_completion=False)
    if isinstance(place, str):
        command(tree, name, _body(place))
        return typer.main.get_command(tree)
    group_body(tree, _body(place.bare), help=place.help)
    group = typer.main.get_group(tree)
    group.name = name
    group.commands = Branches(place.commands)
    return group


def _body(place: str) -> Body:
    module, _, name = place.partition(".")
    found: Body = getattr(import_module(f"{_COMMANDS}.{module}"), name)
    return found
