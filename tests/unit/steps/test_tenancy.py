"""`cross_tenant`: a reason, a line in the log, and an end."""

from __future__ import annotations

import asyncio
import logging

import pytest

from ultijobs import cross_tenant
from ultijobs._steps.guard import crossing
from ultijobs.errors import Invariant


def test_the_reason_holds_in_the_block_and_the_outer_one_after_it():
    assert crossing() is None
    with cross_tenant("outer"):
        with cross_tenant("inner"):
            assert crossing() == "inner"
        assert crossing() == "outer"
    assert crossing() is None


async def test_async_code_may_write_async_with():
    async with cross_tenant("a sweep"):
        assert crossing() == "a sweep"
    assert crossing() is None


async def test_a_task_that_outlives_the_block_is_outside_of_it():
    ended = asyncio.Event()

    async def late() -> tuple[str | None, str | None]:
        within = crossing()
        await ended.wait()
        return within, crossing()

    with cross_tenant("a sweep"):
        task = asyncio.create_task(late())
        await asyncio.sleep(0)
    ended.set()
    assert await task == ("a sweep", None)


def test_the_way_out_ends_also_when_the_block_raises():
    with pytest.raises(ValueError, match="in the block"), cross_tenant("a sweep"):
        raise ValueError("in the block")
    assert crossing() is None


def test_each_crossing_is_logged_with_its_reason(caplog):
    caplog.set_level(logging.INFO, "ultijobs")
    with cross_tenant("the monthly report"):
        pass
    line = caplog.records[-1]
    assert (line.event, line.levelname) == ("jobs.tenant.crossed", "INFO")
    assert line.getMessage() == "stepping out of no tenant: the monthly report"


@pytest.mark.parametrize("reason", ["", "  ", None, 7])
def test_a_crossing_without_a_reason_is_refused(reason):
    with pytest.raises(Invariant, match="reason"):
        cross_tenant(reason)
