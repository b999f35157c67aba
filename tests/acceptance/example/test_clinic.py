"""The clinic's own tests: nothing but `ultijobs.testing`, no database, no waiting."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime

import clinic
import pytest
from clinic import Bill, Day, LineBusy, Services, Visit, accompany, bill, report

from ultijobs.testing import FrozenClock, JobsTestApp

ANN = Visit(id=1, clinic="north", patient="Ann")


@pytest.fixture
def services() -> Services:
    return Services()


@pytest.fixture
def jobs(services: Services) -> Iterator[JobsTestApp[Services]]:
    with JobsTestApp(clinic.app, services=services) as jobs:
        yield jobs


async def test_a_visit_is_reminded_of_waited_for_and_billed(jobs: JobsTestApp[Services], services: Services) -> None:
    row = await accompany.enqueue(ANN)
    assert [each.outcome for each in await jobs.run_until_idle()] == ["suspended"]
    jobs.clock.advance("2d")
    assert [each.steps for each in await jobs.run_until_idle()] == [("reminder", "call", "visit")]
    assert services.calls == ["Ann"]
    await jobs.publish("visit.ended", Day(day="2026-01-05"), key="1")
    ran = await jobs.run_until_idle()
    assert [(each.name, each.outcome, each.tenant) for each in ran] == [
        ("accompany", "ok", "north"),
        ("bill", "ok", "north"),
    ]
    assert ran[0].replayed == ("reminder", "call")
    assert services.printed == ["north: 4200"]
    assert [each.input for each in jobs.enqueued(bill)] == [Bill(visit_id=1, clinic="north", cents=4_200)]
    assert {each.job_id for each in jobs.executions_of(row.id)} == {row.id}


async def test_a_visit_that_never_happens_is_not_billed(jobs: JobsTestApp[Services]) -> None:
    await accompany.enqueue(ANN)
    assert [each.outcome for each in await jobs.run_tasks(until="20d") if each.name == "accompany"][-1] == "ok"
    assert jobs.enqueued(bill) == []


async def test_a_busy_line_is_tried_again_and_the_reminder_is_not_repeated(
    jobs: JobsTestApp[Services], services: Services
) -> None:
    services.busy = 2
    await accompany.enqueue(ANN)
    ran = [each for each in await jobs.run_tasks(until="3d") if each.name == "accompany"]
    assert [each.outcome for each in ran] == ["suspended", "retried", "retried", "suspended"]
    assert isinstance(ran[1].error, LineBusy)
    assert [each.due_at for each in ran[1:3]] == [
        datetime(2026, 1, 3, 0, 10, tzinfo=UTC),
        datetime(2026, 1, 3, 0, 30, tzinfo=UTC),
    ]
    assert services.calls == ["Ann"]


def test_a_bill_over_nothing_is_no_bill(jobs: JobsTestApp[Services], services: Services) -> None:
    bill.enqueue_sync(Bill(visit_id=1, clinic="north", cents=0))
    (failed,) = jobs.run_until_idle_sync()
    assert (failed.outcome, failed.stop_reason, failed.attempt) == ("dead", "terminal", 1)
    assert services.printed == []


def test_the_report_is_made_on_working_days(services: Services) -> None:
    friday = FrozenClock(datetime(2026, 3, 27, 12, tzinfo=UTC))
    with JobsTestApp(clinic.app, services=services, clock=friday) as jobs:
        jobs.run_tasks_sync(until="4d")
        assert [each.input.day for each in jobs.enqueued(report)] == ["2026-03-27", "2026-03-30"]
    assert services.printed[-1] == "report of 2026-03-30, because the day's report is over all clinics"


def test_the_plugin_brings_the_application_of_the_project(jobs_app: JobsTestApp[Services]) -> None:
    accompany.enqueue_many_sync([ANN, ANN, Visit(id=2, clinic="south", patient="Bo")])
    assert [(each.tenant, each.state) for each in jobs_app.enqueued(accompany)] == [
        ("north", "ready"),
        ("south", "ready"),
    ]
    assert [each.outcome for each in jobs_app.run_until_idle_sync()] == ["suspended"] * 2
