"""Each check of the doctor: one thing is broken on a real database, and that and nothing else is found."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from tests.support.eventually import eventually
from ultijobs._clock import SystemClock
from ultijobs._ids import new_id
from ultijobs._queue.health import Health
from ultijobs._queue.records import NewJob
from ultijobs._queue.schedule import Arming
from ultijobs._queue.telling import WorkerBeat
from ultijobs.errors import DriverUnavailable
from ultijobs.inspection.doctor import CHECKS, Diagnosis, Thresholds, diagnose, examine
from ultijobs.inspection.doctor.facts import gather
from ultijobs.postgres import PostgresDriver
from ultijobs.postgres.inspection import PostgresInspection


@dataclass
class Patient:
    """A healthy queue: one worker serves `mail` and knows `send`."""

    url: str
    driver: PostgresDriver
    admin: asyncpg.Connection[Any]
    stack: AsyncExitStack = field(default_factory=AsyncExitStack)

    async def other(self, name: str) -> asyncpg.Connection[Any]:
        """A session of somebody else's."""
        session = await asyncpg.connect(self.url, server_settings={"application_name": name})
        self.stack.push_async_callback(session.close)
        return session

    async def enqueue(self, name: str = "send", queue: str = "mail", **more: Any) -> None:
        await self.driver.enqueue([NewJob(id=new_id(), name=name, input="{}", queue=queue, **more)])

    async def beat(self, **more: Any) -> None:
        await self.driver.beat(replace(WORKER, **more))


WORKER = WorkerBeat(
    instance=new_id(),
    worker_id="w-1",
    host="node-1",
    pid=7,
    version="1",
    code_version=None,
    environment=None,
    queues=("mail",),
    names=("send",),
    concurrency=4,
    state="running",
    free_slots=4,
    running=0,
    loop_lag_ms=0,
    rss_bytes=0,
    claimed_ago_ms=None,
    settled_ago_ms=None,
    counters={},
)


@pytest.fixture
async def patient(pg_url: str) -> AsyncIterator[Patient]:
    driver = PostgresDriver(pg_url)
    await driver.open("cli")
    admin = await asyncpg.connect(pg_url)
    found = Patient(pg_url, driver, admin)
    await found.beat()
    async with found.stack:
        yield found
    await admin.close()
    await driver.close()


async def lapsed_leases(patient: Patient) -> None:
    await patient.enqueue()
    await patient.admin.execute(
        "update x_jobs set state = 'running', lease_no = 1, worker_id = 'w-9', lease_until = now() - interval '1 min'"
    )


async def a_name_nobody_knows(patient: Patient) -> None:
    await patient.enqueue("renamed")


async def a_paused_queue(patient: Patient) -> None:
    await patient.driver.pause("mail", actor="ops", reason="provider down", duration=None)


async def a_queue_nobody_serves(patient: Patient) -> None:
    await patient.enqueue(queue="letters")


async def a_wedged_worker(patient: Patient) -> None:
    await patient.beat(wedged=True)


async def a_deaf_worker(patient: Patient) -> None:
    await patient.beat(listening=False)


async def an_old_outbox_row(patient: Patient) -> None:
    await patient.admin.execute(
        "insert into x_outbox (id, run_id, name, staged_at) select i, i, 'send', now() - interval '1 h'"
        " from gen_random_uuid() i"
    )


async def an_outbox_row_set_aside(patient: Patient) -> None:
    await patient.admin.execute(
        "insert into x_outbox (id, run_id, name, set_aside_at) select i, i, 'send', now() from gen_random_uuid() i"
    )


async def a_late_task(patient: Patient) -> None:
    schedule = patient.driver.schedule
    leader = await schedule.lead("s-1", lease=timedelta(minutes=1))
    await schedule.arm("s-1", leader.term, [Arming("nightly", "*/5 * * * *", "UTC")])
    await patient.admin.execute("update x_scheduler_state set watermark = now() - interval '1 h'")


async def a_transaction_left_open(patient: Patient) -> None:
    importer = await patient.other("importer")
    await importer.execute("begin; select count(*) from x_jobs")


async def dead_rows(patient: Patient) -> None:
    await patient.admin.execute("alter table x_jobs set (autovacuum_enabled = off)")
    for n in range(160):
        await patient.enqueue(idempotency_key=str(n))
    await patient.admin.execute("delete from x_jobs where idempotency_key::int >= 20")
    await patient.admin.execute("select pg_stat_force_next_flush()")
    dead = "select n_dead_tup >= 100 from pg_stat_user_tables where relname = 'x_jobs'"
    await eventually(lambda: patient.admin.fetchval(dead))


async def a_blocked_statement(patient: Patient) -> None:
    await patient.admin.execute("begin; lock table x_activity in access exclusive mode")
    waiting = await patient.other("ultijobs-app")
    task = asyncio.create_task(waiting.execute("delete from x_activity"))
    patient.stack.push_async_callback(_ended, patient, task)
    locked = "select count(*) from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
    onlooker = await patient.other("onlooker")
    await eventually(lambda: onlooker.fetchval(locked))


async def _ended(patient: Patient, task: asyncio.Task[Any]) -> None:
    await patient.admin.execute("rollback")
    await task


async def an_invalid_index(patient: Patient) -> None:
    await patient.admin.execute(
        "update pg_index set indisvalid = false where indexrelid = 'x_job_events_expires'::regclass"
    )


async def a_dropped_index(patient: Patient) -> None:
    await patient.admin.execute("drop index x_jobs_claim")


NOW = timedelta(0)
CASES = {
    "leases": (lapsed_leases, Thresholds(), "w-9"),
    "names": (a_name_nobody_knows, Thresholds(), "renamed"),
    "paused-queues": (a_paused_queue, Thresholds(), "mail"),
    "unserved-queues": (a_queue_nobody_serves, Thresholds(), "letters"),
    "wedged-workers": (a_wedged_worker, Thresholds(), "w-1"),
    "listener": (a_deaf_worker, Thresholds(), "w-1"),
    "outbox": (an_old_outbox_row, Thresholds(), "1 row is staged"),
    "outbox-set-aside": (an_outbox_row_set_aside, Thresholds(), "1 row"),
    "scheduler": (a_late_task, Thresholds(), "nightly"),
    "transactions": (a_transaction_left_open, Thresholds(idle_transaction=NOW), "importer"),
    "bloat": (dead_rows, Thresholds(dead_rows=100), "x_jobs"),
    "locks": (a_blocked_statement, Thresholds(blocked=NOW), "ultijobs-app"),
    "indexes": (an_invalid_index, Thresholds(), "x_job_events_expires"),
    "claim-plans": (a_dropped_index, Thresholds(), "x_jobs_claim"),
}
"""What is broken, from where on it counts, and what the finding names."""


def found(diagnosis: Diagnosis) -> dict[str, str]:
    return {check.check: check.result for check in diagnosis.checks if check.result != "ok"}


async def test_a_healthy_queue_has_no_finding(patient: Patient) -> None:
    await patient.enqueue()
    diagnosis = await examine(patient.driver)
    assert diagnosis.symptoms == []
    assert diagnosis.healthy
    assert [check.check for check in diagnosis.checks] == [check.name for check in CHECKS]


@pytest.mark.parametrize("name", CASES)
async def test_what_is_broken_is_found_and_nothing_else(patient: Patient, name: str) -> None:
    harm, limits, names = CASES[name]
    await harm(patient)
    diagnosis = await examine(patient.driver, limits)
    assert list(found(diagnosis)) == [name], diagnosis.symptoms
    for symptom in diagnosis.symptoms:
        assert symptom.code == next(check.code for check in CHECKS if check.name == name)
        assert names in symptom.cause
        assert symptom.fix
    assert diagnosis.healthy is (found(diagnosis)[name] == "warning")


async def test_connections_and_notifications_that_run_out_are_found(patient: Patient) -> None:
    assert list(found(await examine(patient.driver, Thresholds(connections=0.001)))) == ["connections"]
    assert list(found(await examine(patient.driver, Thresholds(notify_queue=0.0)))) == ["notifications"]


@pytest.mark.parametrize(("minutes", "words"), [(2, "ahead of"), (-2, "behind")])
async def test_a_clock_that_differs_from_the_database_s_is_found(patient: Patient, minutes: int, words: str) -> None:
    class Wrong(SystemClock):
        def now(self) -> datetime:
            return datetime.now(UTC) + timedelta(minutes=minutes)

    diagnosis = await examine(patient.driver, clock=Wrong())
    assert found(diagnosis) == {"clock": "warning"}
    # By as much as the question took it may be off.
    assert re.search(rf"1[12]\d\.\d s {words} the database's", diagnosis.symptoms[0].cause)


async def test_a_part_that_cannot_be_read_is_unknown_and_takes_down_no_other(patient: Patient) -> None:
    await patient.enqueue("renamed")
    facts = await gather(patient.driver)
    facts.health = None
    facts.failed["health"] = DriverUnavailable("statement timeout")
    diagnosis = diagnose(facts, Thresholds())
    assert found(diagnosis) == {"names": "error"} | {
        check.name: "unknown" for check in CHECKS if check.needs == "health"
    }
    assert not diagnosis.healthy


async def test_the_database_is_looked_at_again_after_a_part_that_could_not_be_read(
    patient: Patient, monkeypatch: pytest.MonkeyPatch
) -> None:
    store, looks = type(patient.driver.inspect), list[str]()
    health = store.health

    async def held_up(*_: object) -> None:
        looks.append("stats")
        raise DriverUnavailable("statement timeout")

    async def seen(of: PostgresInspection) -> Health:
        looks.append("health")
        return await health(of)

    monkeypatch.setattr(store, "stats", held_up)
    monkeypatch.setattr(store, "health", seen)
    await gather(patient.driver)
    assert looks == ["health", "stats", "health"]
