"""The root of the tree: what stands before any command, and what becomes of a command line that cannot be read."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from ultijobs._release import release
from ultijobs.errors import CliBadFlag
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.flags import flags_of, with_common
from ultijobs_cli.help import Group
from ultijobs_cli.render import Screen, prepare_streams
from ultijobs_cli.report import Finding, Report
from ultijobs_cli.tables import Paragraph

__all__ = ["Root", "beginning"]

if TYPE_CHECKING:
    import typer._click as click

PROGRAM: Final = "ultijobs"
ORDER: Final = (
    "demo",
    "migrate",
    "worker",
    "tui",
    "stats",
    "causes",
    "jobs",
    "queues",
    "workers",
    "leases",
    "activity",
    "doctor",
)


class Root(Group):
    """Runs a command line to its exit code. Usage errors answer like every other error, under `--json` too."""

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,  # noqa: ARG002 - help names the command as it is installed
        complete_var: str | None = None,
        standalone_mode: bool = True,
        windows_expand_args: bool = True,
        **extra: Any,
    ) -> Any:
        prepare_streams()
        words = list(sys.argv[1:] if args is None else args)
        code = self._code(words, complete_var, windows_expand_args=windows_expand_args, **extra)
        if standalone_mode:
            sys.exit(code)
        return code

    def list_commands(self, ctx: click.Context) -> list[str]:
        """First what makes a queue go, then what is looked at and steered, then the rest."""
        order = {name: at for at, name in enumerate(ORDER)}
        return sorted(super().list_commands(ctx), key=lambda name: order.get(name, len(order)))

    def _code(self, words: list[str], complete_var: str | None, **extra: Any) -> int:
        try:
            _refuse_bytes(words)
            answer = super().main(words, PROGRAM, complete_var, standalone_mode=False, **extra)
        except typer.TyperException as error:
            return _unreadable(error, words)
        except (typer.Abort, KeyboardInterrupt):
            return ExitCode.INTERRUPTED
        return answer if isinstance(answer, int) else ExitCode.DONE


def _begin(ctx: typer.Context, values: dict[str, Any], *, version: bool) -> int:
    flags = flags_of(ctx, values)
    screen = Screen(json=flags.json, json_lines=flags.json_lines)
    if version:
        known = f"ultijobs {release()}"
        screen.show("--version", Report(known, {"version": release()}, [Paragraph(known)]))
    elif ctx.invoked_subcommand is None and (flags.json or flags.json_lines):
        screen.show("", _nothing_asked())
        raise typer.Exit(ExitCode.USAGE)
    elif ctx.invoked_subcommand is None:
        screen.plain(ctx.get_help())
    else:
        return ExitCode.DONE
    raise typer.Exit(ExitCode.DONE)


def beginning() -> Callable[..., int]:
    """What runs before any command: it takes the common options, answers `--version`, or shows the help."""
    told = typer.Option("--version", help="Print the version and exit.")
    own = inspect.Parameter("version", inspect.Parameter.KEYWORD_ONLY, annotation=Annotated[bool, told], default=False)

    def run(ctx: typer.Context, version: bool, **values: Any) -> int:
        return _begin(ctx, values, version=version)

    run.__signature__ = with_common([own])  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


def _nothing_asked() -> Report:
    flag = CliBadFlag("no command is named", fix=f"{PROGRAM} --help")
    return Report(flag.cause, findings=(Finding.of(flag),), exit_code=ExitCode.USAGE)


def _refuse_bytes(words: Sequence[str]) -> None:
    """Refuses what is no text in this locale: it could neither be stored nor be compared with what is."""
    for word in words:
        if not word.isascii() and any("\ud800" <= char <= "\udfff" for char in word):
            raise typer.BadParameter(f"{word!r:.100} is no UTF-8 text")


def _unreadable(error: typer.TyperException, words: Sequence[str]) -> int:
    context = getattr(error, "ctx", None)
    path = str(getattr(context, "command_path", PROGRAM))
    param = getattr(error, "param", None)
    at = next(iter(getattr(param, "opts", ())), None) or getattr(error, "option_name", None)
    cause = " ".join(error.format_message().split())
    flag = CliBadFlag(cause or "the command line cannot be read", fix=f"{path} --help")
    report = Report(flag.cause, findings=(Finding.of(flag, at=at),), exit_code=ExitCode.USAGE)
    options = words[: words.index("--")] if "--" in words else words
    Screen(json="--json" in options).show(path.partition(" ")[2], report)
    return report.exit_code
