"""Effects of handlers, written by a connection of their own in autocommit: what ran is counted apart from the queue."""

from __future__ import annotations

import asyncio
import os
import threading

import asyncpg

import ultijobs

INSERT = "insert into fx (job_id, step, attempt, pid) values ($1, $2, $3, $4)"


async def effect(step: str) -> None:
    """One row for `step` of the running attempt; committed when this returns."""
    ctx = ultijobs.current()
    await _write(ctx.job_id, step, ctx.attempt)


def effect_sync(step: str) -> None:
    """`effect` from a thread."""
    ctx = ultijobs.current()
    failures: list[BaseException] = []

    def body() -> None:
        try:
            asyncio.run(_write(ctx.job_id, step, ctx.attempt))
        except BaseException as error:  # noqa: BLE001 - raised again below
            failures.append(error)

    thread = threading.Thread(target=body)
    thread.start()
    thread.join()
    if failures:
        raise failures[0]


async def _write(job_id: object, step: str, attempt: int) -> None:
    connection = await asyncpg.connect(os.environ["FX_URL"])
    try:
        await connection.execute(INSERT, job_id, step, attempt, os.getpid())
    finally:
        await connection.close()
