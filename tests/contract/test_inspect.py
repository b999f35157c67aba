"""Reads: pages that neither skip nor repeat, filters on every field, counts that add up."""

from __future__ import annotations

from datetime import timedelta
from uuid import UUID

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import (
    bring_to,
    end,
    job,
    put,
    put_and_take,
    record,
    renew,
    row,
    step,
    stop,
    take,
)
from ultijobs._ids import new_id
from ultijobs._queue.claims import Beat
from ultijobs._queue.records import JobState, Outcome, StopReason
from ultijobs._queue.steps import StepStatus
from ultijobs._queue.telling import CatalogEntry
from ultijobs._queue.views import Count, Sort, by_name
from ultijobs._queue.where import ANY, Field, Op, Term, Where
from ultijobs.errors import Invariant

SECOND = timedelta(seconds=1)


def where(field: Field, *values: str, op: Op = Op.IS, **more: object) -> Where:
    return Where((Term(field, op, values, **more),))  # type: ignore[arg-type]


async def ids(harness: Harness, filter: Where, sort: Sort = Sort.OLDEST) -> list[UUID]:
    return [found.id for found in (await harness.driver.inspect.jobs(filter, sort=sort)).rows]


# -- single rows -------------------------------------------------------------------------------------------
async def test_a_job_that_is_not_there(harness: Harness) -> None:
    assert await harness.driver.inspect.job(new_id()) is None
    assert await harness.driver.inspect.input(new_id()) is None
    assert await harness.driver.inspect.steps(new_id()) == []
    assert await harness.driver.inspect.attempts(new_id()) == []


@pytest.mark.parametrize("state", sorted(JobState))
async def test_a_job_of_another_tenant_is_not_there(harness: Harness, state: JobState) -> None:
    job_id = await bring_to(harness, state, tenant_id="acme")
    assert await harness.driver.inspect.job(job_id, tenant="globex") is None
    found = await harness.driver.inspect.job(job_id, tenant="acme")
    assert found is not None
    assert found == await row(harness, job_id)


@pytest.mark.parametrize("state", sorted(JobState))
async def test_the_input_of_any_state_can_be_read(harness: Harness, state: JobState) -> None:
    job_id = await bring_to(harness, state, input='{"card": 4242}')
    assert await harness.driver.inspect.input(job_id) == '{"card": 4242}'


@pytest.mark.parametrize("state", [JobState.READY, JobState.DONE, JobState.DEAD])
async def test_an_id_is_found_by_its_tail(harness: Harness, state: JobState) -> None:
    job_id = await bring_to(harness, state, tenant_id="acme")
    resolve = harness.driver.inspect.resolve
    assert await resolve(job_id.hex[-8:]) == [job_id]
    assert await resolve(job_id.hex[-6:].upper()) == [job_id]
    assert await resolve(str(job_id)) == [job_id]
    assert await resolve("ffffff000000") == []
    assert await resolve(job_id.hex[-8:], tenant="globex") == []


async def test_a_tail_of_many_answers_no_more_than_asked(harness: Harness) -> None:
    twins = sorted(UUID(int=(n << 64) + 0xABCDEF) for n in range(1, 6))
    await harness.driver.enqueue([job(id=job_id) for job_id in twins])
    found = await harness.driver.inspect.resolve("abcdef", limit=3)
    assert len(found) == 3
    assert set(found) <= set(twins)
    assert sorted(await harness.driver.inspect.resolve("abcdef", limit=9)) == twins


async def test_attempts_come_in_their_order(harness: Harness) -> None:
    await put(harness, max_attempts=9)
    numbers: list[int] = []
    for outcome in (Outcome.RETRIED, Outcome.RETURNED, Outcome.DEAD):
        (claimed,) = await take(harness)
        numbers.append(claimed.lease_no)
        await end(harness, claimed, outcome)
    attempts = await harness.driver.inspect.attempts(claimed.run_id)
    assert [attempt.lease_no for attempt in attempts] == numbers
    assert [attempt.outcome for attempt in attempts] == ["retried", "returned", "dead"]


# -- pages -------------------------------------------------------------------------------------------------
async def every_page(harness: Harness, sort: Sort, limit: int) -> list[UUID]:
    seen: list[UUID] = []
    after: str | None = None
    for _ in range(50):
        page = await harness.driver.inspect.jobs(ANY, sort=sort, after=after, limit=limit)
        assert len(page.rows) <= limit
        seen += [found.id for found in page.rows]
        after = page.next
        if after is None:
            return seen
    raise AssertionError("the pages do not end")


@pytest.mark.parametrize("token", ["", "yesterday", "1.x", "l0.xx~h", "1" * 500])
async def test_what_is_no_page_s_next_is_refused(harness: Harness, token: str) -> None:
    with pytest.raises(Invariant):
        await harness.driver.inspect.jobs(ANY, after=token)


@pytest.mark.parametrize("limit", [1, 2, 3, 7, 50])
@pytest.mark.parametrize("sort", [Sort.NEWEST, Sort.OLDEST])
async def test_pages_neither_skip_nor_repeat(harness: Harness, sort: Sort, limit: int) -> None:
    for state in JobState:
        await bring_to(harness, state, name=f"job-{state}")
        await harness.advance(SECOND)
    everything = (await harness.driver.inspect.jobs(ANY, sort=sort)).rows
    assert len(everything) == len(JobState)
    ordered = sorted((found.id for found in everything), reverse=sort is Sort.NEWEST)
    assert [found.id for found in everything] == ordered
    assert await every_page(harness, sort, limit) == ordered


async def test_a_page_that_ends_exactly_is_the_last(harness: Harness) -> None:
    await harness.driver.enqueue([job() for _ in range(4)])
    page = await harness.driver.inspect.jobs(ANY, limit=2)
    assert page.next is not None
    assert (await harness.driver.inspect.jobs(ANY, after=page.next, limit=2)).next is None
    assert page.as_of == await harness.driver.inspect.now()


async def test_a_page_is_not_moved_by_newer_rows(harness: Harness) -> None:
    old = [await put(harness) for _ in range(4)]
    page = await harness.driver.inspect.jobs(ANY, limit=2)
    await put(harness)
    rest = await harness.driver.inspect.jobs(ANY, after=page.next)
    assert [found.id for found in [*page.rows, *rest.rows]] == sorted(old, reverse=True)


async def test_waiting_rows_by_when_they_are_due(harness: Harness) -> None:
    later, soon = await put(harness, delay=20 * SECOND), await put(harness, delay=10 * SECOND)
    now = [await put(harness) for _ in range(2)]
    waiting = where(Field.STATE, "ready", "delayed")
    assert await ids(harness, waiting, Sort.DUE) == [*sorted(now), soon, later]
    first = await harness.driver.inspect.jobs(waiting, sort=Sort.DUE, limit=3)
    rest = await harness.driver.inspect.jobs(waiting, sort=Sort.DUE, after=first.next)
    assert [found.id for found in rest.rows] == [later]


async def test_stopped_rows_by_their_end(harness: Harness) -> None:
    await harness.driver.enqueue([job() for _ in range(3)])
    claimed = await take(harness)
    for one in (claimed[1], claimed[0], claimed[2]):
        await harness.advance(SECOND)
        await end(harness, one, Outcome.DEAD)
    stopped = where(Field.STATE, "dead", "failed")
    expected = [claimed[2].id, claimed[0].id, claimed[1].id]
    assert await ids(harness, stopped, Sort.STOPPED) == expected
    first = await harness.driver.inspect.jobs(stopped, sort=Sort.STOPPED, limit=1)
    rest = await harness.driver.inspect.jobs(stopped, sort=Sort.STOPPED, after=first.next)
    assert [found.id for found in rest.rows] == expected[1:]


async def test_no_list_carries_an_input(harness: Harness) -> None:
    for state in JobState:
        await bring_to(harness, state, name=f"job-{state}", input='{"card": "s3cret"}')
    reads = harness.driver.inspect
    told = [await reads.jobs(ANY), await reads.leases(), await reads.causes(ANY), await reads.stats()]
    assert "s3cret" not in repr(told)


# -- filters -----------------------------------------------------------------------------------------------
@pytest.mark.parametrize("state", sorted(JobState))
async def test_every_state_can_be_filtered(harness: Harness, state: JobState) -> None:
    made = {each: await bring_to(harness, each, name=f"job-{each}") for each in JobState}
    assert await ids(harness, where(Field.STATE, state.value)) == [made[state]]
    assert await harness.driver.inspect.count(where(Field.STATE, state.value)) == Count(1)
    rest = await ids(harness, where(Field.STATE, state.value, negated=True))
    assert set(rest) == set(made.values()) - {made[state]}


async def test_a_state_of_a_newer_release_is_listed_as_it_is(harness: Harness) -> None:
    job_id, other = await put(harness), await put(harness)
    await harness.write_state(job_id, "frozen")
    listed = {found.id: found.state for found in (await harness.driver.inspect.jobs(ANY)).rows}
    assert listed == {job_id: "frozen", other: "ready"}
    assert (await row(harness, job_id)).state == "frozen"
    assert await ids(harness, where(Field.STATE, "frozen")) == [job_id]
    assert [claimed.id for claimed in await take(harness)] == [other]


async def _plain(harness: Harness) -> tuple[UUID, UUID]:
    """A job that matches each filter below, and one that matches none."""
    match = job(
        "charge.card",
        queue="billing",
        tenant_id="acme",
        idempotency_key="order-1",
        priority=5,
        input='{"a": {"b": [1, "x"]}}',
    )
    other = job("refund", queue="default", tenant_id="globex", idempotency_key="order-2", input='{"a": {"b": [2]}}')
    await harness.driver.enqueue([match, other])
    (claimed,) = await take(harness, "charge.card", queues={"billing": 1}, worker="w-9")
    await record(harness, step(claimed, "pack", status=StepStatus.FAILED, output=None, error="no"))
    await end(
        harness,
        claimed,
        Outcome.DEAD,
        worker_id="w-9",
        stop_reason=StopReason.ATTEMPTS_EXHAUSTED,
        error_code="shop.Declined",
        error="shop.Declined: card 4242 said NO",
        fingerprint="7f3a99",
    )
    return match.id, other.id


@pytest.mark.parametrize(
    ("field", "values"),
    [
        (Field.QUEUE, ["billing"]),
        (Field.QUEUE, ["bill*"]),
        (Field.QUEUE, ["nowhere", "billing"]),
        (Field.JOB, ["charge.card"]),
        (Field.JOB, ["charge*"]),
        (Field.TENANT, ["acme"]),
        (Field.KEY, ["order-1"]),
        (Field.REASON, ["attempts-exhausted"]),
        (Field.CODE, ["shop.Declined"]),
        (Field.CODE, ["shop.*"]),
        (Field.FINGERPRINT, ["7f3a"]),
        (Field.PRIORITY, ["5"]),
        (Field.STEP, ["pack"]),
    ],
)
async def test_a_field_is_matched_and_its_negation_is_the_rest(
    harness: Harness, field: Field, values: list[str]
) -> None:
    match, other = await _plain(harness)
    assert await ids(harness, where(field, *values)) == [match]
    assert await ids(harness, where(field, *values, negated=True)) == [other]
    assert await harness.driver.inspect.count(where(field, *values)) == Count(1)


async def test_ids_and_runs_are_matched_by_tail(harness: Harness) -> None:
    match, _ = await _plain(harness)
    for field in (Field.ID, Field.RUN):
        for value in (match.hex, match.hex[-6:]):
            assert await ids(harness, where(field, value)) == [match]


async def test_a_worker_is_matched_by_what_it_holds(harness: Harness) -> None:
    await put(harness)
    (claimed,) = await take(harness, worker="w-east")
    await put(harness)
    await take(harness, worker="w-west")
    assert await ids(harness, where(Field.WORKER, "w-east")) == [claimed.id]


async def test_a_running_step_is_matched(harness: Harness) -> None:
    claimed, _ = await put_and_take(harness), await put_and_take(harness)
    await renew(harness, Beat(claimed.id, claimed.lease_no, step="pack"))
    assert await ids(harness, where(Field.STEP, "pack")) == [claimed.id]


async def test_unindexed_words_filter_beside_an_indexed_one(harness: Harness) -> None:
    match, _ = await _plain(harness)
    dead = Term(Field.STATE, Op.IS, ("dead",))
    says = Term(Field.ERROR, Op.CONTAINS, ("SAID no",))
    other = Term(Field.ERROR, Op.CONTAINS, ("100% _else_",))
    has = Term(Field.INPUT, Op.IS, ("x",), path="a.b.1")
    lacks = Term(Field.INPUT, Op.IS, ("y",), path="a.b.1")
    assert await ids(harness, Where((dead, says))) == [match]
    assert await ids(harness, Where((dead, other))) == []
    assert await ids(harness, Where((dead, has))) == [match]
    assert await ids(harness, Where((dead, lacks))) == []


async def test_priorities_and_ages_are_compared(harness: Harness) -> None:
    low = await put(harness, priority=-2)
    await harness.advance(60 * SECOND)
    high = await put(harness, priority=8)
    assert await ids(harness, where(Field.PRIORITY, "0", op=Op.OVER)) == [high]
    assert await ids(harness, where(Field.PRIORITY, "0", op=Op.UNDER)) == [low]
    ready = Term(Field.STATE, Op.IS, ("ready",))
    for op, expected in ((Op.OVER, low), (Op.UNDER, high)):
        assert await ids(harness, Where((ready, Term(Field.AGE, op, duration=30 * SECOND)))) == [expected]


async def test_age_counts_from_the_start_of_a_run_and_from_the_end_of_a_stop(harness: Harness) -> None:
    await harness.driver.enqueue([job(), job()])
    await harness.advance(60 * SECOND)
    running, stopped = await take(harness)
    await harness.advance(10 * SECOND)
    await end(harness, stopped, Outcome.DEAD)
    await harness.advance(5 * SECOND)
    young = Term(Field.AGE, Op.UNDER, duration=16 * SECOND)
    for state, age, job_id in (("running", 15, running.id), ("dead", 5, stopped.id)):
        only = Term(Field.STATE, Op.IS, (state,))
        older = Term(Field.AGE, Op.OVER, duration=(age - 1) * SECOND)
        assert await ids(harness, Where((only, young, older))) == [job_id]
        assert await ids(harness, Where((only, Term(Field.AGE, Op.OVER, duration=(age + 1) * SECOND)))) == []


async def test_a_tenant_s_scope_hides_all_others(harness: Harness) -> None:
    mine = await put(harness, tenant_id="acme")
    await put(harness, tenant_id="globex")
    await put(harness)
    scope = Where((), tenant="acme")
    assert await ids(harness, scope) == [mine]
    assert await harness.driver.inspect.count(scope) == Count(1)
    now = await harness.driver.inspect.now()
    assert await harness.driver.inspect.targets(scope, as_of=now) == [mine]
    stats = await harness.driver.inspect.stats(tenant="acme")
    assert stats.totals["ready"] == Count(1)


# -- counts ------------------------------------------------------------------------------------------------
async def test_totals_add_up(harness: Harness) -> None:
    expected = {state.value: n for n, state in enumerate(JobState, start=1)}
    for state, times in expected.items():
        for _ in range(times):
            await bring_to(harness, JobState(state), name=f"job-{state}", queue="q")
    await put(harness, queue="elsewhere")
    stats = await harness.driver.inspect.stats(queue="q")
    assert {state: count.value for state, count in stats.totals.items()} == expected
    assert [found.queue for found in stats.queues] == ["q"]
    everything = await harness.driver.inspect.stats()
    assert everything.totals["ready"] == Count(expected["ready"] + 1)
    assert {found.queue for found in everything.queues} == {"q", "elsewhere"}
    for state, times in expected.items():
        chosen = Where((Term(Field.STATE, Op.IS, (state,)), Term(Field.QUEUE, Op.IS, ("q",))))
        assert await harness.driver.inspect.count(chosen) == Count(times)


async def test_an_empty_store_counts_to_zero(harness: Harness) -> None:
    stats = await harness.driver.inspect.stats()
    assert {state: count.value for state, count in stats.totals.items()} == dict.fromkeys(JobState, 0)
    assert (stats.queues, stats.oldest_ready_ms) == ([], None)
    assert stats.as_of == await harness.driver.inspect.now()


async def test_the_oldest_ready_is_the_longest_due(harness: Harness) -> None:
    await put(harness, delay=5 * SECOND)
    await harness.advance(2 * SECOND)
    assert (await harness.driver.inspect.stats()).oldest_ready_ms is None
    await harness.advance(10 * SECOND)
    await put(harness, queue="other")
    stats = await harness.driver.inspect.stats()
    assert stats.oldest_ready_ms == 7_000
    assert {found.queue: found.oldest_ready_ms for found in stats.queues} == {"default": 7_000, "other": 0}


async def test_a_count_stops_at_its_cap(harness: Harness) -> None:
    await harness.driver.enqueue([job() for _ in range(5)])
    ready = where(Field.STATE, "ready")
    assert await harness.driver.inspect.count(ready, cap=5) == Count(5)
    assert await harness.driver.inspect.count(ready, cap=4) == Count(4, "capped")


# -- targets and causes ------------------------------------------------------------------------------------
async def test_targets_are_those_untouched_since(harness: Harness) -> None:
    old = [await stop(harness, JobState.DEAD) for _ in range(5)]
    as_of = await harness.driver.inspect.now()
    await harness.advance(SECOND)
    await stop(harness, JobState.DEAD)
    dead = where(Field.STATE, "dead")
    first = await harness.driver.inspect.targets(dead, as_of=as_of, limit=3)
    rest = await harness.driver.inspect.targets(dead, as_of=as_of, after=first[-1], limit=3)
    assert first + rest == sorted(old)


async def test_targets_may_be_of_any_state(harness: Harness) -> None:
    made = {await bring_to(harness, state, name=f"job-{state}") for state in JobState}
    now = await harness.driver.inspect.now()
    assert set(await harness.driver.inspect.targets(ANY, as_of=now)) == made


async def _dead(harness: Harness, fingerprint: str, error: str, **fields: object) -> UUID:
    claimed = await put_and_take(harness, **fields)  # type: ignore[arg-type]
    await record(harness, step(claimed, "pack", status=StepStatus.FAILED, output=None, error=error))
    await end(harness, claimed, Outcome.DEAD, fingerprint=fingerprint, error=error, error_code="shop.Declined")
    return claimed.id


async def test_causes_group_what_stopped_for_one_reason(harness: Harness) -> None:
    start = await harness.driver.inspect.now()
    first = await _dead(harness, "aaaa", "no 1", tenant_id="acme")
    await harness.advance(SECOND)
    other = await _dead(harness, "bbbb", "other", name="refund")
    await harness.advance(SECOND)
    last = await _dead(harness, "aaaa", "no 2", tenant_id="globex", queue="billing")
    await put(harness)
    causes = await harness.driver.inspect.causes(where(Field.STATE, "dead", "failed"))
    assert [(cause.fingerprint, cause.count) for cause in causes] == [("aaaa", Count(2)), ("bbbb", Count(1))]
    top = causes[0]
    assert (top.stop_reason, top.error_code, top.error, top.step) == ("terminal", "shop.Declined", "no 2", "pack")
    assert (top.first_at, top.last_at, top.tenants) == (start, start + 2 * SECOND, 2)
    assert (dict(top.jobs), dict(top.queues)) == ({"charge": 2}, {"default": 1, "billing": 1})
    assert top.sample == (last, first)
    assert (top.retried, top.died_again) == (0, 0)
    assert causes[1].sample == (other,)
    only = await harness.driver.inspect.causes(where(Field.JOB, "refund"))
    assert [cause.fingerprint for cause in only] == ["bbbb"]
    assert len(await harness.driver.inspect.causes(ANY, limit=1)) == 1


async def test_jobs_are_counted_by_tenant_queue_and_name(harness: Harness) -> None:
    start = await harness.driver.inspect.now()
    await _dead(harness, "aaaa", "no 1", tenant_id="acme")
    await bring_to(harness, JobState.DONE, tenant_id="acme")
    await put(harness, tenant_id="acme", queue="billing")
    await put(harness, tenant_id="globex", delay=timedelta(hours=1))
    await put(harness)
    by_tenant = await harness.driver.inspect.tally(ANY, Field.TENANT)
    assert [(one.value, one.count, dict(one.states)) for one in by_tenant] == [
        ("acme", Count(2), {"dead": 1, "ready": 1}),
        ("globex", Count(1), {"delayed": 1}),
        (None, Count(1), {"ready": 1}),
    ]
    assert by_tenant[0].first_at == start
    by_queue = await harness.driver.inspect.tally(ANY, Field.QUEUE)
    assert [(one.value, one.count) for one in by_queue] == [("default", Count(3)), ("billing", Count(1))]
    only = await harness.driver.inspect.tally(where(Field.STATE, "dead"), Field.JOB)
    assert [(one.value, one.count) for one in only] == [("charge", Count(1))]
    assert len(await harness.driver.inspect.tally(ANY, Field.TENANT, limit=1)) == 1


async def test_what_is_due_is_counted_by_name(harness: Harness) -> None:
    await harness.driver.enqueue([job("b"), job("a"), job("b"), job("c", queue="q"), job("d", queue="other")])
    await put(harness, "a", delay=SECOND)
    await put_and_take(harness, "e")
    due = harness.driver.inspect.due
    found = by_name(await due(queues=["default", "q"]))
    assert list(found.items()) == [("a", Count(1)), ("b", Count(2)), ("c", Count(1))]
    assert list(by_name(await due(queues=["default"], without=["a"]))) == ["b"]
    assert list(by_name(await due(queues=["default", "q"], limit=2))) == ["a", "b"]
    assert await due(queues=[]) == []


async def test_what_is_due_of_a_tenant_is_counted_with_the_limits_of_its_application(harness: Harness) -> None:
    limits = {"per_tenant": 2, "tenant_rate": None}
    await harness.driver.publish_catalog([CatalogEntry("job", "a", "default", {"limits": limits})])
    acme = {"tenant_id": "acme"}
    await put(harness, "unheard", **acme)
    since = await harness.driver.inspect.now()
    await harness.driver.enqueue([job("a", lane="t:acme", **acme), job("a", **acme), job("b", **acme)])
    await harness.driver.enqueue([job("a", tenant_id="globex"), job("a", queue="q", **acme), job("a")])
    await harness.advance(SECOND)
    found = await harness.driver.inspect.due(queues=["default"], without=["a", "b"], tenants=["acme", "initech"])
    assert [(one.name, one.tenant, one.count, one.limits) for one in found] == [
        ("unheard", None, Count(1), {}),
        ("a", "acme", Count(2), limits),
        ("b", "acme", Count(1), {}),
    ]
    assert abs(found[1].oldest - since) < SECOND


async def test_a_sort_of_waiting_or_stopped_rows_lists_those_alone(harness: Harness) -> None:
    made = {state.value: await bring_to(harness, state, name=f"job-{state}") for state in JobState}
    waiting, stopped = ("ready", "delayed", "suspended"), ("dead", "failed")
    assert set(await ids(harness, ANY, Sort.DUE)) == {made[state] for state in waiting}
    assert set(await ids(harness, ANY, Sort.STOPPED)) == {made[state] for state in stopped}


async def test_leases_list_what_is_held_first_to_lapse_first(harness: Harness) -> None:
    long = await put_and_take(harness, tenant_id="acme")
    await put(harness)
    (short,) = await take(harness, worker="w-2", lease=SECOND)
    await harness.advance(2 * SECOND)
    leases = await harness.driver.inspect.leases()
    assert [(lease.id, lease.worker_id, lease.expired) for lease in leases] == [
        (short.id, "w-2", True),
        (long.id, "w-1", False),
    ]
    held = leases[1]
    assert (held.run_id, held.name, held.queue, held.tenant_id) == (long.run_id, "charge", "default", "acme")
    assert (held.attempt, held.max_attempts, held.lease_no) == (1, 3, long.lease_no)
    assert len(await harness.driver.inspect.leases(limit=1)) == 1


async def test_health_names_the_driver(harness: Harness) -> None:
    health = await harness.driver.inspect.health()
    assert health.kind in harness.driver.url or health.kind == "postgres"
    assert health.as_of == await harness.driver.inspect.now()
    assert health.clock_skew_ms is None
    assert health.kind == "postgres" or health.lacks
    assert health.kind == "memory" or sum(health.applications.values()) == health.connections > 0


async def test_what_workers_send_all_day_goes_by_its_index(harness: Harness) -> None:
    assert await harness.driver.inspect.detours() == []
