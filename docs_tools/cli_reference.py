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

`ultijobs --help` and `ultijobs COMMAND --help` say the same as this page.

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

A command gives up on a database that does not answer within five seconds. `worker` waits for it.

## Output

Without a flag, tables on stdout, as wide as the terminal and never cut in a pipe. Errors are three lines on stderr:
code and cause, the line that mends it, the page about it. What jobs wrote is shown with its control characters as
escapes; payloads are left out unless asked for, and redacted. Colours stay away with `NO_COLOR`.

`--json` prints exactly one object on stdout, also when the command fails:

    {"ok": true, "command": "jobs ls", "summary": "2 jobs", "findings": [], "data": {"rows": [], "next": null}}

A finding has `code`, `cause`, `fix`, `docs` and `at` (the flag, the id, the position in a filter). Fields are named as
columns are; times are ISO-8601 in UTC with a `Z`, durations whole milliseconds in a field that ends in `_ms`, counts
`{"value": 10000, "kind": "capped"}` where `kind` is `exact`, `capped` (at least) or `estimate`. Lists have `data.rows`
and `data.next`, which `--after` takes. `--json-lines` prints one row a line and nothing else; with `--watch`, those of
every look. [JSON](json.md) lists the keys of each row.

## Filters

`--where "state:dead queue:billing,mail -job:charge* age:>10m"`: a blank is AND, a comma OR, a leading `-` NOT, a
trailing `*` a prefix, quotes hold blanks. Words: `id:` `run:` `state:` `queue:` `job:` `tenant:` `reason:` `code:`
`fp:` `key:` `worker:` `step:` `priority:` `age:>10m` `age:<2d` `err~"timed out"` `input.customer.id:7`. The last two
read row by row and need an indexed word (`state:`, `queue:`, …) beside them.

## Completion

    ultijobs --install-completion

for bash, zsh and fish. Names of queues, jobs, workers, tasks and backfills are asked of the database that the settings
or the line so far name; one that is away, or embedded, is not waited for.
"""


def pages() -> dict[str, str]:
    sections = [INTRODUCTION, "## Global options\n\nEvery command takes them.\n\n" + _options(_root(), everywhere=True)]
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
