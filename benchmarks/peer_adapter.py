"""ultijobs as one peer of a queue benchmark: `bench.py --adapter ultijobs=benchmarks/peer_adapter.py:UltijobsPeer`."""

from __future__ import annotations

import gc
import itertools
import os

from adapters.base import Adapter, Harness
from pydantic import BaseModel

from ultijobs import App, JobHandle, Step, Worker, job
from ultijobs.postgres.migrate import migrate

CONCURRENCY = int(os.environ.get("ULTIJOBS_CONCURRENCY", "500"))
STEPS = 10
CALLS = itertools.count()


class Number(BaseModel):
    i: int
    call: str
    """Makes each enqueue a work of its own: the benchmark enqueues some numbers twice."""


def number(i: int) -> Number:
    return Number(i=i, call=f"{os.getpid()}.{next(CALLS)}")


def declare(h: Harness | None = None) -> tuple[JobHandle[Number], JobHandle[Number]]:
    @job(Number, idempotency_key=lambda n: f"n:{n.call}", tenant="none")
    async def noop(input: Number) -> None:
        assert h is not None
        h.job(input.i)

    @job(Number, idempotency_key=lambda n: f"s:{n.call}", tenant="none")
    async def stepped(input: Number, step: Step) -> None:
        assert h is not None
        h.job(input.i)
        for at in range(STEPS):
            await step.run(f"step {at}", trivial, at)

    return noop, stepped


async def trivial(at: int) -> int:
    return at


class UltijobsPeer(Adapter):
    name = "ultijobs"
    package = "ultijobs"
    workloads = "ABCDEFG"
    settings = (
        f"validated pydantic input, idempotency key, fenced leases, history kept; {CONCURRENCY} slots (default 20); "
        "gc.freeze() as `ultijobs worker` does it; all else by default"
    )
    pending_sql = "select count(*) from x_jobs where state in ('ready', 'running', 'suspended')"
    finished_sql = "select count(*) from x_jobs_done where state = 'done'"
    reset_sql = "truncate x_jobs, x_jobs_done, x_job_steps, x_job_attempts"
    history_sql = """
        insert into x_jobs_done (id, run_id, name, state, attempt, claims, lease_no, idempotency_key, input, worker_id,
                                 started_at, finished_at)
        select gen_random_uuid(), gen_random_uuid(), 'noop', 'done', 1, 1, g, 'h:' || g, '{"i": 1}', 'w',
               now() - interval '1 h', now() - interval '1 h' + g * interval '1 ms'
          from generate_series(1, %(n)s) g"""
    steps_sql = "select count(*) from x_job_steps where status = 'completed'"

    async def install(self, dsn: str) -> None:
        await migrate(dsn)

    async def open(self, dsn: str) -> None:
        self.noop, self.stepped = declare()
        self.app = App(jobs=[self.noop, self.stepped], driver=dsn)
        await self.app.__aenter__()

    async def close(self) -> None:
        await self.app.__aexit__(None, None, None)

    async def enqueue(self, i: int) -> None:
        await self.noop.enqueue(number(i))

    async def enqueue_bulk(self, ids: list[int]) -> None:
        await self.noop.enqueue_many([number(i) for i in ids])

    async def fill_steps(self, ids: list[int]) -> None:
        await self.stepped.enqueue_many([number(i) for i in ids])

    async def worker(self, dsn: str, h: Harness, workload: str) -> None:  # noqa: ARG002 - all workloads are one to it
        app = App(jobs=declare(h), driver=dsn)
        async with app:
            gc.collect()
            gc.freeze()
            await h.ready()
            await Worker(app, concurrency=CONCURRENCY).run()
