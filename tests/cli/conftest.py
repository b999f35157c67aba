"""A queue in memory behind the command line, and the command line as a function."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from typer.testing import CliRunner

from ultijobs._ids import new_id
from ultijobs._queue.claims import ClaimAsk, ClaimedJob, Settlement
from ultijobs._queue.records import NewJob, Outcome, StopReason
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs.inspection import inspector
from ultijobs.memory import MemoryDriver
from ultijobs_cli.app import app


@dataclass(frozen=True)
class Answer:
    """What one run of the command line said."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        """The one object on stdout."""
        [line] = self.out.splitlines()
        return json.loads(line)

    @property
    def data(self) -> dict[str, Any]:
        return self.json["data"]

    @property
    def codes(self) -> list[str]:
        return [finding["code"] for finding in self.json["findings"]]


Cli = Callable[..., Answer]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, tmp_path) -> Cli:
    """The command line without any setting but its own flags, in an empty folder."""
    for name in ("DATABASE_URL", "ULTIJOBS_DATABASE_URL", "ULTIJOBS_APP", "ULTIJOBS_SCHEMA", "COLUMNS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.chdir(tmp_path)

    def run(*words: str, input: str | None = None, **env: str) -> Answer:
        result = CliRunner(env=env or None).invoke(app, list(words), input=input)
        return Answer(result.exit_code, result.stdout, result.stderr)

    return run


class Clock:
    """A clock that tests move."""

    def __init__(self) -> None:
        self.at = datetime(2026, 3, 1, 12, 0, tzinfo=UTC)

    def now(self) -> datetime:
        return self.at

    def move(self, **by: float) -> None:
        self.at += timedelta(**by)


class Seeds:
    """Jobs in every state, made through the driver as workers and applications make them."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.driver = MemoryDriver(self.clock)

    def job(self, name: str = "charge", **columns: Any) -> UUID:
        job = NewJob(id=columns.pop("id", None) or new_id(), name=name, input=columns.pop("input", "{}"), **columns)
        asyncio.run(self.driver.enqueue([job]))
        return job.id

    def running(self, name: str = "charge", *, worker: str = "w-1", **columns: Any) -> ClaimedJob:
        job = self.job(name, **columns)
        queue = columns.get("queue", "default")
        ask = ClaimAsk(worker, {queue: 100}, (name,), 100, timedelta(seconds=30))
        return next(claim for claim in asyncio.run(self.driver.claim(ask)) if claim.id == job)

    def settled(self, outcome: Outcome, name: str = "charge", **columns: Any) -> UUID:
        stopped = {key: columns.pop(key) for key in ("error", "error_code", "fingerprint", "delay") if key in columns}
        claim = self.running(name, **columns)
        self.settle(claim, outcome, **stopped)
        return claim.id

    def settle(self, claim: ClaimedJob, outcome: Outcome, **more: Any) -> None:
        settlement = Settlement(
            id=claim.id,
            run_id=claim.run_id,
            lease_no=claim.lease_no,
            outcome=outcome,
            attempt=claim.attempt,
            worker_id="w-1",
            queue=claim.queue,
        )
        if outcome in {Outcome.DEAD, Outcome.FAILED}:
            settlement = replace(settlement, stop_reason=StopReason.TERMINAL, error_code="E_BAD", error="no good")
        asyncio.run(self.driver.settle([replace(settlement, **more)]))

    def dead(self, name: str = "charge", **columns: Any) -> UUID:
        return self.settled(Outcome.DEAD, name, **columns)

    def step(self, claim: ClaimedJob, name: str, output: str = "1") -> None:
        write = StepWrite(
            claim.id, claim.run_id, claim.lease_no, name, StepKind.RUN, StepStatus.COMPLETED, 1, output=output
        )
        self.record(write)

    def record(self, write: StepWrite) -> None:
        asyncio.run(self.driver.record_steps([write]))


@pytest.fixture
def seeds(monkeypatch: pytest.MonkeyPatch) -> Seeds:
    """The queue that every `--database-url memory:` opens in this test."""
    made = Seeds()
    monkeypatch.setattr(inspector, "driver_for", lambda _url, _schema: made.driver)
    return made


@pytest.fixture
def queue(cli: Cli, seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The command line on the queue of `seeds`."""
    monkeypatch.setenv("ULTIJOBS_DATABASE_URL", "memory:")
    return cli
