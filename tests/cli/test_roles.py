"""What the code of a job does to its process ends the job, and not the role."""

from __future__ import annotations

import asyncio
import logging
import signal
import sys
from collections.abc import Callable

import pytest

from tests.support.eventually import eventually
from ultijobs_cli import roles
from ultijobs_cli.report import CommandFailed


def stop(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_soon(loop.stop)


def leave(loop: asyncio.AbstractEventLoop) -> None:
    loop.call_soon(sys.exit, 9)


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("end", [stop, leave])
def test_a_callback_that_would_end_the_loop_does_not_end_the_role(
    end: Callable[[asyncio.AbstractEventLoop], None],
    quick: bool,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    if not quick:
        monkeypatch.setitem(sys.modules, "uvloop", None)
    ends: list[str] = []

    async def role() -> None:
        end(asyncio.get_running_loop())
        await asyncio.sleep(0.05)
        ends.append("its own")

    with caplog.at_level(logging.ERROR, "ultijobs"):
        roles.run_role(role, "jobs.worker.failed")
    assert ends == ["its own"]
    (line,) = caplog.records
    assert line.__dict__["event"] == "jobs.worker.loop-stopped"


def test_a_role_that_is_interrupted_or_cancelled_from_within_ends() -> None:
    async def interrupted() -> None:
        await asyncio.sleep(0)
        raise KeyboardInterrupt

    async def cancelled() -> None:
        for task in asyncio.all_tasks():
            task.cancel()
        await asyncio.sleep(1)

    with pytest.raises(KeyboardInterrupt):
        roles.run_role(interrupted, "jobs.worker.failed")
    with pytest.raises(CommandFailed) as caught:
        roles.run_role(cancelled, "jobs.worker.failed")
    assert caught.value.report.exit_code == 1


def test_a_signal_that_a_handler_takes_is_taken_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(roles, "SIGNALS_EVERY", 0.02)
    before = signal.getsignal(signal.SIGTERM)

    def own(*_: object) -> None: ...

    async def role() -> None:
        signal.signal(signal.SIGTERM, own)
        await asyncio.sleep(0)
        for taken in (signal.SIG_IGN, signal.SIG_DFL):
            signal.signal(signal.SIGTERM, taken)
            await eventually(lambda: signal.getsignal(signal.SIGTERM) is own)

    try:
        roles.run_role(role, "jobs.worker.failed")
    finally:
        signal.signal(signal.SIGTERM, before)
