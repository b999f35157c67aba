"""How help looks: what the command takes, what all commands take, then examples as they are typed."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from typer.core import TyperCommand, TyperGroup

if TYPE_CHECKING:
    import typer._click as click

__all__ = ["GLOBAL", "Command", "Group"]

GLOBAL: Final = "Global options"
"""The panel that marks an option as one that every command takes."""


class Command(TyperCommand):
    """One command, with its examples in the epilog."""

    def collect_usage_pieces(self, ctx: click.Context) -> list[str]:
        """`ID`, `[ID]`, `ID...`: the square brackets mean what they mean everywhere."""
        arguments = [_usage(param) for param in self.get_params(ctx) if param.param_type_name == "argument"]
        return ["[OPTIONS]", *arguments]

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        _write_options(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as its base
        _write_examples(self.epilog, formatter)


class Group(TyperGroup):
    """A group of commands, with its examples in the epilog."""

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - as its base
        """The names alone: a command is made when it is asked for."""
        return list(self.commands)

    def format_options(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        self.format_commands(ctx, formatter)
        _write_options(self.get_params(ctx), ctx, formatter)

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002 - as its base
        _write_examples(self.epilog, formatter)


def _named(param: click.Parameter) -> str:
    name = param.metavar or str(param.name).upper()
    return name if param.nargs == 1 else f"{name}..."


def _usage(param: click.Parameter) -> str:
    return _named(param) if param.required else f"[{_named(param)}]"


def _write_options(params: list[click.Parameter], ctx: click.Context, formatter: click.HelpFormatter) -> None:
    sections: dict[str, list[tuple[str, str]]] = {"Arguments": [], "Options": [], GLOBAL: []}
    for param in params:
        record = param.get_help_record(ctx)
        if record is not None:
            if param.param_type_name == "argument":
                record = (_named(param), record[1].removesuffix("  [required]"))
            everywhere = getattr(param, "rich_help_panel", None) == GLOBAL or param.name == "help"
            own = "Arguments" if param.param_type_name == "argument" else "Options"
            sections[GLOBAL if everywhere else own].append(record)
    for title, records in sections.items():
        if records:
            with formatter.section(title):
                formatter.write_dl(records)


def _write_examples(examples: str | None, formatter: click.HelpFormatter) -> None:
    if examples:
        with formatter.section("Examples"):
            for line in examples.splitlines():
                formatter.write(f"{'':>{formatter.current_indent}}{line}\n")
