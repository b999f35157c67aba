"""Jobs that fail in the ways that happen, for an operator to find: switched on by `--incidents`."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
from typing import Any, Final

from pydantic import BaseModel

from ultijobs import Context as JobContext
from ultijobs import Limits, RetryPolicy, Step, job

__all__ = [
    "LIMITS",
    "Document",
    "Ticket",
    "export_catalogue",
    "fetch_index",
    "import_document",
    "load_plugin",
    "mirror_release",
    "send_reminder",
]

LIMITS: Final = Limits(per_tenant=2)
"""Each process runs so many jobs of a tenant at once. Whoever enqueues needs them as well as whoever runs."""


class Ticket(BaseModel):
    """Input of the incidents that need nothing but a number."""

    number: int


class Document(BaseModel):
    number: int
    body: str


async def ask_index() -> str:
    """Asks a server that takes the connection and never answers; it is there whenever the job is tried again."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        reader, writer = await asyncio.open_connection("127.0.0.1", silent.getsockname()[1])
        try:
            writer.write(b"GET /simple/ HTTP/1.1\r\nHost: localhost\r\n\r\n")
            await writer.drain()
            return (await reader.readline()).decode()
        finally:
            writer.close()


@job(
    Ticket,
    idempotency_key=lambda ticket: f"index:{ticket.number}",
    tenant=lambda ticket: f"team-{ticket.number % 3}",
    queue="index",
    retry=RetryPolicy(attempts=3, delay="1s", max_delay="2s"),
    step_timeout="1s",
)
async def fetch_index(step: Step) -> None:
    """A dependency that times out: every attempt dies in the same step."""
    await step.run("prepare", os.getcwd)
    await step.run("ask the index", ask_index)


@job(
    Document,
    idempotency_key=lambda document: f"document:{document.number}",
    tenant=lambda document: f"team-{document.number % 3}",
    queue="documents",
)
async def import_document(input: Document, step: Step) -> None:
    """A poison payload: its body is no JSON, and no attempt changes that."""
    await step.returning(dict[str, Any]).run("parse", json.loads, input.body)


@job(
    Ticket,
    idempotency_key=lambda ticket: f"plugin:{ticket.number}",
    tenant="none",
    queue="plugins",
    retry=RetryPolicy(attempts=2, delay="1s"),
)
def load_plugin() -> None:
    """Kills its worker, as native code that runs out of memory does."""
    os.kill(os.getpid(), signal.SIGKILL)


@job(
    Ticket,
    idempotency_key=lambda ticket: f"export:{ticket.number}",
    tenant="none",
    queue="exports",
    timeout="30m",
)
async def export_catalogue(ctx: JobContext[Any]) -> None:
    """Slow, and says how far it is."""
    total = 600
    for done in range(total):
        ctx.progress(done, total, "pages")
        await asyncio.sleep(1)


@job(
    Ticket,
    idempotency_key=lambda ticket: f"mirror:{ticket.number}",
    tenant=lambda _: "team-slow",
    queue="mirrors",
    timeout="30m",
)
async def mirror_release(ctx: JobContext[Any]) -> None:
    """One of many slow ones of a tenant: most of them wait at its limit, and hold nobody else up."""
    total = 300
    for done in range(total):
        ctx.progress(done, total, "files")
        await asyncio.sleep(1)


@job(
    Ticket,
    idempotency_key=lambda ticket: f"reminder:{ticket.number}",
    tenant="none",
    queue="reminders",
)
async def send_reminder(input: Ticket, step: Step) -> None:
    """Sleeps for an hour and holds no process meanwhile."""
    await step.run("note", str, input.number)
    await step.sleep("1h")
