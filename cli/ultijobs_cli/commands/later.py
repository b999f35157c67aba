"""Commands and flags of later releases: known by name, refused by code, never ignored."""

from __future__ import annotations

from typing import Final

from ultijobs.errors import NotImplementedYet
from ultijobs_cli.command import Invocation
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.report import CommandFailed, Report

__all__ = ["LATER", "later", "refuse"]

LATER: Final = ("manifest",)
"""Commands that have no body yet; help does not list them."""


def later(call: Invocation) -> Report:
    """Belongs to a later release.

    $ ultijobs --help
    """
    raise refuse(f"ultijobs {call.command} is not built yet")


def refuse(cause: str, fix: str | None = None) -> CommandFailed:
    """The answer to what this release does not have: the command line is wrong for it, so exit 2."""
    return CommandFailed.because(NotImplementedYet(cause, fix=fix), exit_code=ExitCode.USAGE)
