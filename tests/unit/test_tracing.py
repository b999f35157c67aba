"""Spans and trace parents, with a real tracer; and nothing at all for applications that do not trace."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from pydantic import BaseModel

from ultijobs import App, RetryPolicy, Step, SyncStep, Worker, job, task
from ultijobs._queue.where import ANY
from ultijobs._scheduler.scheduler import Scheduler
from ultijobs.memory import MemoryDriver


class Ask(BaseModel):
    key: str


SEEN: list[trace.SpanContext] = []


def seen() -> str:
    SEEN.append(trace.get_current_span().get_span_context())
    return "ok"


async def seen_async() -> str:
    return seen()


@job(Ask, idempotency_key=lambda i: i.key, tenant="none", retry=RetryPolicy(attempts=2, backoff="fixed", delay=0))
async def ship(input: Ask, step: Step) -> None:
    await step.run("pack", seen_async)
    await step.run("weigh", seen)
    if input.key == "bad":
        raise ValueError("no address")
    if input.key == "chain":
        await ship.enqueue(Ask(key="next"))
    if input.key == "nap":
        await step.sleep("nap", "1ms")


@job(Ask, idempotency_key=lambda i: i.key, tenant="none")
def ship_sync(input: Ask, step: SyncStep) -> None:
    step.run("pack", seen)


@pytest.fixture
def spans(monkeypatch: pytest.MonkeyPatch) -> Iterator[InMemorySpanExporter]:
    exporter, provider = InMemorySpanExporter(), TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    monkeypatch.setattr(trace, "get_tracer_provider", lambda: provider)
    SEEN.clear()
    yield exporter
    provider.shutdown()


def named(spans: InMemorySpanExporter, name: str) -> list[ReadableSpan]:
    return [span for span in spans.get_finished_spans() if span.name == name]


def context(span: ReadableSpan) -> trace.SpanContext:
    assert span.context is not None
    return span.context


def parent_of(span: ReadableSpan) -> int | None:
    return None if span.parent is None else span.parent.span_id


async def run(*keys: str, handle: Any = ship) -> App[Any]:
    app = App(jobs=[ship, ship_sync], driver=MemoryDriver())
    async with app:
        for key in keys:
            await handle.enqueue(Ask(key=key))
        await Worker(app, poll="20ms").run_until_idle()
    return app


async def test_an_attempt_is_a_child_of_its_enqueue_and_its_steps_are_children_of_it(spans: InMemorySpanExporter):
    with trace.get_tracer("shop").start_as_current_span("request") as request:
        await run("a")
    (enqueue,), (attempt,) = named(spans, "enqueue ship"), named(spans, "job.ship")
    assert parent_of(enqueue) == request.get_span_context().span_id
    assert (enqueue.kind, attempt.kind) == (trace.SpanKind.PRODUCER, trace.SpanKind.CONSUMER)
    assert parent_of(attempt) == context(enqueue).span_id
    assert context(attempt).trace_id == request.get_span_context().trace_id
    steps = named(spans, "step pack") + named(spans, "step weigh")
    assert [parent_of(step) for step in steps] == [context(attempt).span_id] * 2
    assert [each.span_id for each in SEEN] == [context(step).span_id for step in steps]
    told = dict(attempt.attributes or {})
    assert (told["job.name"], told["job.queue"], told["job.attempt"]) == ("ship", "default", 1)
    assert told["job.outcome"] == "ok"
    assert told["job.id"] == dict(enqueue.attributes or {})["job.id"]
    assert attempt.status.is_unset


async def test_a_handler_in_a_thread_is_traced_alike(spans: InMemorySpanExporter):
    await run("a", handle=ship_sync)
    (attempt,), (step,) = named(spans, "job.ship_sync"), named(spans, "step pack")
    assert parent_of(step) == context(attempt).span_id
    assert [each.span_id for each in SEEN] == [context(step).span_id]


async def test_each_attempt_of_a_failing_job_is_a_span_with_its_error_and_the_same_parent(spans: InMemorySpanExporter):
    await run("bad")
    attempts = named(spans, "job.ship")
    assert [dict(each.attributes or {})["job.outcome"] for each in attempts] == ["retried", "dead"]
    assert {parent_of(each) for each in attempts} == {context(named(spans, "enqueue ship")[0]).span_id}
    assert [each.status.status_code for each in attempts] == [trace.StatusCode.ERROR] * 2
    assert [event.name for each in attempts for event in each.events] == ["exception", "exception"]
    assert len(named(spans, "step pack")) == 1, "a replayed step runs nothing"


async def test_an_error_whose_text_cannot_be_had_is_an_error_like_any_other(spans: InMemorySpanExporter):
    class Unspeakable(Exception):
        def __str__(self) -> str:
            raise RuntimeError("no text")

    @job(Ask, idempotency_key=lambda i: i.key, tenant="none", retry=RetryPolicy(attempts=1))
    async def speak(input: Ask, step: Step) -> None:
        def say() -> None:
            raise Unspeakable

        await step.run("say", say)

    app = App(jobs=[speak], driver=MemoryDriver())
    async with app:
        await speak.enqueue(Ask(key="a"))
        await Worker(app, poll="20ms").run_until_idle()
        (row,) = (await app.driver.inspect.jobs(ANY)).rows
    assert row.state == "dead"
    assert "Unspeakable" in (row.error_code or "")
    ended = named(spans, "job.speak") + named(spans, "step say")
    assert [span.status.status_code for span in ended] == [trace.StatusCode.ERROR] * 2


async def test_a_run_that_sleeps_is_a_span_per_attempt_none_of_them_an_error(spans: InMemorySpanExporter):
    app = App(jobs=[ship], driver=MemoryDriver())
    async with app:
        await ship.enqueue(Ask(key="nap"))
        for _ in range(2):
            await Worker(app, poll="20ms").run_until_idle()
    attempts = named(spans, "job.ship")
    assert [dict(each.attributes or {})["job.outcome"] for each in attempts] == ["suspended", "ok"]
    assert len({parent_of(each) for each in attempts}) == 1
    assert all(each.status.is_unset for each in attempts)


async def test_a_job_that_a_handler_enqueues_goes_on_with_its_trace(spans: InMemorySpanExporter):
    await run("chain")
    first, second = named(spans, "job.ship")
    assert context(first).trace_id == context(second).trace_id
    enqueue = named(spans, "enqueue ship")[1]
    assert parent_of(enqueue) == context(first).span_id
    assert parent_of(second) == context(enqueue).span_id


async def test_a_worker_does_not_lend_its_own_span_to_jobs_without_one(spans: InMemorySpanExporter):
    app = App(jobs=[ship], driver=MemoryDriver())
    async with app:
        with pytest.MonkeyPatch.context() as untraced:
            untraced.delitem(sys.modules, "opentelemetry.trace")
            await ship.enqueue(Ask(key="a"))
        with trace.get_tracer("ops").start_as_current_span("deploy"):
            await Worker(app, poll="20ms").run_until_idle()
    (attempt,) = named(spans, "job.ship")
    assert attempt.parent is None


async def test_a_task_s_jobs_are_children_of_its_dispatch(spans: InMemorySpanExporter):
    @task(cron="* * * * * *", tz="UTC")
    def each_second(occurrence: Any) -> list[Any]:
        return [ship.request(Ask(key=str(occurrence)))]

    app = App(jobs=[ship], tasks=[each_second], driver=MemoryDriver())
    async with app:
        scheduler = Scheduler(app)
        while not (rows := (await app.driver.inspect.jobs(ANY)).rows):
            await scheduler.run_once()
    dispatched = named(spans, "task.each_second")[0]
    stamped = f"00-{context(dispatched).trace_id:032x}-{context(dispatched).span_id:016x}-"
    assert (rows[-1].traceparent or "").startswith(stamped)


async def test_a_trace_parent_that_is_none_begins_a_trace(spans: InMemorySpanExporter):
    app = App(jobs=[ship], driver=MemoryDriver())
    async with app:
        await ship.enqueue(Ask(key="a"))
        driver: Any = app.driver
        for row in driver._store.jobs.values():
            row.traceparent = "00-zz"
        await Worker(app, poll="20ms").run_until_idle()
    (attempt,) = named(spans, "job.ship")
    assert attempt.parent is None


async def test_without_opentelemetry_nothing_is_stamped(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.delitem(sys.modules, "opentelemetry.trace")
    app = await run("a")
    (row,) = (await app.driver.inspect.jobs(ANY)).rows
    assert (row.state, row.traceparent) == ("done", None)
