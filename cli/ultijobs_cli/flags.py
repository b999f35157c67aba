"""The options that every command takes: what they are called, and what was said about them."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from typing import Annotated, Any, Final, Literal, cast

import typer

from ultijobs_cli.help import GLOBAL

__all__ = ["Flags", "flags_of", "with_common"]

_FLAGS: Final = "ultijobs.flags"


@dataclass(frozen=True, slots=True)
class Flags:
    """What the command line said about the options that every command takes; None where it said nothing."""

    database_url: str | None = None
    schema: str | None = None
    app: str | None = None
    json: bool = False
    json_lines: bool = False
    log_format: Literal["text", "json"] | None = None

    def over(self, before: Flags) -> Flags:
        """These flags, and those given before the subcommand where these say nothing."""
        said = {f.name: value for f in fields(self) if (value := getattr(self, f.name)) not in (None, False)}
        return replace(before, **said)


def _everywhere(*names: str, help: str, metavar: str | None = None) -> Any:
    return typer.Option(*names, help=help, metavar=metavar, rich_help_panel=GLOBAL, show_default=False)


_COMMON: Final = (
    (
        "database_url",
        str | None,
        None,
        _everywhere("--database-url", metavar="URL", help="The queue's database [or ULTIJOBS_DATABASE_URL]."),
    ),
    (
        "schema",
        str | None,
        None,
        _everywhere(
            "--schema", metavar="NAME", help="The schema that holds its tables [or ULTIJOBS_SCHEMA; default: public]."
        ),
    ),
    ("app", str | None, None, _everywhere("--app", metavar="MODULE:NAME", help="The application [or ULTIJOBS_APP].")),
    ("json", bool, False, _everywhere("--json", help="Print exactly one JSON object.")),
    ("json_lines", bool, False, _everywhere("--json-lines", help="Print one JSON object per row.")),
    (
        "log_format",
        Literal["text", "json"] | None,
        None,
        _everywhere("--log-format", help="The format of log lines on stderr."),
    ),
)


def flags_of(ctx: typer.Context, values: dict[str, Any]) -> Flags:
    """Takes the common options out of `values`, remembers them for subcommands, and answers what holds here."""
    here = Flags(**{f.name: values.pop(f.name) for f in fields(Flags)})
    known = here.over(cast("Flags", ctx.meta.get(_FLAGS, Flags())))
    ctx.meta[_FLAGS] = known
    return known


def with_common(own: Sequence[inspect.Parameter]) -> inspect.Signature:
    """`ctx`, then a command's own parameters, then the common options."""
    keyword = inspect.Parameter.KEYWORD_ONLY
    return inspect.Signature(
        [
            inspect.Parameter("ctx", keyword, annotation=typer.Context),
            *(parameter.replace(kind=keyword) for parameter in own),
            *(
                inspect.Parameter(name, keyword, annotation=Annotated[kind, option], default=default)
                for name, kind, default, option in _COMMON
            ),
        ]
    )
