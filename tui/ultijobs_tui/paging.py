"""The operator's own pager on a text, in place of the cockpit, which comes back when it is left."""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path

from textual.app import SuspendNotSupported

from ultijobs.inspection import inert

__all__ = ["page", "pager_command"]


def pager_command(environ: Mapping[str, str]) -> list[str] | None:
    """`$PAGER`, else `less` or `more` where there is one."""
    try:
        words = shlex.split(environ.get("PAGER", "")) or ["less"]
    except ValueError:
        words = ["less"]
    for program in (words, ["more"]):
        if shutil.which(program[0]) is not None:
            # A short text must not flash by: less leaves only when it is told to.
            return [*program, "-+F"] if Path(program[0]).name == "less" else program
    return None


def page(text: str, suspend: Callable[[], AbstractContextManager[None]]) -> str | None:
    """Shows `text`, inert, until the pager is left; why that is not possible here, or None when it was shown."""
    command = pager_command(os.environ)
    if command is None:
        return "no pager: set PAGER"
    try:
        with suspend():
            subprocess.run(command, input=inert(text), text=True, encoding="utf-8", check=False)  # noqa: S603 - the operator's own
    except SuspendNotSupported:
        return "no pager here: this terminal cannot be lent"
    except OSError as error:
        return f"{command[0]}: {error.strerror or error}"
    return None
