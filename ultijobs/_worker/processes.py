"""Several worker processes under one supervisor: crashed ones come back, a crash loop ends with a clear error."""

from __future__ import annotations

import contextlib
import logging
import os
import signal
import subprocess
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, TypeAlias

from ultijobs._coalesce import Backoff
from ultijobs._log import emit
from ultijobs._service.stop import PARENT_FD, Stop, StopRequest

__all__ = ["supervise"]

Command: TypeAlias = Callable[[int], Sequence[str]]

CANNOT_START: Final = 4
INTERRUPTED: Final = 130
YOUNG: Final = 10.0
"""A child that lived shorter, in seconds, counts towards a crash loop."""
LOOP: Final = 5
CHECK: Final = 0.2


@dataclass
class Child:
    number: int
    process: subprocess.Popen[bytes] | None = None
    started: float = 0.0
    crashes: int = 0
    again_at: float | None = 0.0
    backoff: Backoff = field(default_factory=lambda: Backoff(first=0.2, most=30.0))


def supervise(command: Command, count: int, *, env: Mapping[str, str] | None = None) -> int:
    """Keeps `count` processes running until a signal; returns the exit code for this process.

    `command` answers the command line of each, by its number from 1 on.

    SIGTERM and SIGINT go on to each child once: the first drains, the second hands back at once. A child that exits 0
    by itself was told to and is not replaced; one that cannot start (4) ends all. A child that crashes young five times
    in a row ends all with 1.
    """
    stop = StopRequest()
    reading, writing = os.pipe()
    children = [Child(number) for number in range(1, count + 1)]
    fleet = _Fleet(command, {**(os.environ if env is None else env), PARENT_FD: str(reading)}, reading, children)
    try:
        with stop.on_signals():
            return fleet.run(stop)
    finally:
        fleet.kill()
        os.close(writing)
        os.close(reading)


class _Fleet:
    def __init__(self, command: Command, env: dict[str, str], pipe: int, children: list[Child]) -> None:
        self._command = command
        self._env = env
        self._pipe = pipe
        self._children = children
        self._passed_on = Stop.NO
        self._code = 0

    def run(self, stop: StopRequest) -> int:
        while True:
            if stop.stage > self._passed_on:
                self._pass_on(stop.stage)
            now = time.monotonic()
            for child in self._children:
                self._look_at(child, now, stop)
            if all(child.process is None and child.again_at is None for child in self._children):
                return INTERRUPTED if stop.stage is Stop.NOW else self._code
            time.sleep(CHECK)

    def kill(self) -> None:
        for child in self._children:
            if child.process is not None:
                child.process.kill()
                child.process.wait()

    def _look_at(self, child: Child, now: float, stop: StopRequest) -> None:
        if child.process is None:
            if child.again_at is not None and now >= child.again_at:
                self._start(child, now)
            return
        code = child.process.poll()
        if code is None:
            return
        child.process = None
        child.again_at = None
        if stop.stage is not Stop.NO or code == 0:
            return
        if code == CANNOT_START:
            self._end_all(code, stop, f"worker process {child.number} cannot start; its own line says why")
            return
        child.crashes = child.crashes + 1 if now - child.started < YOUNG else 1
        how = f"was killed by {signal.Signals(-code).name}" if code < 0 else f"exited with {code}"
        if child.crashes >= LOOP:
            self._end_all(1, stop, f"worker process {child.number} {how}, {LOOP} times within seconds of its start")
            return
        wait = child.backoff.after(child.crashes)
        child.again_at = now + wait
        emit(
            logging.ERROR,
            "jobs.worker.process-died",
            f"worker process {child.number} {how}; the next one starts in {wait:.1f} s",
        )

    def _start(self, child: Child, now: float) -> None:
        child.again_at = None
        child.started = now
        # In a group of its own, a terminal's ctrl-c reaches it through this process alone: once.
        child.process = subprocess.Popen(  # noqa: S603 - the command is this program's own
            list(self._command(child.number)),
            env=self._env,
            pass_fds=(self._pipe,),
            process_group=0,
            stdin=subprocess.DEVNULL,
        )

    def _end_all(self, code: int, stop: StopRequest, why: str) -> None:
        self._code = code
        emit(logging.CRITICAL, "jobs.worker.process-gave-up", f"{why}; all are stopped")
        stop.ask(Stop.DRAIN)

    def _pass_on(self, stage: Stop) -> None:
        for child in self._children:
            child.again_at = None
            if child.process is not None:
                # Two different signals: two of one kind, close together, would arrive as one.
                for number in (signal.SIGTERM, signal.SIGINT)[self._passed_on : stage]:
                    with contextlib.suppress(ProcessLookupError):
                        child.process.send_signal(number)
        self._passed_on = stage
