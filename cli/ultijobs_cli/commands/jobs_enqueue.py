"""`jobs enqueue`."""

from __future__ import annotations

import asyncio
from difflib import get_close_matches
from typing import TYPE_CHECKING, Annotated, Any, Literal

import typer

from ultijobs.errors import DeclarationUnknown, ValidationFailed
from ultijobs_cli import options, wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.completing import job_names
from ultijobs_cli.connect import within_reach
from ultijobs_cli.inputs import example_of
from ultijobs_cli.jsonform import columns
from ultijobs_cli.jsontext import json_text
from ultijobs_cli.loading import load_app
from ultijobs_cli.report import Report
from ultijobs_cli.tables import Paragraph

if TYPE_CHECKING:
    from ultijobs import App, JobHandle

__all__ = ["enqueue"]


async def enqueue(
    call: Invocation,
    name: Annotated[str, typer.Argument(metavar="NAME", help="The job's name.", autocompletion=job_names)],
    input: Annotated[
        str | None, typer.Option("--input", metavar="JSON", help="The input; @FILE reads a file, - reads stdin.")
    ] = None,
    delay: Annotated[
        str | None, typer.Option("--delay", metavar="TIME", help="Make it due after this time: 5m.")
    ] = None,
    run_at: Annotated[str | None, typer.Option("--run-at", metavar="TIME", help="Make it due at this time.")] = None,
    priority: Annotated[
        int | None, typer.Option("--priority", metavar="N", help="Higher priorities are claimed first.")
    ] = None,
    max_attempts: Annotated[
        int | None,
        typer.Option("--max-attempts", metavar="N", min=1, help="Override the attempts of the declared policy."),
    ] = None,
    on_conflict: Annotated[
        Literal["dedupe", "error"], typer.Option("--on-conflict", help="What to do when a live job holds the key.")
    ] = "dedupe",
    _yes: options.NeverAsks = False,
    actor: Annotated[
        str | None, typer.Option("--as", metavar="ACTOR", help="Who is enqueueing, stored as enqueued_by.")
    ] = None,
) -> Report:
    """Enqueues a job; the application validates its input.

    Key and tenant are derived from the input, as always: the same input twice is one job while the first is live.

    $ ultijobs jobs enqueue send_digest --input '{"org_id": "o-1"}' --app shop.main:app
    $ ultijobs jobs enqueue send_digest --input @digest.json --delay 5m --app shop.main:app
    """
    from ultijobs import Actor  # noqa: PLC0415 - the commands that read do without pydantic

    wishes: dict[str, Any] = {
        "delay": options.span_of("--delay", delay),
        "run_at": options.instant_of("--run-at", run_at),
        "priority": priority,
        "max_attempts": max_attempts,
        "on_conflict": on_conflict,
        "actor": None if actor is None else Actor(actor),
    }
    if delay is not None and run_at is not None:
        raise options.bad("--run-at", "cannot be combined with --delay", "give one of them")
    app = load_app(call)
    handle = _handle(app, name)
    text = json_text("--input", "null" if input is None else input, lambda: example_of(handle))
    try:
        validated = handle.validate(text)
    except ValidationFailed as error:
        if input is not None:
            raise
        raise options.bad(
            "--input", f"is missing, and job {name} takes one", f"write --input {example_of(handle)}"
        ) from error
    async with within_reach(app.driver.url):
        await app.open("cli")
    try:
        # Outside of any transaction on purpose, also where the application's own code must be in one.
        answer = await app.enqueue(handle, validated, tx=False, **wishes)
    finally:
        async with asyncio.timeout(1):
            await app.close()
    what = "is live already" if answer.deduped else "enqueued"
    summary = f"{name} {what}: {answer.id} is {answer.state}"
    return Report(
        summary, columns(answer), [Paragraph(summary)], hints=[f"ultijobs jobs show {wording.tail(answer.id)}"]
    )


def _handle(app: App[Any], name: str) -> JobHandle[Any]:
    handle = app.registry.jobs.get(name)
    if handle is None:
        near = get_close_matches(name, app.registry.jobs, 1, 0.4)
        known = ", ".join(sorted(app.registry.jobs)) or "none"
        raise DeclarationUnknown(
            f"the application declares no job {name!r:.100}; it has {known}",
            fix=f"ultijobs jobs enqueue {near[0]} --input JSON" if near else "add its module to App(jobs=[…])",
        )
    return handle
