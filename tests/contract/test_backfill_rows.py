"""What `Inspector.backfills` makes of the catalogue, the ledger and the jobs."""

from __future__ import annotations

from dataclasses import replace
from datetime import timedelta
from typing import Any

import pytest

from tests.contract.harness import Harness
from tests.contract.moves import POLICY, end, put, put_and_take, row, take_one
from tests.contract.test_backfills import KEYED, NAME, begun, mark, start
from ultijobs._queue.backfills import PassStatus
from ultijobs._queue.records import Outcome
from ultijobs._queue.telling import CatalogEntry
from ultijobs._queue.views import Count
from ultijobs.errors import BackfillUnknown, Invariant
from ultijobs.inspection import Action, BackfillRow, BackfillState, Inspector, Target


def declared(name: str = NAME, *, environment: str | None = "production", **fields: Any) -> CatalogEntry:
    said = {"tenant": "none", "batch": 100, "rate": 5.0, "requires": None, "environments": [], "checksum": "c1"}
    return CatalogEntry("backfill", name, "default", {**said, **fields}, environment=environment)


async def seen(harness: Harness, name: str = NAME) -> BackfillRow:
    (found,) = [each for each in await Inspector(harness.driver).backfills() if each.name == name]
    return found


async def test_a_declared_backfill_that_never_ran_is_pending(harness: Harness) -> None:
    await harness.driver.publish_catalog([declared(requires="0042", environments=["production"])])
    found = await seen(harness)
    assert (found.state, found.declared, found.changed, found.rows) == (BackfillState.PENDING, True, False, 0)
    assert (found.queue, found.tenant, found.batch, found.rate) == ("default", "none", 100, 5.0)
    assert (found.requires, found.environments, found.environment) == ("0042", ("production",), "production")
    assert (found.run_id, found.job_id, found.remaining, found.eta_ms) == (None, None, None, None)


async def test_one_of_another_environment_is_excluded(harness: Harness) -> None:
    await harness.driver.publish_catalog(
        [
            declared("a", environments=["staging"]),
            declared("b", environments=["staging"], environment=None),
            declared("c", environments=["staging", "production"]),
        ]
    )
    states = {row.name: row.state for row in await Inspector(harness.driver).backfills()}
    assert states == {"a": BackfillState.EXCLUDED, "b": BackfillState.EXCLUDED, "c": BackfillState.PENDING}


async def test_a_queued_pass_counts_as_running_and_shows_where_its_job_is(harness: Harness) -> None:
    await harness.driver.publish_catalog([declared()])
    queued = await put(harness, NAME, delay=timedelta(minutes=1), **KEYED)
    found = await seen(harness)
    assert (found.state, found.job_id, found.job_state, found.run_id) == ("running", queued, "delayed", None)


async def test_a_running_pass_shows_how_far_it_is_how_fast_and_what_is_left(harness: Harness) -> None:
    await harness.driver.publish_catalog([declared()])
    claimed = await begun(harness)
    assert (await seen(harness)).rows_per_s is None
    await harness.driver.backfills.mark(mark(claimed, rows=0, batches=0, remaining=1_000))
    assert (await seen(harness)).remaining == Count(1_000)
    await harness.advance(timedelta(seconds=4))
    await harness.driver.backfills.mark(mark(claimed, rows=200, batches=2))
    found = await seen(harness)
    assert (found.state, found.job_state, found.rows, found.batches) == ("running", "running", 200, 2)
    assert (found.remaining, found.rows_per_s, found.eta_ms) == (Count(800, "estimate"), 50.0, 16_000)
    await harness.advance(timedelta(seconds=57))
    assert (await seen(harness)).eta_ms is None


async def test_the_rate_is_that_of_the_attempt_that_runs(harness: Harness) -> None:
    await harness.driver.publish_catalog([declared()])
    claimed = await begun(harness)
    await harness.driver.backfills.mark(mark(claimed, rows=1_000))
    await harness.crash(claimed)
    await harness.driver.reap([replace(POLICY, name=NAME)])
    assert (await seen(harness)).rows_per_s is None
    await harness.advance(timedelta(hours=1))
    again = await take_one(harness, NAME)
    await harness.driver.backfills.begin(start(again))
    await harness.advance(timedelta(seconds=2))
    await harness.driver.backfills.mark(mark(again, rows=1_100))
    assert (await seen(harness)).rows_per_s == 50.0


async def test_a_cancelled_pass_and_a_dead_one_say_so_with_their_error(harness: Harness) -> None:
    await harness.driver.publish_catalog([declared()])
    claimed = await begun(harness)
    await harness.driver.cancel([claimed.id])
    assert ((await seen(harness)).state, (await seen(harness)).job_state) == ("cancelled", "cancelled")
    await harness.advance(timedelta(seconds=1))
    second = await begun(harness)
    await end(harness, second, Outcome.DEAD, error_code="X_BACKFILL_STALLED", error="12 rows left")
    found = await seen(harness)
    assert (found.state, found.error_code, found.last_error) == ("failed", "X_BACKFILL_STALLED", "12 rows left")


async def test_a_completed_backfill_stays_so_when_a_later_pass_fails(harness: Harness) -> None:
    await harness.driver.publish_catalog([declared()])
    claimed = await begun(harness)
    await harness.driver.backfills.end(start(claimed), PassStatus.COMPLETED, remaining=0)
    await end(harness, claimed)
    found = await seen(harness)
    assert (found.state, found.changed, found.remaining) == ("completed", False, Count(0))
    await harness.advance(timedelta(seconds=1))
    forced = await put_and_take(harness, NAME, **KEYED)
    assert (await seen(harness)).run_id is None
    await harness.driver.backfills.begin(start(forced, forced=True))
    assert ((await seen(harness)).state, (await seen(harness)).forced) == ("running", True)
    await end(harness, forced, Outcome.DEAD)
    found = await seen(harness)
    assert (found.state, found.run_id, found.error_code) == ("completed", claimed.run_id, None)


@pytest.mark.parametrize("known", [True, False])
async def test_a_changed_definition_and_one_that_is_gone_are_told(harness: Harness, known: bool) -> None:
    claimed = await begun(harness)
    await harness.driver.backfills.end(start(claimed), PassStatus.COMPLETED)
    await end(harness, claimed)
    if known:
        await harness.driver.publish_catalog([declared(checksum="c2")])
    found = await seen(harness)
    assert (found.state, found.declared, found.changed) == ("completed", known, known)


# -- starting a pass -----------------------------------------------------------------------------------
async def test_a_plan_says_what_a_pass_would_touch_and_its_application_starts_it(harness: Harness) -> None:
    await harness.driver.publish_catalog([declared(tenant="acme", retry={"attempts": 5})])
    api = Inspector(harness.driver, actor="ops", source="tui")
    plan = await api.plan_backfill(NAME, remaining=950, reason="it is time")
    assert (plan.action, plan.matched, plan.refused, plan.equivalent) == (
        Action.START_BACKFILL,
        Count(1),
        (),
        "ultijobs backfill fill --write --reason 'it is time'",
    )
    assert plan.forecast is not None
    assert (plan.forecast.remaining, plan.forecast.batches, plan.forecast.takes_ms) == (Count(950), 10, 1_800)
    assert all(check.holds for check in plan.forecast.checks)
    assert (await seen(harness)).state == "pending"
    outcome = await api.apply(plan)
    (job,) = outcome.done
    queued = await row(harness, job)
    assert (queued.name, queued.tenant_id, queued.idempotency_key, queued.max_attempts) == (NAME, "acme", NAME, 5)
    assert (queued.enqueued_by, await harness.driver.inspect.input(job)) == ("ops", '{"force":false}')
    (line,) = await api.activity()
    assert (line.action, line.target, line.reason, line.done) == ("start-backfill", "backfill:fill", "it is time", 1)


async def test_a_pass_that_is_live_or_done_is_refused_and_force_overrules_the_latter(harness: Harness) -> None:
    await harness.driver.publish_catalog([declared()])
    api = Inspector(harness.driver)
    early = await api.plan(Action.START_BACKFILL, NAME)
    claimed = await begun(harness)
    for action in (Action.START_BACKFILL, Action.FORCE_BACKFILL):
        plan = await api.plan(action, Target(backfill=NAME))
        assert ([refusal.code for refusal in plan.refused], plan.matched) == (["X_BACKFILL_RUNNING"], Count(0))
        assert str(claimed.id) in plan.warnings[0]
    late = await api.apply(early)
    assert ([refusal.code for refusal in late.refused], late.refused[0].id) == (["X_BACKFILL_RUNNING"], claimed.id)
    await harness.driver.backfills.end(start(claimed), PassStatus.COMPLETED)
    await end(harness, claimed)
    assert [refusal.code for refusal in (await api.apply(early)).refused] == ["X_BACKFILL_APPLIED"]
    refused = await api.apply(await api.plan(Action.START_BACKFILL, NAME))
    assert ([refusal.code for refusal in refused.refused], refused.done) == (["X_BACKFILL_APPLIED"], ())
    forced = await api.apply(await api.plan(Action.FORCE_BACKFILL, NAME))
    assert await harness.driver.inspect.input(forced.done[0]) == '{"force":true}'


async def test_force_does_not_overrule_the_environment(harness: Harness) -> None:
    await harness.driver.publish_catalog([declared(environments=["staging"])])
    api = Inspector(harness.driver)
    plan = await api.plan(Action.FORCE_BACKFILL, NAME)
    assert [refusal.code for refusal in plan.refused] == ["X_BACKFILL_ENVIRONMENT"]
    assert (await api.apply(plan)).done == ()


async def test_a_backfill_that_nobody_declared_is_unknown(harness: Harness) -> None:
    await harness.driver.publish_catalog([declared()])
    api = Inspector(harness.driver)
    with pytest.raises(BackfillUnknown, match="there is fill") as caught:
        await api.plan(Action.START_BACKFILL, "fil")
    assert caught.value.fix == "ultijobs backfill fill"
    with pytest.raises(Invariant, match="acts on a backfill"):
        await api.plan(Action.START_BACKFILL, Target(queue="default"))
