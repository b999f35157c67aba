"""Several processes under one supervisor."""

from __future__ import annotations

import os
import signal
from pathlib import Path

from tests.support.eventually import eventually
from tests.support.scenes import Scene, WorkerProcess
from tests.support.stage import Ask, quick


async def pids(worker: WorkerProcess, count: int) -> set[int]:
    """The processes of a fleet, once there are `count`."""

    def started() -> set[int]:
        read = Path(f"/proc/{worker.pid}/task/{worker.pid}/children").read_text(encoding="ascii")
        children = {int(pid) for pid in read.split()}
        return children if len(children) >= count else set()

    return await eventually(started)


async def test_a_process_that_dies_is_replaced_and_a_signal_drains_all(stage: Scene):
    fleet = await stage.worker("fleet", processes=2)
    await eventually(lambda: len(fleet.lines("jobs.worker.started")) == 2, within=40)
    first = await pids(fleet, 2)
    victim = first.pop()
    os.kill(victim, signal.SIGKILL)
    await fleet.said("jobs.worker.process-died")
    await eventually(lambda: len(fleet.lines("jobs.worker.started")) == 3, within=40)
    job = await quick.enqueue(Ask(key="k", seconds=1))
    await stage.effect("start")
    fleet.terminate()
    assert await fleet.exit_code() == 0
    assert (await stage.job(job.id))["state"] == "done"
    assert len(fleet.lines("jobs.worker.draining")) == 2


async def test_a_supervisor_that_dies_takes_its_processes_with_it(stage: Scene):
    fleet = await stage.worker("fleet", processes=2)
    await eventually(lambda: len(fleet.lines("jobs.worker.started")) == 2, within=40)
    children = await pids(fleet, 2)
    fleet.kill()
    await eventually(lambda: not any(alive(pid) for pid in children))
    assert len(fleet.lines("jobs.worker.draining")) == 2


async def test_a_fleet_that_cannot_start_ends_with_4(stage: Scene):
    stage.app = "tests.support.stage:nowhere_app"
    fleet = await stage.worker("fleet", processes=2, ready=False)
    assert await fleet.exit_code() == 4
    assert fleet.lines("jobs.worker.process-gave-up")


def alive(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True
