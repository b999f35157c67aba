"""The commands in the lines that fix errors, and whether the real command line takes them."""

from __future__ import annotations

import re
import shlex
from typing import Any

import typer

from ultijobs_cli.app import app

ROOT: Any = typer.main.get_command(app)
QUOTED = re.compile(r"`(ultijobs[^`]*)`")
BARE = re.compile(r"(?:^|\brun |\bthen |\bsee |, )(ultijobs [a-z][^`]*)$")


def commands_of(fix: str) -> list[str]:
    """What a reader would paste of a line: what stands in backticks, else what follows to its end."""
    quoted = QUOTED.findall(fix)
    return quoted or [command.split(" (")[0].split(", ")[0].split(" as ")[0] for command in BARE.findall(fix)]


def refusal(command: str) -> str | None:
    """Why the command line does not take it; None when it does. Nothing is run."""
    words = shlex.split(command)
    assert words.pop(0) == "ultijobs"
    command, context = ROOT, None
    try:
        while True:
            context = command.make_context(command.name, list(words), parent=context)
            rest = [*context._protected_args, *context.args]
            if not rest or not hasattr(command, "resolve_command"):
                return f"{rest} is left over" if rest else None
            _, command, words = command.resolve_command(context, rest)
    except typer.Exit:
        return None
    except typer.TyperException as error:
        return f"{type(error).__name__}: {getattr(error, 'message', error)}"
