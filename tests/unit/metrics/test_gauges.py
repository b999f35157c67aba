"""The gauges of a fleet: one process exports them, an empty queue is 0, one that is gone is forgotten in the end."""

from __future__ import annotations

import pytest

from ultijobs import App, job
from ultijobs._metrics import series
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.views import Stats
from ultijobs._service import gauges as module
from ultijobs._service.gauges import queue_gauges
from ultijobs._service.trouble import Trouble
from ultijobs.errors import DriverUnavailable
from ultijobs.memory import MemoryDriver
from ultijobs.memory._inspect import MemoryInspection

FLEET = (series.QUEUE_DEPTH, series.QUEUE_OLDEST, series.QUEUE_DEAD)


@job(idempotency_key=lambda _: "one", tenant="none", queue="mail")
async def post() -> None: ...


def told(metrics: Metrics) -> list[dict[tuple[str, ...], object]]:
    read = metrics.read()
    return [dict(read[each]) for each in FLEET]


class Side:
    """One process with a port."""

    def __init__(self, driver: MemoryDriver) -> None:
        self.metrics = Metrics()
        self.gauges = queue_gauges(driver, self.metrics, holder="w", trouble=Trouble("w"))


async def test_one_of_two_exports_and_the_other_takes_over_when_it_ends():
    driver = MemoryDriver()
    async with App(jobs=[post], driver=driver):
        await post.enqueue()
    one, two = Side(driver), Side(driver)
    assert [await one.gauges.once(), await two.gauges.once()] == [True, False]
    assert told(one.metrics)[0] == {("mail",): 1}
    assert told(two.metrics) == [{}, {}, {}]
    assert one.metrics.read()[series.PUBLISHER] == {(): 1}
    assert two.metrics.read()[series.PUBLISHER] == {(): 0}
    await one.gauges.leave()
    assert told(one.metrics) == [{}, {}, {}]
    assert await two.gauges.once()
    assert told(two.metrics)[0] == {("mail",): 1}


async def test_a_queue_that_is_gone_is_0_for_a_while_and_then_forgotten(monkeypatch: pytest.MonkeyPatch):
    driver = MemoryDriver()
    side = Side(driver)
    async with App(jobs=[post], driver=driver):
        await post.enqueue()
    await side.gauges.once()
    before = await driver.inspect.stats()

    async def empty(_: object) -> Stats:
        return Stats([], before.totals, None, before.as_of)

    monkeypatch.setattr(MemoryInspection, "stats", empty)
    await side.gauges.once()
    assert told(side.metrics) == [{("mail",): 0}, {("mail",): 0}, {("mail",): 0}]
    monkeypatch.setattr(module, "KEPT_AT_ZERO", 0)
    await side.gauges.once()
    assert told(side.metrics) == [{}, {}, {}]


async def test_gauges_that_cannot_be_read_any_more_are_not_exported_for_long(monkeypatch: pytest.MonkeyPatch):
    driver = MemoryDriver()
    side = Side(driver)
    monkeypatch.setattr(module, "LEASE", module.timedelta(0))
    await side.gauges.once()
    assert told(side.metrics) == [{}, {}, {}]

    async def away(_: object) -> Stats:
        raise DriverUnavailable("gone")

    monkeypatch.setattr(MemoryInspection, "stats", away)
    with pytest.raises(DriverUnavailable):
        await side.gauges.once()
