"""The application that workers run in tests: small jobs, each made for one way in which work goes well or badly."""

from __future__ import annotations

import asyncio
import os
import signal
import time
from typing import Any

from pydantic import BaseModel

from tests.support.effects import effect, effect_sync
from ultijobs import App, Context, RetryPolicy, Step, SyncStep, Terminal, current, job

FAST = RetryPolicy(attempts=3, backoff="fixed", delay="100ms", jitter=False)
TWICE = RetryPolicy(attempts=2, backoff="fixed", delay="100ms", jitter=False)
ONCE = RetryPolicy(attempts=1)


class Ask(BaseModel):
    key: str
    seconds: float = 0.0
    word: str = ""


def by_key(ask: Ask) -> str:
    return ask.key


def _block(ask: Ask) -> None:
    """Holds its thread for so long, or until there is a file of that name."""
    until = time.monotonic() + ask.seconds
    while (left := until - time.monotonic()) > 0 and not (ask.word and os.path.exists(ask.word)):  # noqa: PTH110 - a text
        time.sleep(min(left, 0.05))


async def mark(step: str) -> str:
    """One effect, and which attempt it was of."""
    await effect(step)
    return f"{step} of attempt {current().attempt}"


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def quick(input: Ask) -> None:
    await effect("start")
    await asyncio.sleep(input.seconds)
    await effect("end")


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def three_steps(input: Ask, step: Step) -> None:
    """The first attempt stays in `b` for as long as it is asked to."""

    async def b() -> str:
        said = await mark("b")
        if current().attempt == 1:
            await asyncio.sleep(input.seconds)
        return said

    await step.run("a", mark, "a")
    await step.run("b", b)
    await step.run("c", mark, "c")


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def long_then_quick(input: Ask) -> None:
    """The first attempt takes two seconds, later ones as long as they are asked to."""
    await effect("start")
    await asyncio.sleep(2 if current().attempt == 1 else input.seconds)
    await effect("end")


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def slow_to_stop(input: Ask) -> None:
    """Needs two seconds to end when it is cancelled."""
    await effect("start")
    try:
        await asyncio.sleep(input.seconds)
    except asyncio.CancelledError:
        await effect("cancelled")
        await asyncio.sleep(2)
        await effect("unwound")
        raise
    await effect("end")


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def kills_its_worker(input: Ask) -> None:
    await effect("killing")
    os.kill(os.getpid(), signal.SIGKILL)


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def blocks_the_loop(input: Ask) -> None:
    await effect("start")
    _block(input)
    await effect("end")


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
def blocks_its_thread(input: Ask, step: SyncStep) -> None:
    effect_sync("start")
    _block(input)
    step.run("end", effect_sync, "end")


@job(Ask, idempotency_key=by_key, tenant="none", retry=TWICE, timeout="1s")
async def over_its_time(input: Ask) -> None:
    await effect("start")
    try:
        await asyncio.sleep(10)
    except asyncio.CancelledError:
        await effect("cancelled")
        await asyncio.sleep(0.3)
        await effect("cleaned up")
        raise


@job(Ask, idempotency_key=by_key, tenant="none", retry=TWICE, step_timeout="0.5s")
async def slow_step(input: Ask, step: Step) -> None:
    async def b() -> None:
        await effect("b")
        await asyncio.sleep(2)

    await step.run("a", mark, "a")
    await step.run("b", b)


@job(Ask, idempotency_key=by_key, tenant="none", retry=TWICE)
async def bad_text(input: Ask) -> None:
    await effect("run")
    texts = {"nul": "a\0b", "long": "x" * 3_000_000, "surrogate": "a\ud800b"}
    raise RuntimeError(texts[input.word])


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def charge(input: Ask, step: Step) -> None:
    async def pay() -> dict[str, Any]:
        await effect("charged")
        return {"receipt": {"text": "a\0b"}}

    await step.run("charge", pay)


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def fails_once(input: Ask, step: Step) -> None:
    async def b() -> None:
        await effect("b")
        if current().attempt == 1:
            raise RuntimeError("not yet")

    await step.run("a", mark, "a")
    await step.run("b", b)


@job(Ask, idempotency_key=by_key, tenant="none", retry=ONCE)
async def sleeper(input: Ask, step: Step) -> None:
    await step.run("before", mark, "before")
    await step.sleep("nap", float(os.environ.get("NAP", input.seconds)))
    await step.run("after", mark, "after")


@job(Ask, idempotency_key=by_key, tenant="none", retry=ONCE)
async def naps_in_a_loop(input: Ask, step: Step) -> None:
    await step.run("sleep:300ms#2", mark, "named like a derived one")
    for _ in range(3):
        await step.sleep("300ms")
    await effect("end")


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def names_a_step_twice(input: Ask, step: Step) -> None:
    await step.run("one", mark, "one")
    await step.run("one", mark, "two")


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def writes_after_cancel(input: Ask, step: Step) -> None:
    """Waits; when it is cancelled it tries to record one more step, and notes what came of it."""
    await effect("start")
    try:
        await asyncio.sleep(input.seconds)
    except asyncio.CancelledError:
        try:
            await step.run("late", mark, "late")
        except Exception as error:  # noqa: BLE001 - whatever it is, its kind is the effect
            await effect(f"refused {getattr(error, 'code', type(error).__name__)}")
        raise


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def ignores_cancel(input: Ask) -> None:
    await effect("start")
    until = time.monotonic() + input.seconds
    while time.monotonic() < until:
        try:
            await asyncio.sleep(until - time.monotonic())
        except asyncio.CancelledError:
            continue
    await effect("end")


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def terminal_in_a_step(input: Ask, step: Step) -> None:
    async def b() -> None:
        await effect("b")
        raise Terminal(input.word[::-1])

    await step.run("b", b)


@job(Ask, idempotency_key=by_key, tenant="none", retry=FAST)
async def stops_within_a_step(input: Ask, step: Step) -> None:
    """The first attempt's process stops itself within `b`, and raises when it is continued."""

    async def b() -> str:
        await effect("b")
        if current().attempt == 1:
            os.kill(os.getpid(), signal.SIGSTOP)
            raise RuntimeError("too late")
        return "two"

    await step.run("b", b)


@job(Ask, idempotency_key=by_key, tenant="none", queue="other", retry=FAST)
async def elsewhere(input: Ask) -> None:
    await effect("elsewhere")


JOBS = [
    quick,
    three_steps,
    long_then_quick,
    slow_to_stop,
    kills_its_worker,
    blocks_the_loop,
    blocks_its_thread,
    over_its_time,
    slow_step,
    bad_text,
    charge,
    fails_once,
    sleeper,
    naps_in_a_loop,
    names_a_step_twice,
    writes_after_cancel,
    ignores_cancel,
    terminal_in_a_step,
    stops_within_a_step,
    elsewhere,
]

app = App(jobs=JOBS)
old_app = App(jobs=[quick])
"""An older release, which knows one job."""


def broken_context(services: None, ctx: Context[None]) -> None:
    raise ConnectionError("no services today")


context_app = App(jobs=[quick], context=broken_context)


nowhere_app = App(jobs=[quick], schema="nowhere")
