"""The application of the scenarios: the stage's jobs and what a pooler, a clock and an idle fleet need besides."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from datetime import datetime
from typing import Any

import asyncpg

from tests.support.effects import INSERT, effect
from tests.support.stage import FAST, Ask, by_key
from tests.support.stage import JOBS as STAGE
from ultijobs import App, Context, Request, Step, job, task


class Counting:
    """The worker's few lasting connections for effects: at fifty jobs a second a new one each is most of the load."""

    pool: asyncpg.Pool


@asynccontextmanager
async def counting() -> AsyncGenerator[None]:
    async with asyncpg.create_pool(os.environ["FX_URL"], min_size=0, max_size=4) as Counting.pool:
        yield


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def one_of_many(input: Ask, ctx: Context[None]) -> None:
    await Counting.pool.execute(INSERT, ctx.job_id, "start", ctx.attempt, os.getpid())
    await asyncio.sleep(input.seconds)


async def part(number: int) -> dict[str, Any]:
    return {"number": number, "parts": [1, 2, {"deep": None}]}


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def of_three_parts(input: Ask, step: Step) -> None:
    for number in range(3):
        await step.run(f"part {number}", part, number)


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST, concurrency=1)
async def one_at_a_time(input: Ask) -> None:
    await effect("alone")
    await effect("left")


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def waits_for_word(input: Ask, step: Step) -> None:
    await effect("waits")
    await step.wait_for_event("word", "word.given", match=input.key, timeout="1h")
    await effect("heard")


@job(Ask, idempotency_key=by_key, tenant="none", queue="third")
async def in_a_third_queue(input: Ask) -> None:
    await effect("third")


@job(Ask, idempotency_key=by_key, tenant="none", queue="fourth")
async def in_a_fourth_queue(input: Ask) -> None:
    await effect("fourth")


@job(Ask, idempotency_key=by_key, tenant="none")
async def tick(input: Ask) -> None:
    await part(0)


@task(cron="* * * * * *", tz="UTC", catch_up="run-all", max_catch_up=1_000)
def secondly(occurrence: datetime) -> list[Request[Ask]]:
    return [tick.request(Ask(key=occurrence.isoformat()))]


@task(cron="30 2 * * *", tz="Europe/Berlin")
def nightly(occurrence: datetime) -> list[Request[Ask]]:
    return [tick.request(Ask(key=occurrence.isoformat()))]


JOBS = [*STAGE, one_of_many, of_three_parts, one_at_a_time, waits_for_word, in_a_third_queue, in_a_fourth_queue, tick]

app = App(jobs=JOBS, lifespan=counting)
ticking_app = App(jobs=JOBS, tasks=[secondly], lifespan=counting)
nightly_app = App(jobs=JOBS, tasks=[nightly], lifespan=counting)
