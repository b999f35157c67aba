"""A worker says when nothing tells it of new work, and finds the work all the same."""

import pytest

from tests.integration.worker.conftest import working
from tests.support.eventually import eventually
from tests.support.scenes import Scene
from tests.support.stage import JOBS, Ask, quick
from ultijobs import App


def lines(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    told = [(str(getattr(record, "event", "")), record.message) for record in caplog.records]
    return [(event, message) for event, message in told if event.startswith("jobs.notifications")]


async def test_a_pooler_without_notifications_is_said_once_and_work_is_found_by_polling(
    stage: Scene, caplog: pytest.LogCaptureFixture
):
    caplog.set_level("INFO")
    async with App(jobs=JOBS, driver=f"{stage.url}?pgbouncer=1") as app, working(app):
        for key in "abc":
            await stage.ended((await app.enqueue(quick, Ask(key=key))).id)
    assert lines(caplog) == [
        ("jobs.notifications.off", "no notifications (pgbouncer=1): polling every 0.2 s instead"),
    ]


async def test_a_lost_listener_is_said_when_it_goes_and_when_it_is_back(stage: Scene, caplog: pytest.LogCaptureFixture):
    caplog.set_level("INFO")
    async with working(stage.here):
        await stage.ended((await quick.enqueue(Ask(key="a"))).id)
        assert lines(caplog) == []
        await stage.value(
            "select count(pg_terminate_backend(pid)) from pg_stat_activity where application_name = 'ultijobs-listen'"
        )
        await eventually(
            lambda: [event for event, _ in lines(caplog)] == ["jobs.notifications.off", "jobs.notifications.on"]
        )
