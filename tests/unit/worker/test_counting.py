"""The counters of a worker's heartbeat and its metrics are one count."""

from __future__ import annotations

from typing import Any

from pydantic import BaseModel

from ultijobs import App, RetryPolicy, Step, Worker, job
from ultijobs._metrics import series
from ultijobs._metrics.metrics import Distribution
from ultijobs.memory import MemoryDriver

TWICE = RetryPolicy(attempts=2, delay=0, jitter=False)


class Ask(BaseModel):
    key: str


@job(Ask, idempotency_key=lambda i: i.key, tenant="none", queue="mail", retry=TWICE)
async def work(input: Ask, step: Step) -> None:
    if input.key.startswith("bad"):
        raise ValueError
    if input.key.startswith("nap"):
        await step.sleep("1h")


@job(Ask, idempotency_key=lambda i: i.key, tenant="none", retry=RetryPolicy(attempts=1, dead_letter=False))
async def fragile(input: Ask) -> None:
    raise ValueError


async def test_heartbeat_and_metrics_agree_on_every_outcome() -> None:
    app = App(jobs=[work, fragile], driver=MemoryDriver())
    async with app:
        for key in ("a", "b", "bad", "nap"):
            await work.enqueue(Ask(key=key))
        await fragile.enqueue(Ask(key="c"))
        worker = Worker(app, poll="20ms")
        await worker.run_until_idle()
    counters: Any = worker.health().facts["counters"]
    assert {name: count for name, count in counters.items() if count} == {
        "done": 2,
        "retried": 1,
        "dead": 1,
        "failed": 1,
        "suspended": 1,
    }
    read = app.metrics.read()
    assert {labels: count for labels, count in read[series.JOBS].items() if count} == {
        ("mail", "ok"): 2,
        ("mail", "retried"): 1,
        ("mail", "dead"): 1,
        ("default", "failed"): 1,
    }
    assert read[series.JOBS_SUSPENDED] == {("mail",): 1}
    for each, counts in ((series.RUN_SECONDS, [5, 1]), (series.WAIT_SECONDS, [5, 1])):
        cells = [read[each][queue,] for queue in ("mail", "default")]
        assert [cell.counts[-1][1] for cell in cells if isinstance(cell, Distribution)] == counts
