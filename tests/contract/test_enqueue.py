"""Enqueue: what a new row is, whose key it holds, whom it waits for."""

from __future__ import annotations

import contextlib
import json
from datetime import timedelta

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import bring_to, end, job, put, put_and_take, row, stop, take, take_one
from ultijobs._ids import new_id
from ultijobs._queue.records import LIVE, JobState, Outcome, UniqueMode
from ultijobs._queue.where import ANY
from ultijobs.errors import Invariant, PayloadInvalid

ENDED = sorted(set(JobState) - LIVE)
HOUR = timedelta(hours=1)


async def test_a_new_job_is_ready_and_keeps_every_field(harness: Harness) -> None:
    given = job(
        "charge",
        queue="billing",
        idempotency_key="k-1",
        tenant_id="t-1",
        max_attempts=7,
        priority=5,
        enqueued_by="alice",
        traceparent="00-ab-cd-01",
        code_version="2026.1",
    )
    (answer,) = await harness.driver.enqueue([given])
    assert (answer.id, answer.deduped, answer.state) == (given.id, False, JobState.READY)
    seen = await row(harness, given.id)
    assert seen.run_id == answer.run_id
    assert (seen.name, seen.queue, seen.idempotency_key, seen.tenant_id) == ("charge", "billing", "k-1", "t-1")
    assert (seen.max_attempts, seen.priority, seen.enqueued_by) == (7, 5, "alice")
    assert (seen.traceparent, seen.code_version) == ("00-ab-cd-01", "2026.1")
    assert (seen.attempt, seen.lease_no, seen.lease_until, seen.worker_id) == (0, 0, None, None)
    assert seen.run_at == seen.due_at == seen.created_at == await harness.driver.inspect.now()


@pytest.mark.parametrize(
    "text", ["null", '{"b": 1,  "a": [1.0, 1e3, "\\u00e9"], "a": 2}', '"text"', "12345678901234567890"]
)
async def test_the_input_comes_back_as_it_was_written(harness: Harness, text: str) -> None:
    job_id = await put(harness, input=text)
    assert await harness.driver.inspect.input(job_id) == text
    assert (await take_one(harness)).input == text
    assert await harness.driver.inspect.input(job_id) == text


async def test_a_delay_counts_from_the_store_s_now(harness: Harness) -> None:
    (answer,) = await harness.driver.enqueue([job(delay=HOUR)])
    assert answer.state is JobState.DELAYED
    seen = await row(harness, answer.id)
    assert seen.run_at == seen.due_at == await harness.driver.inspect.now() + HOUR
    assert seen.state == "delayed"
    await harness.advance(HOUR)
    assert (await row(harness, answer.id)).state == "ready"


async def test_a_time_in_the_past_means_now(harness: Harness) -> None:
    now = await harness.driver.inspect.now()
    (late, soon) = await harness.driver.enqueue([job(run_at=now - HOUR), job(run_at=now + HOUR)])
    assert (late.state, soon.state) == (JobState.READY, JobState.DELAYED)
    assert (await row(harness, late.id)).run_at == now
    assert (await row(harness, soon.id)).run_at == now + HOUR


@pytest.mark.parametrize("state", sorted(LIVE))
async def test_a_live_row_holds_its_key_and_the_answer_names_it(harness: Harness, state: JobState) -> None:
    holder = await bring_to(harness, state, idempotency_key="k")
    (answer,) = await harness.driver.enqueue([job(idempotency_key="k")])
    assert (answer.id, answer.run_id, answer.deduped, answer.state) == (holder, holder, True, state)
    assert len((await harness.driver.inspect.jobs(ANY)).rows) == 1


@pytest.mark.parametrize("state", ENDED)
async def test_ended_work_frees_its_key(harness: Harness, state: JobState) -> None:
    before = await stop(harness, state, idempotency_key="k")
    after = await put(harness, idempotency_key="k")
    assert after != before


UNSTORABLE = ["a\0b", "\ud800"]


@pytest.mark.parametrize("text", UNSTORABLE)
@pytest.mark.parametrize(
    "field", ["name", "queue", "tenant_id", "idempotency_key", "enqueued_by", "code_version", "input"]
)
async def test_text_that_cannot_be_stored_is_refused_whole(harness: Harness, field: str, text: str) -> None:
    with pytest.raises(PayloadInvalid):
        await harness.driver.enqueue([job(), job(**{field: text})])
    async with harness.driver.transaction() as tx:
        with pytest.raises(PayloadInvalid):
            await harness.driver.enqueue([job(**{field: text})], tx=tx)
        (answer,) = await harness.driver.enqueue([job()], tx=tx)
    assert [found.id for found in (await harness.driver.inspect.jobs(ANY)).rows] == [answer.id]


@pytest.mark.parametrize("fields", [{"idempotency_key": "k" * 2_001}, {"queue": "q" * 2_001}])
async def test_a_key_too_long_for_its_index_is_refused(harness: Harness, fields: dict[str, str]) -> None:
    with pytest.raises(PayloadInvalid, match="2000 fit into an index"):
        await harness.driver.enqueue([job(**fields)])
    await put(harness, **{field: text[:1_900] for field, text in fields.items()})


async def test_times_that_contradict_each_other_are_refused(harness: Harness) -> None:
    now = await harness.driver.inspect.now()
    for fields in ({"run_at": now, "delay": HOUR}, {"run_at": now.replace(tzinfo=None)}):
        with pytest.raises(Invariant):
            await harness.driver.enqueue([job(**fields)])


async def test_text_of_every_script_comes_back(harness: Harness) -> None:
    text = "Ω≈ç√ 你好 \U0001f701 \u202e \x1b[31m"
    job_id = await put(harness, idempotency_key=text, tenant_id=text, input=json.dumps(text, ensure_ascii=False))
    seen = await row(harness, job_id)
    assert (seen.idempotency_key, seen.tenant_id) == (text, text)
    assert json.loads((await take_one(harness)).input) == text


async def test_two_tenants_may_use_one_key(harness: Harness) -> None:
    tenants = ["acme", "globex", "global", "none", "null", None]
    answers = await harness.driver.enqueue([job(idempotency_key="k", tenant_id=tenant) for tenant in tenants])
    assert [answer.deduped for answer in answers] == [False] * len(tenants)
    again = await harness.driver.enqueue([job(idempotency_key="k", tenant_id=tenant) for tenant in tenants])
    assert [answer.id for answer in again] == [answer.id for answer in answers]
    assert all(answer.deduped for answer in again)


async def test_a_key_belongs_to_one_name(harness: Harness) -> None:
    first = await put(harness, "charge", idempotency_key="k")
    second = await put(harness, "refund", idempotency_key="k")
    assert first != second


async def test_jobs_without_a_key_never_meet(harness: Harness) -> None:
    answers = await harness.driver.enqueue([job(), job(), job()])
    assert [answer.deduped for answer in answers] == [False, False, False]


async def test_doubles_within_one_call_become_one(harness: Harness) -> None:
    answers = await harness.driver.enqueue([job(idempotency_key=key) for key in "abab"])
    assert [answer.deduped for answer in answers] == [False, False, True, True]
    assert [answers[2].id, answers[3].id] == [answers[0].id, answers[1].id]


async def test_many_are_answered_in_the_order_given(harness: Harness) -> None:
    held = await put(harness, idempotency_key="held")
    jobs = [job(), job(idempotency_key="held"), job(idempotency_key="free"), job("refund", delay=HOUR)]
    answers = await harness.driver.enqueue(jobs)
    assert [answer.id for answer in answers] == [jobs[0].id, held, jobs[2].id, jobs[3].id]
    assert [answer.state for answer in answers] == ["ready", "ready", "ready", "delayed"]


async def test_a_large_batch_is_inserted_and_deduped_as_a_small_one(harness: Harness) -> None:
    held = {key: await put(harness, idempotency_key=key) for key in ("k-7", "k-250")}
    jobs = [job(idempotency_key=f"k-{n % 280}", input=f'{{"n":  {n}}}', priority=n % 3) for n in range(300)]
    answers = await harness.driver.enqueue(jobs)
    first: dict[str, object] = dict(held)
    for given, answer in zip(jobs, answers, strict=True):
        key = given.idempotency_key or ""
        assert answer.deduped is (key in first)
        assert answer.id == first.setdefault(key, given.id)
    assert len(first) == 280
    assert len((await harness.driver.inspect.jobs(ANY, limit=500)).rows) == 280
    assert await harness.driver.inspect.input(jobs[279].id) == '{"n":  279}'
    claimed = await take(harness, queues={"default": 500}, limit=500)
    assert [(-c.priority, c.run_at, c.id) for c in claimed] == sorted((-c.priority, c.run_at, c.id) for c in claimed)
    assert len(claimed) == 280


async def test_a_large_batch_without_keys_is_all_new(harness: Harness) -> None:
    jobs = [job(delay=HOUR if n % 2 else None) for n in range(200)]
    answers = await harness.driver.enqueue(jobs)
    assert [answer.id for answer in answers] == [given.id for given in jobs]
    assert [answer.state for answer in answers] == ["ready", "delayed"] * 100
    assert not any(answer.deduped for answer in answers)


async def test_a_large_batch_in_a_transaction_vanishes_with_it(harness: Harness) -> None:
    with contextlib.suppress(LookupError):
        async with harness.driver.transaction() as tx:
            await harness.driver.enqueue([job(idempotency_key=f"k-{n}") for n in range(200)], tx=tx)
            raise LookupError
    assert (await harness.driver.inspect.jobs(ANY)).rows == []


async def test_nothing_is_answered_with_nothing(harness: Harness) -> None:
    assert await harness.driver.enqueue([]) == []


@pytest.mark.parametrize("state", ["ready", "running", "dead"])
async def test_publishing_an_id_again_makes_no_second_job(harness: Harness, state: str) -> None:
    job_id = new_id()
    again = job(id=job_id, idempotency_key="k")
    await harness.driver.enqueue([again])
    if state != "ready":
        claimed = await take_one(harness)
        if state == "dead":
            await end(harness, claimed, Outcome.DEAD)
    (answer,) = await harness.driver.enqueue([again])
    assert (answer.id, answer.deduped, answer.state) == (job_id, True, state)
    assert len((await harness.driver.inspect.jobs(ANY)).rows) == 1


async def test_not_running_gives_the_key_up_at_the_first_claim(harness: Harness) -> None:
    first = await put_and_take(harness, idempotency_key="k", unique=UniqueMode.NOT_RUNNING)
    twin = await put(harness, idempotency_key="k", unique=UniqueMode.NOT_RUNNING)
    (third,) = await harness.driver.enqueue([job(idempotency_key="k", unique=UniqueMode.NOT_RUNNING)])
    assert (third.id, third.deduped) == (twin, True)
    assert (await take_one(harness)).id == twin
    assert (await row(harness, first.id)).state == (await row(harness, twin)).state == "running"


async def test_not_running_does_not_take_the_key_back(harness: Harness) -> None:
    first = await put_and_take(harness, idempotency_key="k", unique=UniqueMode.NOT_RUNNING)
    await end(harness, first, Outcome.RETURNED)
    twin = await put(harness, idempotency_key="k", unique=UniqueMode.NOT_RUNNING)
    assert twin != first.id


@pytest.mark.parametrize("ended", ["ok", "dead", "failed", "cancelled", "lapsed"])
async def test_a_rerun_waits_for_the_end_of_the_first(harness: Harness, ended: str) -> None:
    first = await put_and_take(harness, idempotency_key="k", unique=UniqueMode.RERUN, max_attempts=1)
    twin = await put(harness, idempotency_key="k", unique=UniqueMode.RERUN)
    (third,) = await harness.driver.enqueue([job(idempotency_key="k", unique=UniqueMode.RERUN)])
    assert (third.id, third.deduped) == (twin, True)
    waiting = await row(harness, twin)
    assert (waiting.behind, waiting.waiting_on, waiting.state) == (first.id, "behind", "ready")
    assert await take(harness) == []
    if ended == "cancelled":
        await harness.driver.cancel([first.id])
    elif ended == "lapsed":
        await harness.crash(first)
        await harness.driver.reap([])
    else:
        await end(harness, first, Outcome(ended))
    assert (await row(harness, twin)).behind is None
    assert (await take_one(harness)).id == twin


async def test_a_rerun_waits_through_the_retries_of_the_first(harness: Harness) -> None:
    first = await put_and_take(harness, idempotency_key="k", unique=UniqueMode.RERUN)
    twin = await put(harness, idempotency_key="k", unique=UniqueMode.RERUN)
    await end(harness, first, Outcome.RETRIED)
    again = await take_one(harness)
    assert again.id == first.id
    assert (await row(harness, twin)).behind == first.id
    await end(harness, again)
    assert (await take_one(harness)).id == twin


async def test_a_rerun_without_a_first_waits_for_nobody(harness: Harness) -> None:
    await stop(harness, JobState.DONE, idempotency_key="k", unique=UniqueMode.RERUN)
    job_id = await put(harness, idempotency_key="k", unique=UniqueMode.RERUN)
    assert (await row(harness, job_id)).behind is None
    assert (await take_one(harness)).id == job_id
