"""Imports the application that `--app MODULE:NAME` names, or says in one line why it cannot be used."""

from __future__ import annotations

import importlib
import sys
import traceback
from difflib import get_close_matches
from pathlib import Path
from types import ModuleType, TracebackType
from typing import TYPE_CHECKING, Any

from ultijobs._connect import driver_for
from ultijobs.errors import AppUnusable, CliBadFlag, DriverUnavailable, UltijobsError
from ultijobs_cli.command import Invocation, interrupted
from ultijobs_cli.exit_codes import ExitCode
from ultijobs_cli.flags import Flags
from ultijobs_cli.report import CommandFailed
from ultijobs_cli.settings import application, export, no_database

if TYPE_CHECKING:
    from ultijobs import App

__all__ = ["load_app"]


def load_app(call: Invocation, *, or_outbox: bool = False, database: bool = True) -> App[Any]:
    """The application of the settings, on the database of the settings; `or_outbox` lets that be its outbox's.

    Without `database` it is taken as it is, wherever its queue may be.
    Raises `CliBadFlag` where none is named, or where a flag says another database than the application's own. What the
    import raises ends the command with exit 4: an error of the library under its own code, any other as
    `X_APP_UNUSABLE` with its traceback on stderr.
    """
    named = application(call.flags)
    if not named:
        raise CliBadFlag("no application is named", fix="give --app MODULE:NAME, or set ULTIJOBS_APP")
    module_name, _, attribute = named.partition(":")
    if not module_name:
        raise CliBadFlag(
            f"--app: {named!r:.100} names no module", fix="write --app shop.main:app", meta={"at": "--app"}
        )
    export(call.flags)
    app = _application(_module(call, module_name), attribute or "app")
    if database:
        _agree(app, call.flags, beside=app.outbox if or_outbox else None)
    return app


def _module(call: Invocation, name: str) -> ModuleType:
    here = str(Path.cwd())
    if here not in sys.path:
        sys.path.insert(0, here)
    try:
        return importlib.import_module(name)
    except UltijobsError as error:
        raise CommandFailed.because(error, exit_code=ExitCode.CANNOT_START, at=name) from error
    except (Exception, SystemExit) as error:
        if interrupted(error):
            raise KeyboardInterrupt from error
        call.screen.note(_trace(error), "dim")
        place = _place(error)
        cause = f"importing {name} raised {type(error).__qualname__}: {error}" + (f" ({place})" if place else "")
        raise CommandFailed.because(AppUnusable(cause, fix=_fix(name, error)), at=name) from error


def _application(module: ModuleType, attribute: str) -> App[Any]:
    from ultijobs import App  # noqa: PLC0415 - the commands that read do without pydantic

    found: object = module
    for part in attribute.split("."):
        found = getattr(found, part, None)
    if isinstance(found, App):
        return found  # pyright: ignore[reportUnknownVariableType] - the services are of the application's own type
    apps = [name for name, value in vars(module).items() if isinstance(value, App)]
    near = get_close_matches(attribute, apps, 1, 0.0)
    what = "has no" if found is None else f"has a {type(found).__name__}, and no App, as"
    raise CommandFailed.because(
        AppUnusable(
            f"{module.__name__} {what} {attribute}",
            fix=f"write --app {module.__name__}:{near[0]}" if near else "name a variable that holds an ultijobs.App",
        )
    )


def _agree(app: App[Any], flags: Flags, *, beside: str | None) -> None:
    """Refuses a flag that the application's own `driver=` or `schema=` would overrule in silence."""
    try:
        own = app.driver.url
    except DriverUnavailable:
        raise no_database() from None
    except UltijobsError as error:
        raise CommandFailed.because(error, exit_code=ExitCode.CANNOT_START) from error
    try:
        said = own if flags.database_url is None else driver_for(flags.database_url, flags.schema or "public").url
        other = None if beside is None else driver_for(beside).url
    except UltijobsError as error:
        raise CommandFailed.because(error, exit_code=ExitCode.CANNOT_START) from error
    if said not in {own, other}:
        raise CliBadFlag(
            f"--database-url: the application itself says {own}",
            fix="leave the flag out, or leave driver= out of App(…)",
            meta={"at": "--database-url"},
        )
    if flags.schema is not None and app.schema not in {flags.schema, "public"}:
        raise CliBadFlag(
            f"--schema: the application itself says {app.schema}",
            fix="leave the flag out, or leave schema= out of App(…)",
            meta={"at": "--schema"},
        )


def _trace(error: BaseException) -> str:
    """The traceback from the application's first frame on."""
    frames: TracebackType | None = error.__traceback__
    while frames is not None and _is_machinery(frames.tb_frame.f_code.co_filename):
        frames = frames.tb_next
    return "".join(traceback.format_exception(type(error), error, frames)).rstrip()


def _place(error: BaseException) -> str | None:
    """The last line of the application's own that was reached."""
    own = [frame for frame in traceback.extract_tb(error.__traceback__) if not _is_machinery(frame.filename)]
    return f"{own[-1].filename}:{own[-1].lineno}" if own else None


def _is_machinery(file: str) -> bool:
    return file in {__file__, importlib.__file__} or file.startswith("<frozen importlib")


def _fix(name: str, error: BaseException) -> str:
    if isinstance(error, ModuleNotFoundError) and error.name and f"{name}.".startswith(f"{error.name}."):
        return f"run it in the folder that holds {name.partition('.')[0]}, or install that"
    return "correct the module that the cause names"
