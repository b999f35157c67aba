"""Makes a function a command: adds the options that every command takes, runs it, turns what comes out into an exit."""

from __future__ import annotations

import asyncio
import inspect
import logging
from collections.abc import Callable, Coroutine, Sequence
from dataclasses import dataclass
from typing import Any

import typer

from ultijobs import _log
from ultijobs.errors import CliUnexpected, UltijobsError
from ultijobs_cli.exit_codes import ExitCode, exit_code_of
from ultijobs_cli.flags import Flags, flags_of, with_common
from ultijobs_cli.help import Command
from ultijobs_cli.render import Screen
from ultijobs_cli.report import CommandFailed, Finding, Report

__all__ = ["Invocation", "command", "group_body", "interrupted"]

Answer = Report | Coroutine[Any, Any, Report]
Body = Callable[..., Answer]


@dataclass(frozen=True, slots=True)
class Invocation:
    """One run of one command."""

    command: str
    flags: Flags
    screen: Screen


def command(group: typer.Typer, name: str, body: Body, *, hidden: bool = False, lenient: bool = False) -> None:
    """Registers `body(call, …)` as a command; the lines of its docstring that begin with `$ ` are the examples.

    The body answers with a `Report`, at once or as a coroutine; errors of the library and a `CommandFailed` become one.
    """
    told, examples = _told(body)
    settings = {"allow_extra_args": True, "ignore_unknown_options": True} if lenient else None
    register = group.command(
        name,
        cls=Command,
        help=told,
        epilog=examples,
        hidden=hidden,
        context_settings=settings,
        add_help_option=not lenient,
    )
    register(_bound(body))


def group_body(group: typer.Typer, body: Body, *, help: str) -> None:
    """Makes `body` what the bare group does; its own options then belong to the bare group alone."""
    group.callback(invoke_without_command=True, help=help, epilog=_told(body)[1])(_bound(body))


def _told(body: Body) -> tuple[str, str]:
    lines = (inspect.getdoc(body) or "").splitlines()
    examples = [line.removeprefix("$ ") for line in lines if line.startswith("$ ")]
    return "\n".join(line for line in lines if not line.startswith("$ ")).strip(), "\n".join(examples)


def _bound(body: Body) -> Callable[..., int]:
    own = list(inspect.signature(body, eval_str=True).parameters.values())[1:]

    def run(ctx: typer.Context, **values: Any) -> int:
        flags = flags_of(ctx, values)
        if ctx.invoked_subcommand is not None:
            _refuse_misplaced(ctx, own, values)
            return ExitCode.DONE
        call = Invocation(
            ctx.command_path.partition(" ")[2], flags, Screen(json=flags.json, json_lines=flags.json_lines)
        )
        return _answer(call, lambda: body(call, **values))

    run.__signature__ = with_common(own)  # type: ignore[attr-defined]
    run.__annotations__ = {}
    return run


def _refuse_misplaced(ctx: typer.Context, own: Sequence[inspect.Parameter], values: dict[str, Any]) -> None:
    for parameter in own:
        if values[parameter.name] != parameter.default:
            flag = f"--{parameter.name.replace('_', '-')}"
            right = f"{ctx.command_path} {ctx.invoked_subcommand} {flag}"
            raise typer.BadParameter(f"belongs after the command, as in {right}", param_hint=flag)


def interrupted(error: BaseException | None) -> bool:
    """True for ctrl-c, also where an import has made another error of it, as Python 3.11 does while a class is made."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__
    return error is not None


def _answer(call: Invocation, body: Callable[[], Answer]) -> int:
    if call.flags.log_format is not None:
        _log.configure(call.flags.log_format)
    try:
        answer = body()
        report = answer if isinstance(answer, Report) else asyncio.run(answer)
    except CommandFailed as failed:
        report = failed.report
    except UltijobsError as error:
        report = Report(error.cause, findings=(Finding.of(error),), exit_code=exit_code_of(error.code))
    except KeyboardInterrupt:
        report = Report("interrupted", exit_code=ExitCode.INTERRUPTED)
    except Exception as error:  # noqa: BLE001 - the last net: whatever it is has a code and a line to read
        if interrupted(error):
            call.screen.show(call.command, Report("interrupted", exit_code=ExitCode.INTERRUPTED))
            return ExitCode.INTERRUPTED
        if call.flags.log_format is not None:
            _log.emit(logging.ERROR, "cli.unexpected", f"{call.command} failed", exc_info=error)
        unexpected = CliUnexpected(f"{type(error).__qualname__}: {error}")
        report = Report(unexpected.cause, findings=(Finding.of(unexpected),), exit_code=ExitCode.FAILED)
    call.screen.show(call.command, report)
    return report.exit_code
