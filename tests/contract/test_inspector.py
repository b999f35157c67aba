"""What `Inspector` makes of any driver: details, reasons, incidents, plans and their application."""

import asyncio
import uuid
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any
from uuid import UUID

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import (
    SECOND,
    bring_to,
    end,
    put,
    put_and_take,
    record,
    row,
    step,
    stop,
    take_one,
)
from tests.contract.moves import job as a_job
from ultijobs._ids import new_id
from ultijobs._queue.activity import ActivityEntry
from ultijobs._queue.claims import ClaimAsk
from ultijobs._queue.records import LIVE, Enqueued, JobState, Outcome, RequeueAsk, StopReason, UniqueMode
from ultijobs._queue.schedule import Arming
from ultijobs._queue.steps import StepKind, StepStatus
from ultijobs._queue.telling import CatalogEntry, WorkerBeat, WorkerOrder
from ultijobs._queue.views import Count, WaitingOn
from ultijobs._text import unstorable
from ultijobs.errors import (
    ActUnknown,
    DeclarationUnknown,
    DriverUnavailable,
    FilterInvalid,
    Invariant,
    JobUnknown,
    NotUndoable,
    WorkerUnknown,
)
from ultijobs.inspection import ANY, Action, Inspector, PlanOptions, StuckKind, Target, parse_where, undone_by

STOPPED = tuple(s for s in JobState if s not in LIVE)


@pytest.fixture
def inspector(harness: Harness) -> Inspector:
    return Inspector(harness.driver, actor="ops", source="cli")


def beat(worker: str = "w-1", **fields: Any) -> WorkerBeat:
    return WorkerBeat(
        **{
            "instance": new_id(),
            "worker_id": worker,
            "host": "node-1",
            "pid": 7,
            "version": "0",
            "code_version": None,
            "environment": None,
            "queues": ("default",),
            "names": ("charge",),
            "concurrency": 4,
            "state": "running",
            "free_slots": 4,
            "running": 0,
            "loop_lag_ms": 0,
            "rss_bytes": 0,
            "claimed_ago_ms": None,
            "settled_ago_ms": None,
            "counters": {},
            **fields,
        }
    )


# -- one job -------------------------------------------------------------------------------------------


async def test_a_job_is_found_by_its_id_and_by_its_tail(harness: Harness, inspector: Inspector) -> None:
    job = await put(harness, tenant_id="a")
    for ref in (str(job), job.hex, str(job).upper(), job.hex[-12:], "…" + job.hex[-8:]):
        assert await inspector.find(ref) == job
        assert await inspector.find(ref, tenant="a") == job
        with pytest.raises(JobUnknown):
            await inspector.find(ref, tenant="b")


@pytest.mark.parametrize("ref", ["", "x", "abc", "zzzzzzzz", "0" * 31, "0" * 32, "0" * 40, str(uuid.UUID(int=7)), "é"])
async def test_what_is_no_id_is_an_unknown_job(inspector: Inspector, ref: str) -> None:
    with pytest.raises(JobUnknown) as caught:
        await inspector.find(ref)
    assert caught.value.fix


async def test_a_tail_of_several_is_refused_with_all_of_them(harness: Harness, inspector: Inspector) -> None:
    twins = [UUID(f"0190a1b2-c3d4-7e5f-8a9b-0{n}1d2e3f4a5b") for n in (1, 2)]
    for twin in twins:
        await put(harness, id=twin)
    with pytest.raises(Invariant, match="ambiguous") as caught:
        await inspector.find("2e3f4a5b")
    assert all(str(twin) in caught.value.cause for twin in twins)


async def test_the_delays_still_to_come_are_told_from_the_catalogue(harness: Harness, inspector: Inspector) -> None:
    policy = {"attempts": 9, "backoff": "exponential", "delay_ms": 1_000, "max_delay_ms": 3_000}
    await harness.driver.publish_catalog([CatalogEntry("job", "charge", "default", {"retry": policy})])
    job = await put(harness, max_attempts=5)
    assert (await inspector.job(job)).retry_delays_ms == [1_000, 2_000, 3_000, 3_000]
    for _ in range(2):
        await end(harness, await take_one(harness), Outcome.RETRIED, delay=SECOND)
        await harness.advance(SECOND)
    assert (await inspector.job(job)).retry_delays_ms == [3_000, 3_000]
    await end(harness, await take_one(harness), Outcome.DEAD)
    assert (await inspector.job(job)).retry_delays_ms == []


async def test_a_name_outside_of_the_catalogue_has_no_known_delays(harness: Harness, inspector: Inspector) -> None:
    assert (await inspector.job(await put(harness))).retry_delays_ms == []


async def test_the_input_is_shown_when_asked_for_with_masked_keys(harness: Harness, inspector: Inspector) -> None:
    await harness.driver.publish_catalog([CatalogEntry("job", "charge", None, {"redact": ["iban"]})])
    job = await put(harness, input='{"user": {"Password": "p", "IBAN": "DE1"}, "rows": [{"api_key": 1, "n": 2}]}')
    assert (await inspector.job(job)).input is None
    shown = (await inspector.job(job, with_input=True)).input
    assert shown == '{"user": {"Password": "•••", "IBAN": "•••"}, "rows": [{"api_key": "•••", "n": 2}]}'


async def test_an_unknown_job_is_told_as_such_everywhere(harness: Harness, inspector: Inspector) -> None:
    hidden = await put(harness, tenant_id="a")
    for job, tenant in ((new_id(), None), (hidden, "b")):
        with pytest.raises(JobUnknown):
            await inspector.job(job, tenant=tenant)
        with pytest.raises(JobUnknown):
            await inspector.why(job, tenant=tenant)


@pytest.mark.parametrize("limit", [0, -1, 1_001, 10**30])
async def test_a_limit_out_of_range_is_refused(inspector: Inspector, limit: int) -> None:
    with pytest.raises(Invariant, match="limit"):
        await inspector.jobs(ANY, limit=limit)


# -- why -----------------------------------------------------------------------------------------------


async def test_a_delayed_job_waits_for_its_time(harness: Harness, inspector: Inspector) -> None:
    why = await inspector.why(await put(harness, delay=timedelta(hours=1)))
    assert (why.state, why.waiting_on, why.holder) == ("delayed", WaitingOn.DELAY, None)
    assert "due at" in why.frees


async def test_a_job_between_attempts_waits_out_its_back_off(harness: Harness, inspector: Inspector) -> None:
    claimed = await put_and_take(harness)
    await end(harness, claimed, Outcome.RETRIED, delay=SECOND, error_code="X_BROKEN", error="no")
    why = await inspector.why(claimed.id)
    assert why.waiting_on is WaitingOn.BACKOFF
    assert "X_BROKEN" in (why.holder or "")


async def test_a_job_of_a_paused_queue_waits_for_its_resume(harness: Harness, inspector: Inspector) -> None:
    await harness.driver.beat(beat())
    job = await put(harness)
    await harness.driver.pause("default", actor="ops", reason="provider down", duration=None)
    why = await inspector.why(job)
    assert why.waiting_on is WaitingOn.PAUSED
    assert "ops" in (why.holder or "")
    assert "provider down" in (why.holder or "")
    assert why.frees == "ultijobs queues resume default"
    assert (await inspector.jobs(f"id:{job}")).rows[0].waiting_on is WaitingOn.PAUSED


@pytest.mark.parametrize(
    ("fields", "holder"),
    [
        (None, "no worker is running"),
        ({"queues": ("mail",)}, "serves queue"),
        ({"names": ("other",)}, "knows the name"),
    ],
)
async def test_a_job_that_nobody_serves_waits_for_a_worker(
    harness: Harness, inspector: Inspector, fields: dict[str, Any] | None, holder: str
) -> None:
    if fields is not None:
        await harness.driver.beat(beat(**fields))
    why = await inspector.why(await put(harness))
    assert why.waiting_on is WaitingOn.NO_WORKER
    assert holder in (why.holder or "")
    assert why.frees == "ultijobs worker --queues default"


async def test_a_job_before_busy_workers_waits_for_a_slot(harness: Harness, inspector: Inspector) -> None:
    await harness.driver.beat(beat("w-9", free_slots=0, running=4))
    why = await inspector.why(await put(harness))
    assert why.waiting_on is WaitingOn.SLOT
    assert "w-9" in (why.holder or "")
    await harness.driver.beat(beat("w-8", free_slots=1, running=3))
    assert (await inspector.why(why.id)).waiting_on is None


async def test_a_job_whose_queue_is_at_its_limit_waits_for_a_slot(harness: Harness, inspector: Inspector) -> None:
    await harness.driver.beat(beat("w-9", full_queues=("default",)))
    why = await inspector.why(await put(harness))
    assert (why.waiting_on, why.holder) == (WaitingOn.SLOT, "queue default runs as many jobs as it may on w-9")
    assert (await inspector.workers())[0].full_queues == ("default",)


@pytest.mark.parametrize("cap", [None, 1, 2])
async def test_a_job_whose_name_is_at_its_cap_is_told_who_holds_the_slot(
    harness: Harness, inspector: Inspector, cap: int | None
) -> None:
    await harness.driver.beat(beat("w-9"))
    if cap is not None:
        await harness.driver.publish_catalog([CatalogEntry("job", "charge", "default", {"concurrency": cap})])
    first, second = await put(harness, lane="n:charge"), await put(harness, lane="n:charge")
    assert (await inspector.why(second)).waiting_on is None
    ask = ClaimAsk("w-9", {"default": 5}, ("charge",), 5, timedelta(seconds=30), caps={"charge": 1})
    (claimed,) = await harness.driver.claim(ask)
    await harness.advance(SECOND)
    why = await inspector.why(second if claimed.id == first else first)
    if cap == 2:
        assert why.waiting_on is None
        return
    assert why.waiting_on is WaitingOn.SLOT
    assert why.holder is not None
    assert f"job {claimed.id} on w-9, since 2" in why.holder
    assert why.since == claimed.run_at
    assert why.frees == f"ultijobs jobs show {claimed.id}"


async def test_a_job_whose_tenant_is_at_its_limit_waits_for_one_of_the_tenant_s_to_end(
    harness: Harness, inspector: Inspector
) -> None:
    await harness.driver.beat(beat("w-9", limited={"acme": 0}))
    held, free = await put(harness, tenant_id="acme"), await put(harness, tenant_id="globex")
    why = await inspector.why(held)
    assert why.waiting_on is WaitingOn.TENANT
    assert "acme" in (why.holder or "")
    assert "w-9" in (why.holder or "")
    assert why.frees == "ultijobs jobs ls --state running --tenant acme"
    assert (await inspector.why(free)).waiting_on is None
    await harness.driver.beat(beat("w-8"))
    assert (await inspector.why(held)).waiting_on is None, "another worker may start it"


async def test_a_job_whose_tenant_is_at_its_rate_is_told_when_it_may_start(
    harness: Harness, inspector: Inspector
) -> None:
    await harness.driver.beat(beat("w-9", limited={"acme": 5_000}))
    await harness.driver.beat(beat("w-8", limited={"acme": 3_000}))
    held = await put(harness, tenant_id="acme")
    why = await inspector.why(held)
    opens = (await harness.driver.inspect.now()) + 3 * SECOND
    assert why.waiting_on is WaitingOn.RATE
    assert why.frees == f"it may start at {opens.isoformat().replace('+00:00', 'Z')}"
    await harness.advance(4 * SECOND)
    assert (await inspector.why(held)).waiting_on is None


async def test_a_sleeper_is_told_with_its_step(harness: Harness, inspector: Inspector) -> None:
    claimed = await put_and_take(harness)
    write = step(claimed, "nap", kind=StepKind.SLEEP, status=StepStatus.SLEEPING, output=None, wake_in=SECOND)
    await harness.driver.record_steps([write])
    await end(harness, claimed, Outcome.SUSPENDED, delay=SECOND)
    why = await inspector.why(claimed.id)
    assert (why.waiting_on, why.holder) == (WaitingOn.SLEEP, "step 'nap'")


async def test_a_waiting_run_is_told_with_its_event_and_how_to_publish_it(
    harness: Harness, inspector: Inspector
) -> None:
    claimed = await put_and_take(harness)
    write = step(
        claimed,
        "approval",
        kind=StepKind.WAIT,
        status=StepStatus.WAITING,
        output=None,
        wake_in=SECOND,
        event="org.approved",
        match="o 1",
    )
    await harness.driver.record_steps([write])
    await end(harness, claimed, Outcome.SUSPENDED, delay=SECOND)
    why = await inspector.why(claimed.id)
    assert why.waiting_on is WaitingOn.EVENT
    assert why.frees == "ultijobs events publish org.approved --key 'o 1'"


async def test_a_rerun_waits_behind_the_first(harness: Harness, inspector: Inspector) -> None:
    first = await put_and_take(harness, unique=UniqueMode.RERUN, idempotency_key="k")
    why = await inspector.why(await put(harness, unique=UniqueMode.RERUN, idempotency_key="k"))
    assert why.waiting_on is WaitingOn.BEHIND
    assert str(first.id) in (why.holder or "")
    assert why.frees == f"ultijobs jobs why {first.id}"


@pytest.mark.parametrize("state", [JobState.RUNNING, *STOPPED])
async def test_what_runs_or_has_stopped_waits_for_nothing(
    harness: Harness, inspector: Inspector, state: JobState
) -> None:
    why = await inspector.why(await bring_to(harness, state))
    assert (why.state, why.waiting_on) == (state, None)
    assert why.frees


async def test_the_end_of_a_lease_is_told(harness: Harness, inspector: Inspector) -> None:
    claimed = await put_and_take(harness)
    await harness.crash(claimed)
    why = await inspector.why(claimed.id)
    assert "lease ended" in (why.holder or "")


async def test_a_job_of_a_killed_worker_waits_for_one_that_lives(harness: Harness, inspector: Inspector) -> None:
    claimed = await put_and_take(harness)
    await harness.driver.beat(beat((await inspector.job(claimed.id)).row.worker_id or ""))
    await harness.crash(claimed)
    assert (await inspector.why(claimed.id)).frees == "ultijobs worker --queues default"
    await harness.driver.beat(beat("another"))
    assert (await inspector.why(claimed.id)).frees == "another worker takes it back at its next look"


async def test_a_dead_job_names_its_error_beside_the_reason(harness: Harness, inspector: Inspector) -> None:
    why = await inspector.why(await bring_to(harness, JobState.DEAD))
    assert why.holder == "terminal, X_BROKEN"


async def test_a_state_of_a_newer_release_is_told_as_that(harness: Harness, inspector: Inspector) -> None:
    job = await put(harness)
    await harness.write_state(job, "archived")
    why = await inspector.why(job)
    assert (why.state, why.waiting_on) == ("archived", None)
    assert "newer release" in (why.holder or "")
    with pytest.raises(FilterInvalid) as refused:
        parse_where("state:archived")
    known = refused.value.fix.rpartition(" ")[2]
    assert known.startswith("-state:ready,")
    assert [row.id for row in (await inspector.jobs(known)).rows] == [job]


async def test_names_that_nothing_is_known_under_are_told_with_those_near_them(
    harness: Harness, inspector: Inspector
) -> None:
    await put(harness, "charge", queue="billing", tenant_id="acme")
    await harness.driver.publish_catalog([CatalogEntry("job", "send_receipt", "mail", {}, None, None)])
    await stop(harness, JobState.DONE, name="audit", tenant_id="globex")
    assert await inspector.unheard("queue:billing,mail job:charge,send* job:audit tenant:globex -queue:nothing") == []
    assert await inspector.unheard(parse_where("", tenant="acme")) == []
    told = await inspector.unheard(parse_where("queue:biling job:charg,zebra*", tenant="acne"))
    assert [(each.field, each.value, each.near) for each in told] == [
        ("queue", "biling", ("billing",)),
        ("job", "charg", ("charge",)),
        ("job", "zebra*", ()),
        ("tenant", "acne", ("acme",)),
    ]
    assert [str(told[0]), str(told[2])] == [
        "no queue is called 'biling'; there is billing",
        "no job is called 'zebra*'",
    ]
    plan = await inspector.plan(Action.RETRY, "queue:biling")
    assert (plan.matched, plan.warnings) == (Count(0), ("no queue is called 'biling'; there is billing",))


# -- overview ------------------------------------------------------------------------------------------


async def test_nothing_is_stuck_in_an_empty_store(inspector: Inspector) -> None:
    seen = await inspector.overview()
    assert (seen.stuck, seen.running, seen.workers, seen.oldest_ready_ms) == ([], 0, 0, None)


async def test_each_kind_of_trouble_is_one_line(harness: Harness, inspector: Inspector) -> None:
    await harness.driver.beat(beat(queues=("default", "billing", "slow"), lease_ms=3_600_000))
    for _ in range(3):
        await end(harness, await put_and_take(harness), Outcome.DEAD, fingerprint="7f3a")
    await harness.crash(await put_and_take(harness))
    await put(harness, queue="billing")
    await harness.driver.pause("billing", actor="ops", reason="down", duration=None)
    await put(harness, queue="legacy")
    await put(harness, "unheard")
    await put(harness, queue="slow")
    await harness.advance(timedelta(minutes=2))
    seen = await inspector.overview()
    by_key = {line.key: line for line in seen.stuck}
    assert {key: line.kind for key, line in by_key.items()} == {
        "dead:terminal:7f3a": StuckKind.DEAD,
        "lease:w-1": StuckKind.LEASE,
        "queue:billing": StuckKind.PAUSED,
        "queue:legacy": StuckKind.NO_WORKER,
        "queue:slow": StuckKind.STARVING,
        "queue:default": StuckKind.STARVING,
        "name:unheard": StuckKind.NO_WORKER,
    }
    assert by_key["dead:terminal:7f3a"].count == Count(3)
    assert seen.unserved_names == {"unheard": Count(1)}
    assert (await inspector.plan(Action.RESUME, "billing")).ready == Count(1)
    for line in seen.stuck:
        assert line.since is not None, line.key
        assert line.where is not None
        assert (await inspector.count(line.where)).value == line.count.value, line.where
    severities = [line.severity for line in seen.stuck]
    assert severities == sorted(severities, reverse=True)


async def test_a_tenant_that_no_worker_starts_anything_of_is_a_line_of_its_own(
    harness: Harness, inspector: Inspector
) -> None:
    limits = {"per_tenant": 5, "tenant_rate": {"count": 60, "per_ms": 60_000}}
    await harness.driver.publish_catalog([CatalogEntry("job", "charge", "default", {"limits": limits})])
    await harness.driver.beat(beat("w-8", limited={"acme": 5_000, "globex": 0, "initech": 0}))
    await harness.driver.beat(beat("w-9", limited={"acme": 3_000, "globex": 0}))
    for tenant in ("acme", "acme", "globex", "initech", None):
        await put(harness, tenant_id=tenant)
    since = await harness.driver.inspect.now()
    await harness.advance(SECOND)
    seen = await inspector.overview()
    assert [(line.key, line.kind, line.severity, line.count, line.why) for line in seen.stuck] == [
        ("tenant:acme", StuckKind.THROTTLED, 0, Count(2), "rate 60/1m · tenant acme charge"),
        ("tenant:globex", StuckKind.THROTTLED, 0, Count(1), "5 at once · tenant globex charge"),
    ]
    acme = seen.stuck[0]
    assert acme.since is not None
    assert abs(acme.since - since) < SECOND
    assert (acme.tenant, (await inspector.count(acme.where or "")).value) == ("acme", 2)
    assert [line.key for line in (await inspector.overview(tenant="globex")).stuck] == ["tenant:globex"]
    await harness.driver.beat(beat("w-7"))
    assert (await inspector.overview()).stuck == [], "a worker with room may start them"


async def test_a_queue_in_which_only_throttled_tenants_wait_is_not_behind(
    harness: Harness, inspector: Inspector
) -> None:
    await harness.driver.beat(beat("w-9", limited={"acme": 0}, lease_ms=3_600_000))
    await put(harness, tenant_id="acme")
    await harness.advance(timedelta(minutes=2))
    assert [line.key for line in (await inspector.overview()).stuck] == ["tenant:acme"]
    await put(harness)
    await harness.advance(timedelta(minutes=2))
    assert [line.key for line in (await inspector.overview()).stuck] == ["queue:default", "tenant:acme"]


async def test_a_queue_that_is_behind_names_the_busy_slots_of_its_workers(
    harness: Harness, inspector: Inspector
) -> None:
    await harness.driver.beat(
        beat(queues=("default", "slow"), concurrency=8, running=8, free_slots=0, lease_ms=3_600_000)
    )
    await put(harness, queue="slow")
    await harness.advance(timedelta(minutes=2))
    (line,) = (await inspector.overview()).stuck
    assert line.why == "queue slow is behind · 8 of 8 slots busy"


async def test_a_task_that_nobody_dispatches_is_a_line_with_the_reason(harness: Harness, inspector: Inspector) -> None:
    schedule = harness.driver.schedule
    term = (await schedule.lead("a", lease=timedelta(hours=1))).term
    await schedule.arm("a", term, [Arming("minutely", "* * * * *", "UTC"), Arming("yearly", "0 0 1 1 *", "UTC")])
    now = await harness.driver.inspect.now()
    assert (await inspector.overview()).stuck == []
    await harness.advance(timedelta(minutes=3))
    await schedule.fault("a", term, "minutely", "ValueError: no\nTraceback")
    (line,) = (await inspector.overview()).stuck
    missed = now.replace(second=0) + timedelta(minutes=1)
    assert (line.key, line.kind, line.since, line.held_by) == ("task:minutely", StuckKind.CRON, missed, "a")
    assert line.why == f"minutely missed {missed:%H:%M} · ValueError: no"
    await schedule.retire("a", term, ["minutely"])
    assert (await inspector.overview()).stuck == []
    await schedule.arm("a", term, [Arming("minutely", "* * * * *", "UTC")])
    await schedule.resign("a")
    (line,) = (await inspector.overview()).stuck
    assert line.held_by is None


async def test_a_task_is_told_with_what_is_next_what_was_and_what_is_wrong(
    harness: Harness, inspector: Inspector
) -> None:
    declared = {"cron": "0 3 * * *", "tz": "Europe/Berlin", "catch_up": "skip", "max_catch_up": 10}
    broken = {**declared, "cron": "@reboot"}
    await harness.driver.publish_catalog(
        [CatalogEntry("task", "nightly", None, declared), CatalogEntry("task", "odd", None, broken)]
    )
    nightly, odd = await inspector.tasks()
    assert nightly.next is not None
    assert (nightly.next.hour, str(nightly.next.tzinfo)) == (3, "Europe/Berlin")
    assert (nightly.watermark, nightly.late_since, nightly.last_fired, nightly.catch_up) == (None, None, None, "skip")
    assert (odd.cron, odd.next) == ("@reboot", None)
    term = (await harness.driver.schedule.lead("a", lease=timedelta(hours=1))).term
    await harness.driver.schedule.arm("a", term, [Arming("nightly", "0 3 * * *", "Europe/Berlin")])
    detail = await inspector.task("nightly", upcoming=3)
    assert [each.hour for each in detail.upcoming] == [3, 3, 3]
    assert detail.row.watermark == await harness.driver.inspect.now()
    assert detail.leader is not None
    with pytest.raises(DeclarationUnknown) as caught:
        await inspector.task("nigthly")
    assert caught.value.fix == "ultijobs tasks show nightly"


async def test_a_preview_shows_what_a_change_of_clocks_does(harness: Harness, inspector: Inspector) -> None:
    declared = {"cron": "30 2 * * *", "tz": "Europe/Berlin", "catch_up": "skip", "max_catch_up": 10}
    await harness.driver.publish_catalog([CatalogEntry("task", "nightly", None, declared)])
    seen = await inspector.preview("nightly", datetime(2026, 10, 25))  # noqa: DTZ001 - in the task's own zone
    assert [each.at.isoformat() for each in seen] == [
        "2026-10-24T02:30:00+02:00",
        "2026-10-25T02:30:00+02:00",
        "2026-10-26T02:30:00+01:00",
    ]
    assert [each.shift for each in seen] == [timedelta(0), timedelta(0), timedelta(hours=-1)]


async def test_a_task_run_by_hand_leaves_a_row_that_says_who_and_why(harness: Harness, inspector: Inspector) -> None:
    async def ask() -> list[Enqueued]:
        return await harness.driver.enqueue([a_job(idempotency_key="k")])

    await inspector.run_task("nightly", ask, reason="after the outage")
    await inspector.run_task("nightly", ask)
    second, first = await inspector.activity()
    assert (first.action, first.target, first.reason) == ("run-task", "task:nightly", "after the outage")
    assert (first.matched, first.done, second.done, second.refused) == (1, 1, 0, 1)
    assert first.equivalent == "ultijobs tasks run nightly --reason 'after the outage'"

    async def fails() -> list[Enqueued]:
        raise Invariant("no")

    with pytest.raises(Invariant):
        await inspector.run_task("nightly", fails)
    failed = (await inspector.activity())[0]
    assert (failed.done, failed.failed) == (0, 1)
    assert failed.finished_at is not None


async def test_a_detector_that_fails_is_a_line_and_takes_down_no_other(
    harness: Harness, inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    await stop(harness, JobState.DEAD)

    async def broken(*_: Any, **__: Any) -> Any:
        raise DriverUnavailable("canceling statement due to statement timeout")

    class Half:
        def __getattr__(self, name: str) -> Any:
            return broken if name == "leases" else getattr(harness.driver.inspect, name)

    monkeypatch.setattr(inspector, "_store", Half())
    kinds = {line.key: line.kind for line in (await inspector.overview()).stuck}
    assert kinds["detector:leases"] is StuckKind.FAILED_DETECTOR
    assert StuckKind.DEAD in kinds.values()


# -- plan and apply ------------------------------------------------------------------------------------


async def test_a_retry_of_runs_that_meet_other_code_says_that_it_needs_a_step(
    harness: Harness, inspector: Inspector
) -> None:
    claimed = await put_and_take(harness)
    await end(harness, claimed, Outcome.DEAD, stop_reason=StopReason.CODE_CHANGED)
    plain = await inspector.plan(Action.RETRY, [claimed.id])
    assert any("code-changed, and stop so again" in warning for warning in plain.warnings)
    from_a_step = await inspector.plan(Action.RETRY, [claimed.id], PlanOptions(from_step="one"))
    assert not any("code-changed" in warning for warning in from_a_step.warnings)


async def test_a_plan_changes_nothing_and_says_what_it_would(harness: Harness, inspector: Inspector) -> None:
    jobs = [await stop(harness, JobState.DEAD, tenant_id=f"t{n}") for n in range(3)]
    before = [await row(harness, job) for job in jobs]
    plan = await inspector.plan(Action.RETRY, "state:dead", PlanOptions(reason="it's back"))
    assert plan.matched == Count(3)
    assert plan.queues == {"default": 3}
    assert plan.tenants == 3
    assert set(plan.samples) == set(jobs)
    assert plan.refused == ()
    assert any("terminal" in warning for warning in plan.warnings)
    as_of = plan.as_of.isoformat().replace("+00:00", "Z")
    assert plan.equivalent == (f"""ultijobs jobs retry --where state:dead --as-of {as_of} --reason 'it'"'"'s back'""")
    assert [await row(harness, job) for job in jobs] == before
    assert await inspector.activity() == []


async def test_what_was_planned_is_done_and_written_down(harness: Harness, inspector: Inspector) -> None:
    jobs = [await stop(harness, JobState.DEAD) for _ in range(5)]
    plan = await inspector.plan(Action.RETRY, "state:dead", PlanOptions(reason="fixed", batch=2))
    told: list[tuple[int, int | None]] = []
    outcome = await inspector.apply(plan, on_progress=lambda done, total: told.append((done, total)))
    assert set(outcome.done) == set(jobs)
    assert (outcome.matched, outcome.refused, outcome.failed, outcome.stopped) == (5, (), (), False)
    assert told == [(2, 5), (4, 5), (5, 5)]
    assert {(await row(harness, job)).state for job in jobs} == {"ready"}
    (written,) = await inspector.activity()
    assert written.id == outcome.activity_id
    assert (written.actor, written.source, written.action, written.target) == ("ops", "cli", "retry", "state:dead")
    assert (written.reason, written.matched, written.done, written.refused, written.failed) == ("fixed", 5, 5, 0, 0)
    assert written.equivalent == plan.equivalent
    assert written.finished_at is not None


async def test_what_arrives_after_the_plan_is_left_alone(harness: Harness, inspector: Inspector) -> None:
    early = await stop(harness, JobState.DEAD)
    plan = await inspector.plan(Action.RETRY, "state:dead")
    await harness.advance(SECOND)
    late = await stop(harness, JobState.DEAD)
    assert (await inspector.apply(plan)).done == (early,)
    assert (await row(harness, late)).state == "dead"


async def test_a_batch_boundary_is_where_it_can_be_stopped(harness: Harness, inspector: Inspector) -> None:
    jobs = [await stop(harness, JobState.DEAD) for _ in range(4)]
    plan = await inspector.plan(Action.RETRY, "state:dead", PlanOptions(batch=2))
    answers = iter([False, True])
    outcome = await inspector.apply(plan, stop=lambda: next(answers))
    assert outcome.stopped
    assert outcome.done == tuple(sorted(jobs)[:2])
    (written,) = await inspector.activity()
    assert (written.matched, written.done) == (2, 2)


async def test_a_canary_is_the_oldest_one(harness: Harness, inspector: Inspector) -> None:
    jobs = [await stop(harness, JobState.DEAD) for _ in range(3)]
    plan = await inspector.plan(Action.RETRY, "state:dead", PlanOptions(limit=1))
    assert plan.matched == Count(1)
    assert (await inspector.apply(plan)).done == (min(jobs),)


async def test_refusals_are_foreseen_and_listed(harness: Harness, inspector: Inspector) -> None:
    dead = await stop(harness, JobState.DEAD, idempotency_key="k")
    twin = await put(harness, idempotency_key="k")
    running = (await put_and_take(harness, queue="other")).id
    done = await stop(harness, JobState.DONE, queue="other")
    missing = new_id()
    plan = await inspector.plan(Action.RETRY, [dead, running, done, missing, missing])
    codes = {refusal.id: refusal.code for refusal in plan.refused}
    assert codes == {
        dead: "X_JOB_DUPLICATE",
        running: "X_JOB_NOT_RETRYABLE",
        done: "X_JOB_NOT_RETRYABLE",
        missing: "X_JOB_UNKNOWN",
    }
    outcome = await inspector.apply(plan)
    assert outcome.done == ()
    assert {refusal.id: refusal.code for refusal in outcome.refused} == codes
    assert str(twin) in next(r.cause for r in outcome.refused if r.id == dead)


async def test_a_twin_that_runs_beside_is_no_refusal_where_the_declaration_allows_it(
    harness: Harness, inspector: Inspector
) -> None:
    declared = CatalogEntry("job", "charge", "default", {"unique": "not-running"})
    await harness.driver.publish_catalog([declared])
    fields: dict[str, Any] = {"unique": UniqueMode.NOT_RUNNING, "idempotency_key": "k"}
    dead = await stop(harness, JobState.DEAD, **fields)
    await put_and_take(harness, **fields)
    plan = await inspector.plan(Action.RETRY, [dead])
    assert plan.refused == ()
    assert (await inspector.apply(plan)).done == (dead,)


async def test_an_act_that_is_cancelled_midway_is_closed_with_what_it_did(
    harness: Harness, inspector: Inspector
) -> None:
    jobs = [await stop(harness, JobState.DEAD) for _ in range(4)]
    plan = await inspector.plan(Action.RETRY, "state:dead", PlanOptions(batch=2, pause=timedelta(hours=1)))
    first = asyncio.Event()
    applying = asyncio.create_task(inspector.apply(plan, on_progress=lambda *_: first.set()))
    await asyncio.wait_for(first.wait(), 10)
    applying.cancel()
    with pytest.raises(asyncio.CancelledError):
        await applying
    (written,) = await inspector.activity()
    assert (written.matched, written.done) == (2, 2)
    assert written.finished_at is not None
    assert sorted([(await row(harness, job)).state for job in jobs]) == ["dead", "dead", "ready", "ready"]


async def test_a_retry_from_a_step_says_which_run_again(harness: Harness, inspector: Inspector) -> None:
    claimed = await put_and_take(harness)
    for at, name in enumerate(("load", "reserve", "charge"), 1):
        status = StepStatus.FAILED if name == "charge" else StepStatus.COMPLETED
        await harness.driver.record_steps([step(claimed, name, position=at, status=status)])
        await harness.advance(SECOND)
    await end(harness, claimed, Outcome.DEAD)
    plain = await inspector.plan(Action.RETRY, [claimed.id])
    assert (plain.reruns, plain.replays) == (("charge",), ("load", "reserve"))
    early = await inspector.plan(Action.RETRY, [claimed.id], PlanOptions(from_step="reserve"))
    assert (early.reruns, early.replays) == (("reserve", "charge"), ("load",))
    assert "--from-step reserve" in early.equivalent
    unknown = await inspector.plan(Action.RETRY, [claimed.id], PlanOptions(from_step="reserv"))
    (refusal,) = unknown.refused
    assert refusal.code == "X_STEP_UNKNOWN"
    assert "load, reserve, charge" in refusal.cause
    with pytest.raises(Invariant):
        await inspector.plan(Action.RETRY, [claimed.id], PlanOptions(from_step="a", only_step="b"))
    await inspector.apply(early)
    assert [s.name for s in await harness.driver.inspect.steps(claimed.run_id)] == ["load"]


@pytest.mark.parametrize("target", ["", "  ", Target(where=ANY), Target(where=replace(ANY, tenant="t1"))])
@pytest.mark.parametrize("action", [Action.RETRY, Action.CANCEL])
async def test_an_act_on_everything_is_refused(inspector: Inspector, action: Action, target: Any) -> None:
    with pytest.raises(FilterInvalid, match="everything"):
        await inspector.plan(action, target)


@pytest.mark.parametrize(
    ("action", "target"),
    [
        (Action.RETRY, Target()),
        (Action.RETRY, []),
        (Action.RETRY, Target(queue="q")),
        (Action.PAUSE, Target(worker="w")),
        (Action.DRAIN_WORKER, Target(queue="q")),
        (Action.CANCEL, Target(where=parse_where("state:ready"), queue="q")),
    ],
)
async def test_a_target_that_does_not_fit_the_act_is_refused(inspector: Inspector, action: Action, target: Any) -> None:
    with pytest.raises(Invariant):
        await inspector.plan(action, target)


async def test_a_filter_without_a_state_means_what_the_act_is_for(harness: Harness, inspector: Inspector) -> None:
    by_state = {state: await bring_to(harness, state, name=f"n-{state}", queue="mail") for state in JobState}
    retry = await inspector.plan(Action.RETRY, "queue:mail")
    assert set(retry.samples) == {by_state[JobState.DEAD], by_state[JobState.FAILED]}
    cancel = await inspector.plan(Action.CANCEL, "queue:mail")
    assert (await inspector.apply(cancel)).done == tuple(sorted(by_state[state] for state in LIVE))


async def test_a_plan_for_a_tenant_reaches_no_other(harness: Harness, inspector: Inspector) -> None:
    mine = await stop(harness, JobState.DEAD, tenant_id="a")
    theirs = await stop(harness, JobState.DEAD, tenant_id="b")
    plan = await inspector.plan(Action.RETRY, "state:dead", PlanOptions(tenant="a"))
    assert plan.samples == (mine,)
    assert (await inspector.apply(plan)).done == (mine,)
    by_id = await inspector.plan(Action.RETRY, [theirs], PlanOptions(tenant="a"))
    (refusal,) = (await inspector.apply(by_id)).refused
    assert refusal.code == "X_JOB_UNKNOWN"
    assert (await row(harness, theirs)).state == "dead"


async def test_a_cancel_of_what_never_started_can_be_undone(harness: Harness, inspector: Inspector) -> None:
    waiting = await put(harness)
    assert (await inspector.plan(Action.CANCEL, [waiting])).inverse is Action.UNDO
    running = await put_and_take(harness, queue="other")
    plan = await inspector.plan(Action.CANCEL, [running.id])
    assert plan.inverse is None
    assert any("running" in warning for warning in plan.warnings)


async def test_a_retry_is_undone_by_its_id_and_says_of_each_job_why_not(harness: Harness, inspector: Inspector) -> None:
    ids = [await stop(harness, JobState.DEAD) for _ in range(3)]
    before = await row(harness, ids[2])
    act = (await inspector.apply(await inspector.plan(Action.RETRY, ids))).activity_id
    claimed = await take_one(harness, limit=1)
    await harness.advance(SECOND)
    plan = await inspector.plan(Action.UNDO, str(act), PlanOptions(reason="still down"))
    assert (plan.matched, plan.samples, plan.queues) == (Count(3), tuple(ids), {"default": 3})
    assert plan.equivalent == f"ultijobs jobs undo {act} --reason 'still down'"
    assert [(refusal.id, refusal.code) for refusal in plan.refused] == [(claimed.id, "X_NOT_UNDOABLE")]
    outcome = await inspector.apply(plan)
    assert (outcome.done, outcome.matched) == (tuple(ids[1:]), 3)
    assert [refusal.fix for refusal in outcome.refused] == [f"ultijobs jobs show {claimed.id}"]
    seen = await row(harness, ids[2])
    assert seen == replace(before, updated_at=seen.updated_at)
    told = (await inspector.activity())[0]
    assert (told.action, told.target, told.done, told.refused) == ("undo", f"act:{act}", 2, 1)
    again = await inspector.plan(Action.UNDO, act.hex)
    assert again.warnings == ("2 of its 3 jobs were acted on again since; an act can be taken back for a day",)
    assert await inspector.find_act(act.hex[-8:]) == act


async def test_an_undo_for_one_tenant_neither_counts_nor_names_jobs_of_another(
    harness: Harness, inspector: Inspector
) -> None:
    mine, theirs = [await stop(harness, JobState.DEAD, tenant_id=tenant) for tenant in ("acme", "globex")]
    act = (await inspector.apply(await inspector.plan(Action.RETRY, [mine, theirs]))).activity_id
    plan = await inspector.plan(Action.UNDO, str(act), PlanOptions(tenant="acme"))
    assert (plan.matched, plan.samples, plan.refused, plan.warnings) == (Count(1), (mine,), (), ())
    outcome = await inspector.apply(plan)
    assert (outcome.done, outcome.matched, outcome.refused) == ((mine,), 1, ())
    assert (await row(harness, theirs)).state == "ready"
    with pytest.raises(NotUndoable):
        await inspector.plan(Action.UNDO, str(act), PlanOptions(tenant="acme"))


async def test_an_act_whose_process_died_halfway_can_be_undone_as_far_as_it_came(
    harness: Harness, inspector: Inspector
) -> None:
    ids = [await stop(harness, JobState.DEAD) for _ in range(2)]
    act = await harness.driver.open_activity(ActivityEntry("ann", "tui", "retry", "state:dead", matched=2))
    await harness.driver.requeue(RequeueAsk((ids[0],), act=act))
    (told,) = await inspector.activity()
    assert (told.done, told.finished_at) == (None, None)
    assert undone_by(told, told.at) == f"ultijobs jobs undo {act}"
    assert (await inspector.apply(await inspector.plan(Action.UNDO, str(act)))).done == (ids[0],)


@pytest.mark.parametrize("text", ["a\x00b", "a\ud800b", "x" * 100_000])
async def test_what_an_operator_says_is_stored_whatever_is_in_it_and_a_name_that_nothing_can_have_is_refused(
    harness: Harness, text: str
) -> None:
    ops = Inspector(harness.driver, actor=text, source="cli")
    waiting = await put(harness)
    await ops.apply(await ops.plan(Action.CANCEL, [waiting], PlanOptions(reason=text)))
    await ops.apply(await ops.plan(Action.PAUSE, "mail", PlanOptions(reason=text)))
    for told in await ops.activity():
        said = (told.actor, told.reason or "", told.equivalent or "")
        assert all(unstorable(each) is None and len(each) < 5_000 for each in said)
    for action in (Action.PAUSE, Action.DRAIN_WORKER, Action.START_BACKFILL):
        with pytest.raises(Invariant):
            await ops.plan(action, text)


async def test_what_has_an_opposite_is_not_undone_by_its_id_and_what_is_not_there_is_unknown(
    harness: Harness, inspector: Inspector
) -> None:
    await put(harness, queue="mail")
    act = (await inspector.apply(await inspector.plan(Action.PAUSE, "mail"))).activity_id
    with pytest.raises(NotUndoable) as raised:
        await inspector.plan(Action.UNDO, str(act))
    assert raised.value.fix == "ultijobs queues resume mail"
    for unknown in (str(new_id()), "pizza"):
        with pytest.raises(ActUnknown):
            await inspector.plan(Action.UNDO, unknown)
        with pytest.raises(ActUnknown):
            await inspector.find_act(unknown if unknown == "pizza" else "abcdef")


async def test_a_retry_that_drops_steps_has_no_inverse(harness: Harness, inspector: Inspector) -> None:
    claimed = await put_and_take(harness)
    await record(harness, step(claimed, "load"))
    await end(harness, claimed, Outcome.DEAD)
    assert (await inspector.plan(Action.RETRY, [claimed.id])).inverse is Action.UNDO
    assert (await inspector.plan(Action.RETRY, [claimed.id], PlanOptions(from_step="load"))).inverse is None


async def test_a_pause_that_is_ended_comes_back_with_its_reason_and_what_was_left_of_it(
    harness: Harness, inspector: Inspector
) -> None:
    half = timedelta(minutes=30)
    await inspector.apply(await inspector.plan(Action.PAUSE, "mail", PlanOptions(reason="down", duration=2 * half)))
    await harness.advance(half)
    plan = await inspector.plan(Action.RESUME, "mail")
    await inspector.apply(plan)
    assert plan.inverse_options == PlanOptions(reason="down", duration=half)
    assert plan.inverse is not None
    await inspector.apply(await inspector.plan(plan.inverse, "mail", plan.inverse_options))
    (queue,) = [q for q in await inspector.queues() if q.queue == "mail"]
    assert (queue.state, queue.pause_reason) == ("paused", "down")
    assert queue.resume_at == await inspector.now() + half


async def test_pausing_and_resuming_a_queue_is_written_down(harness: Harness, inspector: Inspector) -> None:
    await put(harness, queue="mail")
    plan = await inspector.plan(
        Action.PAUSE, "mail", PlanOptions(reason="provider down", duration=timedelta(minutes=30))
    )
    assert plan.equivalent == "ultijobs queues pause mail --reason 'provider down' --for 30m"
    assert (plan.inverse, plan.queues) == (Action.RESUME, {"mail": 1})
    await inspector.apply(plan)
    (queue,) = [q for q in await inspector.queues() if q.queue == "mail"]
    assert (queue.state, queue.paused_by, queue.pause_reason) == ("paused", "ops", "provider down")
    again = await inspector.plan(Action.PAUSE, "mail")
    assert again.matched == Count(0)
    assert (await inspector.apply(again)).matched == 0
    resumed = await inspector.apply(await inspector.plan(Action.RESUME, "mail"))
    assert resumed.matched == 1
    assert [(a.action, a.target, a.done) for a in await inspector.activity()] == [
        ("resume", "queue:mail", 1),
        ("pause", "queue:mail", 0),
        ("pause", "queue:mail", 1),
    ]


async def test_a_queue_that_nothing_names_can_be_paused_with_a_warning(inspector: Inspector) -> None:
    plan = await inspector.plan(Action.PAUSE, "soon")
    assert any("names the queue" in warning for warning in plan.warnings)
    assert (await inspector.apply(plan)).matched == 1


async def test_a_worker_is_told_to_drain_and_to_go_on(harness: Harness, inspector: Inspector) -> None:
    told = beat("w-1")
    await harness.driver.beat(told)
    assert (await inspector.plan(Action.RESUME_WORKER, "w-1")).inverse is None
    plan = await inspector.plan(Action.DRAIN_WORKER, "w-1")
    assert plan.inverse is Action.RESUME_WORKER
    assert (await inspector.apply(plan)).matched == 1
    assert await harness.driver.beat(told) is WorkerOrder.DRAIN
    await inspector.apply(await inspector.plan(Action.DRAIN_WORKER, "w-1", PlanOptions(exit=True)))
    assert await harness.driver.beat(told) is WorkerOrder.EXIT
    await inspector.apply(await inspector.plan(Action.RESUME_WORKER, "w-1"))
    assert await harness.driver.beat(told) is WorkerOrder.NONE
    with pytest.raises(WorkerUnknown):
        await inspector.plan(Action.DRAIN_WORKER, "w-2")


async def test_a_batch_that_fails_is_listed_and_ends_the_run(
    harness: Harness, inspector: Inspector, monkeypatch: pytest.MonkeyPatch
) -> None:
    jobs = sorted([await stop(harness, JobState.DEAD) for _ in range(4)])
    plan = await inspector.plan(Action.RETRY, "state:dead", PlanOptions(batch=2))
    driver = harness.driver
    calls: list[Any] = []

    class Failing:
        inspect = driver.inspect

        async def requeue(self, ask: Any) -> Any:
            calls.append(ask)
            if len(calls) > 1:
                raise DriverUnavailable("gone")
            return await driver.requeue(ask)

        def __getattr__(self, name: str) -> Any:
            return getattr(driver, name)

    monkeypatch.setattr(inspector, "_driver", Failing())
    outcome = await inspector.apply(plan)
    assert outcome.done == tuple(jobs[:2])
    assert {refusal.id: refusal.code for refusal in outcome.failed} == dict.fromkeys(jobs[2:], "X_DRIVER_UNAVAILABLE")
    (written,) = await inspector.activity()
    assert (written.done, written.failed) == (2, 2)
