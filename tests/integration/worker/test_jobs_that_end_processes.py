"""Jobs that would end the process which runs them, as seen by a worker."""

from __future__ import annotations

import asyncio

import pytest
from pydantic import BaseModel

from ultijobs import App, RetryPolicy, Worker, job
from ultijobs.memory import MemoryDriver


class Nothing(BaseModel): ...


async def test_a_job_that_cancels_every_task_of_a_process_uses_up_an_attempt_where_the_worker_is_alone(
    caplog: pytest.LogCaptureFixture,
) -> None:
    spared = asyncio.current_task()

    @job(Nothing, idempotency_key=lambda _: "k", tenant="none", retry=RetryPolicy(attempts=2, delay="1h"))
    async def cancels(input: Nothing) -> None:
        for task in asyncio.all_tasks() - {spared}:
            task.cancel()
        await asyncio.sleep(10)

    async with App(jobs=[cancels], driver=MemoryDriver()) as app:
        answer = await cancels.enqueue(Nothing())
        with pytest.raises(asyncio.CancelledError):
            await asyncio.create_task(Worker(app, poll="0.1s").run(alone=True))
        row = await app.driver.inspect.job(answer.id)
    assert row is not None
    assert (row.state, row.attempt, row.error_code) == ("delayed", 1, "asyncio.exceptions.CancelledError")
    assert [record for record in caplog.records if getattr(record, "event", "") == "jobs.worker.cancelled"]
