"""`docs/cli.md`: the command line, read from its tree of commands."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import typer

from ultijobs_cli.app import app
from ultijobs_cli.help import GLOBAL

__all__ = ["pages"]

INTRODUCTION = """\
# Command line

`ultijobs --help` and `ultijobs COMMAND --help` print what this page says.

## Settings

Strongest first: flags, `ULTIJOBS_*` variables, `[tool.ultijobs]` of the nearest `pyproject.toml`.

| flag | variable | key in `[tool.ultijobs]` |
|---|---|---|
| `--database-url` | `ULTIJOBS_DATABASE_URL`, else `DATABASE_URL` | `database-url` |
| `--schema` | `ULTIJOBS_SCHEMA` | `schema` |
| `--app` | `ULTIJOBS_APP` | `app` |
| | `ULTIJOBS_ENV` | `env` |
| | `ULTIJOBS_CODE_VERSION` | `code-version` |

## Exit codes

| code | means |
|---|---|
| 0 | done |
| 1 | the check or the operation failed, or was refused |
| 2 | the command line cannot be used; nothing was done |
| 3 | there is no such job, step, queue, worker or name |
| 4 | cannot start: the database, its schema, the driver or the application is not usable |
| 130 | interrupted |

A command gives up on a database that does not answer within five seconds; `worker`, `scheduler` and `relay` wait for
it.

## Output

Without a flag, commands print tables on stdout, as wide as the terminal; in a pipe nothing is cut. An error is three
lines on stderr: its code and cause, the line that fixes it, and the page about it. Control characters in text from
jobs are shown as escapes. Payloads are left out unless asked for, and then redacted. `NO_COLOR` turns colours off.

`--json` prints exactly one object on stdout, even when the command fails:

    {"ok": true, "command": "jobs ls", "summary": "2 jobs", "findings": [], "data": {"rows": [], "next": null}}

A finding has `code`, `cause`, `fix`, `docs` and `at` (the flag, the id, or the position in a filter). Fields have the
names of the columns. Times are ISO-8601 in UTC with a `Z`; durations are whole milliseconds in a field that ends in
`_ms`; counts are `{"value": 10000, "kind": "capped"}`, where `kind` is `exact`, `capped` (at least) or `estimate`.
Lists have `data.rows` and `data.next`, which `--after` takes. `--json-lines` prints one row per line and nothing
else; with `--watch`, all rows again at each refresh. [JSON](json.md) lists the keys of each row.

## Filters

`--where "state:dead queue:billing,mail -job:charge* age:>10m"`: a space means AND, a comma OR, a leading `-` NOT, a
trailing `*` a prefix; quotes keep spaces. Words: `id:` `run:` `state:` `queue:` `job:` `tenant:` `reason:` `code:`
`fp:` `key:` `worker:` `step:` `priority:` `age:>10m` `age:<2d` `err~"timed out"` `input.customer.id:7`. The last two
are checked row by row and need an indexed word (`state:`, `queue:`, …) beside them.

## Completion

    ultijobs --install-completion

works for bash, zsh and fish. Names of queues, jobs, workers, tasks and backfills come from the database that the
settings, or the line so far, point to; a database that is unreachable or embedded is not waited for.
"""


def pages() -> dict[str, str]:
    sections = [INTRODUCTION, "## Global options\n\nEvery command has these.\n\n" + _options(_root(), everywhere=True)]
    sections += [_section(path, node) for path, node in _commands(_root(), ()) if path]
    return {"cli.md": "\n".join(sections)}


def _root() -> Any:
    return typer.main.get_command(app)


def _commands(node: Any, path: tuple[str, ...]) -> Iterator[tuple[tuple[str, ...], Any]]:
    yield path, node
    if hasattr(node, "commands"):
        context = node.context_class(node, info_name=" ".join(path))
        for name in node.list_commands(context):
            if not node.commands[name].hidden:
                yield from _commands(node.commands[name], (*path, name))


def _section(path: tuple[str, ...], node: Any) -> str:
    parts = [f"## ultijobs {' '.join(path)}\n", f"{(node.help or '').strip()}\n"]
    if not hasattr(node, "commands"):
        arguments = [f"`{p.metavar or p.name}`: {p.help}" for p in node.params if p.param_type_name == "argument"]
        if arguments:
            parts.append("\n".join(arguments) + "\n")
        options = _options(node, everywhere=False)
        if options:
            parts.append(options)
    parts.append("".join(f"    {line}\n" for line in (node.epilog or "").splitlines()))
    return "\n".join(parts)


def _options(node: Any, *, everywhere: bool) -> str:
    context = node.context_class(node, info_name="ultijobs")
    rows: list[str] = []
    for param in node.params:
        if param.param_type_name != "option" or getattr(param, "hidden", False):
            continue
        if (getattr(param, "rich_help_panel", None) == GLOBAL) is everywhere:
            names, told = param.get_help_record(context)
            rows.append(f"| `{names.replace('|', chr(92) + '|')}` | {told.replace('|', chr(92) + '|')} |")
    return "" if not rows else "| option | |\n|---|---|\n" + "\n".join(rows) + "\n"
