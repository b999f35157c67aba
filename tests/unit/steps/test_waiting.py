"""Waiting for events: what a handler gets, when it is over, and what it may ask for."""

import contextlib
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, timedelta
from decimal import Decimal
from typing import Any

import pytest
from pydantic import BaseModel, TypeAdapter

from tests.support.attempts import EPOCH, Bench, Declared
from ultijobs._definitions.event import Event
from ultijobs._queue.records import Outcome, StopReason
from ultijobs._steps.step import Step
from ultijobs._steps.sync_step import SyncStep

DAY = timedelta(days=1)


class Node(BaseModel):
    name: str
    children: "list[Node]" = []


@dataclass
class Day:
    on: date


def waiting(got: list[Any], **options: Any) -> Callable[[Step], Any]:
    async def handler(step: Step) -> None:
        got.append(await step.wait_for_event("wait", "paid", **options))

    return handler


async def test_a_wait_parks_until_its_deadline_and_goes_on_with_the_event():
    got: list[Event[Any]] = []
    bench = Bench(waiting(got, match="o-1"), attempts=1)
    parked = await bench.run()
    assert parked is not None
    assert (parked.outcome, parked.run_at) == (Outcome.SUSPENDED, EPOCH + DAY)
    bench.steps.now = EPOCH
    bench.steps.publish("paid", '{"n": 1}', "o-1")
    assert await bench.run_out() == [Outcome.SUSPENDED, Outcome.OK]
    (event,) = got
    assert (event.name, event.key, event.payload) == ("paid", "o-1", {"n": 1})
    assert (event.published_at, event.published_at.tzinfo) == (EPOCH, UTC)


async def test_an_event_that_is_there_costs_no_suspension_and_replays():
    got: list[Event[Any]] = []

    async def handler(step: Step, ctx: Any) -> None:
        got.append(await step.wait_for_event("wait", "paid", required=True))
        if ctx.attempt == 1:
            raise ConnectionError("once")

    bench = Bench(handler)
    bench.steps.publish("paid", "7")
    assert await bench.run_out() == [Outcome.RETRIED, Outcome.OK]
    assert got[0] == got[1]
    assert len(bench.steps.looks) == 1


async def test_a_null_payload_is_an_event_all_the_same():
    got: list[Event[None] | None] = []
    bench = Bench(waiting(got, payload=type(None)))
    bench.steps.publish("paid")
    assert await bench.run_out() == [Outcome.OK]
    assert got[0] is not None
    assert got[0].payload is None


@pytest.mark.parametrize(
    ("payload", "text", "value"),
    [
        (Node, '{"name": "a", "children": [{"name": "b"}]}', Node(name="a", children=[Node(name="b")])),
        (TypeAdapter(list[Node]), '[{"name": "a"}]', [Node(name="a")]),
        (Day, '{"on": "2026-01-31"}', Day(date(2026, 1, 31))),
        (Decimal, '"0.10000000000000000001"', Decimal("0.10000000000000000001")),
        (int, "123456789012345678901234567890", 123456789012345678901234567890),
        (set[int], "[1, 2]", {1, 2}),
        (int | None, "null", None),
        (Any, '{"a": [1.5, null]}', {"a": [1.5, None]}),
    ],
    ids=str,
)
async def test_a_payload_is_read_as_the_type_that_was_asked_for(payload: Any, text: str, value: Any):
    got: list[Event[Any]] = []
    bench = Bench(waiting(got, payload=payload))
    bench.steps.publish("paid", text)
    assert await bench.run_out() == [Outcome.OK]
    assert got[0].payload == value
    assert type(got[0].payload) is type(value)


async def test_a_payload_that_does_not_fit_stops_the_job_with_its_path():
    bench = Bench(waiting([], payload=Node))
    bench.steps.publish("paid", '{"name": "a", "children": [{"name": 7}]}')
    assert await bench.run_out() == [Outcome.DEAD]
    last = bench.settled[-1]
    assert last is not None
    assert (last.error_code, last.stop_reason) == ("X_PAYLOAD_INVALID", StopReason.TERMINAL)
    assert "$.children[0].name" in str(last.error)


async def test_a_wait_that_is_over_answers_none_and_is_logged_once(caplog: pytest.LogCaptureFixture):
    got: list[Any] = []

    async def handler(step: Step, ctx: Any) -> None:
        got.append(await step.wait_for_event("wait", "paid", timeout="1h"))
        if ctx.attempt == 1:
            raise ConnectionError("once")

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.SUSPENDED, Outcome.RETRIED, Outcome.OK]
    assert got == [None, None]
    assert [record.__dict__["event"] for record in caplog.records].count("jobs.step.wait-timeout") == 1


@pytest.mark.parametrize("swallowed", [False, True])
async def test_a_required_event_that_does_not_come_stops_the_job_at_once(swallowed: bool):
    async def handler(step: Step) -> None:
        with contextlib.suppress(Exception) if swallowed else contextlib.nullcontext():
            await step.wait_for_event("wait", "paid", match="o-1", timeout="1s", required=True)

    bench = Bench(handler, attempts=4)
    assert await bench.run_out() == [Outcome.SUSPENDED, Outcome.DEAD]
    last = bench.settled[-1]
    assert last is not None
    assert (last.error_code, last.stop_reason, last.attempt) == ("X_JOB_TIMEOUT", StopReason.TERMINAL, 1)
    assert "'wait'" in str(last.error)
    assert "matching 'o-1'" in str(last.error)


async def test_a_wait_of_no_time_looks_once():
    got: list[Any] = []
    assert await Bench(waiting(got, timeout=0)).run_out() == [Outcome.OK]
    bench = Bench(waiting(got, timeout=0))
    bench.steps.publish("paid")
    assert await bench.run_out() == [Outcome.OK]
    assert [event and event.name for event in got] == [None, "paid"]


async def test_a_declared_poll_looks_again_before_the_deadline():
    bench = Bench(Declared(waiting([], timeout="25s"), event_poll=timedelta(seconds=10)))
    assert await bench.run_out() == [Outcome.SUSPENDED] * 3 + [Outcome.OK]
    looked = [settled.run_at for settled in bench.settled if settled is not None]
    assert looked == [EPOCH + timedelta(seconds=seconds) for seconds in (10, 20, 25)] + [None]


async def test_a_changed_event_is_waited_for_until_the_first_deadline():
    asked = [("paid", None), ("refunded", "o-1"), ("refunded", "o-1")]

    async def handler(step: Step) -> None:
        event, match = asked.pop(0)
        await step.wait_for_event("wait", event, match=match, timeout="1h")

    bench = Bench(handler)
    await bench.run()
    bench.steps.now = EPOCH
    again = await bench.run()
    assert again is not None
    assert again.run_at == EPOCH + timedelta(hours=1)
    assert (bench.steps.records["wait"].event, bench.steps.records["wait"].match) == ("refunded", "o-1")
    assert (await bench.run_out())[-1] is Outcome.OK


async def test_a_catch_all_around_a_wait_does_not_end_it():
    went_on: list[str] = []

    async def handler(step: Step) -> None:
        with contextlib.suppress(Exception):
            await step.wait_for_event("wait", "paid")
        went_on.append("after")

    bench = Bench(handler)
    await bench.run()
    assert went_on == []
    bench.steps.publish("paid")
    assert (await bench.run_out())[-1] is Outcome.OK


async def test_plain_handlers_wait_too():
    got: list[Any] = []

    def handler(step: SyncStep) -> None:
        with contextlib.suppress(Exception):
            got.append(step.wait_for_event("wait", "paid", payload=int, required=True))

    bench = Bench(handler)
    parked = await bench.run()
    assert parked is not None
    assert parked.outcome is Outcome.SUSPENDED
    bench.steps.publish("paid", "7")
    assert (await bench.run_out())[-1] is Outcome.OK
    assert got[0].payload == 7


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ({"event": ""}, "X_INVARIANT"),
        ({"event": "a b"}, "X_INVARIANT"),
        ({"event": 7}, "X_INVARIANT"),
        ({"match": ""}, "X_INVARIANT"),
        ({"match": 7}, "X_INVARIANT"),
        ({"match": "x" * 2_000}, "X_INVARIANT"),
        ({"match": "\x00"}, "X_PAYLOAD_INVALID"),
        ({"since": "ever"}, "X_INVARIANT"),
        ({"required": 1}, "X_INVARIANT"),
        ({"timeout": "soon"}, "X_DURATION_INVALID"),
        ({"timeout": -1}, "X_DURATION_INVALID"),
        pytest.param({"payload": object()}, "X_PAYLOAD_INVALID", id="no type"),
        ({"payload": Bench}, "X_PAYLOAD_INVALID"),
    ],
    ids=str,
)
async def test_an_argument_that_makes_no_sense_is_refused_at_the_call(options: dict[str, Any], code: str):
    async def handler(step: Any) -> None:
        await step.wait_for_event("wait", **{"event": "paid", **options})

    bench = Bench(handler)
    assert await bench.run_out() == [Outcome.DEAD]
    last = bench.settled[-1]
    assert last is not None
    assert last.error_code == code
    assert bench.steps.records == {}
