"""A filter matches the same rows, in the same order, page by page, whichever driver reads it."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.contract.frozen import frozen_database
from tests.contract.harness import Harness, MemoryHarness, postgres_harness
from tests.contract.moves import SECOND, bring_to, end, put_and_take, step
from tests.support.servers import Server
from ultijobs._queue.records import JobState, Outcome, StopReason
from ultijobs._queue.steps import StepStatus
from ultijobs._queue.views import Sort
from ultijobs._queue.where import Field, Op, Term, Where

NAMES = ("charge", "charge_b", "refund")
QUEUES = ("default", "mail%")
TENANTS = (None, "acme", "a_me")
KEYS = (None, "k:1", "k,2", 'k"3', "k\\4")
INPUTS = (
    "null",
    '"text"',
    "1.50",
    '{"a": {"b": 1}}',
    '{"a": {"b": null}}',
    '{"a": {"b": "1"}}',
    '{"a": [true, "x", {"b": false}]}',
)
ERRORS = ("timed out after 10 s", "100% wrong", "C:\\temp_dir")
WAITING = (JobState.READY, JobState.DELAYED)
ORDER = (*(state for state in JobState if state not in WAITING), *WAITING)


def job_id(n: int) -> UUID:
    return UUID(f"0190a1b2-{n:04x}-7e5f-8a9b-{(n * 7919) % 16**6:06x}{n:06x}")


async def fill(harness: Harness) -> None:
    """Each state with each kind of value; what waits comes last, so that no claim takes it."""
    n = 0
    for state in ORDER:
        for turn in range(5):
            n += 1
            await bring_to(
                harness,
                state,
                id=job_id(n),
                name=NAMES[n % 3],
                queue=QUEUES[n % 2],
                tenant_id=TENANTS[(n + turn) % 3],
                idempotency_key=None if KEYS[n % 5] is None else f"{KEYS[n % 5]}/{n}",
                priority=(0, 5, -3)[turn % 3],
                input=INPUTS[n % 7],
            )
            await harness.advance(SECOND)
    for error in ERRORS:
        n += 1
        claimed = await put_and_take(harness, id=job_id(n), name=f"failing-{n}", queue="failing")
        await harness.driver.record_steps([step(claimed, f"s{n % 2}", status=StepStatus.FAILED)])
        stopped = {
            "stop_reason": StopReason.ATTEMPTS_EXHAUSTED,
            "error_code": f"X_{n % 2}",
            "fingerprint": f"ab{n % 2}c",
        }
        await end(harness, claimed, Outcome.DEAD, error=error, **stopped)


def words(field: Field, *values: str | None, **fields: Any) -> st.SearchStrategy[Term]:
    some = st.lists(st.sampled_from([v for v in values if v is not None]), min_size=1, max_size=3).map(tuple)
    return st.builds(Term, st.just(field), fields.pop("op", st.just(Op.IS)), some, st.booleans(), **fields)


_ids = st.integers(1, 60).map(job_id).flatmap(lambda i: st.sampled_from([i.hex, i.hex[-6:], i.hex[-13:]]))
terms = st.one_of(
    words(Field.STATE, *JobState),
    words(Field.QUEUE, *QUEUES, "mail*", "m%", "failing", "*"),
    words(Field.JOB, *NAMES, "charge*", "charge_*", "failing-*"),
    words(Field.TENANT, *TENANTS, "a*", "A*"),
    words(Field.REASON, *StopReason, "term*"),
    words(Field.CODE, "X_0", "X_BROKEN", "X*"),
    words(Field.FINGERPRINT, "ab0", "ab", "b", "ab_c"),
    words(Field.KEY, "k:1/6", "k*", "k,*", 'k"*', "k\\*", "k_*"),
    words(Field.WORKER, "w-1", "w*"),
    words(Field.STEP, "s0", "s*", "one"),
    words(Field.PRIORITY, "0", "5", "-3"),
    words(Field.ERROR, "TIMED", "100%", "100_", "C:\\t", "", op=st.just(Op.CONTAINS)),
    words(
        Field.INPUT,
        "1",
        "1.50",
        "null",
        "true",
        "x",
        "t*",
        "*",
        path=st.sampled_from(["a", "a.b", "a.0", "a.1", "a.2.b", "z"]),
    ),
    st.builds(Term, st.sampled_from([Field.ID, Field.RUN]), st.just(Op.IS), _ids.map(lambda i: (i,)), st.booleans()),
    st.builds(
        Term,
        st.just(Field.AGE),
        st.sampled_from([Op.OVER, Op.UNDER]),
        st.just(()),
        st.booleans(),
        st.integers(0, 60).map(lambda n: timedelta(seconds=n)),
    ),
)
filters = st.builds(Where, st.lists(terms, max_size=3).map(tuple), st.sampled_from([None, None, None, "acme"]))


async def answers(harness: Harness, where: Where, sort: Sort, limit: int) -> tuple[Any, ...]:
    store = harness.driver.inspect
    rows: list[Any] = []
    after: str | None = None
    while True:
        page = await store.jobs(where, sort=sort, after=after, limit=limit)
        rows += [(row.id, row.state, row.waiting_on) for row in page.rows]
        after = page.next
        if after is None:
            break
    now = await store.now()
    targets = await store.targets(where, as_of=now, after=job_id(3), limit=7)
    causes = [(c.stop_reason, c.fingerprint, c.count, c.jobs, c.queues, c.tenants) for c in await store.causes(where)]
    return rows, await store.count(where, cap=20), targets, causes


@pytest.fixture
def runner() -> Iterator[asyncio.Runner]:
    with asyncio.Runner() as made:
        yield made


def test_both_drivers_read_a_filter_alike(pg: Server, runner: asyncio.Runner) -> None:
    making = postgres_harness(frozen_database(pg), set())
    real = runner.run(making.__aenter__())
    model = MemoryHarness(set())
    runner.run(real.empty(model.now()))
    runner.run(fill(model))
    runner.run(fill(real))

    @settings(max_examples=120, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
    @given(filters, st.sampled_from(list(Sort)), st.integers(1, 9))
    def agree(where: Where, sort: Sort, limit: int) -> None:
        assert runner.run(answers(real, where, sort, limit)) == runner.run(answers(model, where, sort, limit))

    try:
        agree()
    finally:
        runner.run(making.__aexit__(None, None, None))
