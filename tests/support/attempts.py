"""One run of one handler, attempt by attempt, against a step store in memory that obeys the contract."""

from __future__ import annotations

import asyncio
import dataclasses
import inspect
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import TypeAdapter

from ultijobs._execution.attempt import Attempt
from ultijobs._execution.children import tracked
from ultijobs._execution.classify import Classifier
from ultijobs._execution.host import Host
from ultijobs._ids import new_id
from ultijobs._queue.claims import ClaimedJob, Settlement, Verdict
from ultijobs._queue.events import Look, Seen, Sight
from ultijobs._queue.records import Outcome, UniqueMode
from ultijobs._queue.steps import StepAnswer, StepRecord, StepStatus, StepWrite
from ultijobs._retry import RetryPolicy
from ultijobs._steps.threads import Threads

EPOCH = datetime(2026, 1, 1, tzinfo=UTC)


@dataclass
class Declared:
    """The part of a declaration that execution reads."""

    fn: Callable[..., Any]
    name: str = "demo"
    retry: RetryPolicy = field(default_factory=lambda: RetryPolicy(jitter=False))
    timeout: timedelta | None = None
    step_timeout: timedelta | None = None
    event_poll: timedelta | None = None
    adapter: TypeAdapter[Any] = field(default_factory=lambda: TypeAdapter(Any))

    @property
    def takes(self) -> frozenset[str]:
        return frozenset(inspect.signature(self.fn).parameters)

    @property
    def is_async(self) -> bool:
        return inspect.iscoroutinefunction(self.fn)

    def validate(self, text: str, /) -> Any:
        return self.adapter.validate_json(text)


class Steps:
    """A step store: completed records are immutable, writes are fenced by the lease, the clock is the test's."""

    def __init__(self) -> None:
        self.now = EPOCH
        self.records: dict[str, StepRecord] = {}
        self.writes: list[StepWrite] = []
        self.looks: list[Look] = []
        self.events: list[tuple[str, str | None, str]] = []
        """Name, key and stored form, in the order of their publishing."""
        self.loads = 0
        self.lease_no = 0
        self.refusal: Callable[[StepWrite], BaseException | None] = lambda _: None
        self.held_back: list[Callable[[], None]] | None = None
        """Set to a list to hold answers back; call what it collects to let them land."""

    async def load(self, run_id: UUID, /) -> Sequence[StepRecord]:
        self.loads += 1
        return list(self.records.values())

    def record(self, write: StepWrite, done: Callable[[StepAnswer | BaseException], None], /) -> None:
        def land() -> None:
            done(self._store(write))

        if self.held_back is None:
            asyncio.get_running_loop().call_soon(land)
        else:
            self.held_back.append(land)

    def look(self, look: Look, done: Callable[[Seen | BaseException], None], /) -> None:
        asyncio.get_running_loop().call_soon(lambda: done(self._seen(look)))

    def publish(self, name: str, payload: str = "null", key: str | None = None) -> None:
        about = {"id": str(new_id()), "name": name, "key": key, "published_at": self.now.isoformat()}
        self.events.append((name, key, json.dumps(about)[:-1] + f', "payload": {payload}}}'))

    def _seen(self, look: Look) -> Seen:
        self.looks.append(look)
        if look.lease_no != self.lease_no:
            return Seen(Sight.LOST)
        step = self.records[look.step]
        had = {record.output for record in self.records.values()}
        for name, key, output in self.events:
            if name == step.event and step.match in (None, key) and output not in had:
                self.records[look.step] = dataclasses.replace(step, status="completed", output=output)
                return Seen(Sight.EVENT, output)
        if step.wake_at is not None and step.wake_at <= self.now:
            if not look.required:
                self.records[look.step] = dataclasses.replace(step, status="completed", output="null")
            return Seen(Sight.OVER)
        again = step.wake_at if look.again is None or step.wake_at is None else min(step.wake_at, self.now + look.again)
        return Seen(Sight.NOTHING, None, again)

    def _store(self, write: StepWrite) -> StepAnswer | BaseException:
        refused = self.refusal(write)
        if refused is not None:
            return refused
        if write.lease_no != self.lease_no:
            return StepAnswer(held=False)
        self.writes.append(write)
        known = self.records.get(write.name)
        if known is not None and known.status == StepStatus.COMPLETED:
            return StepAnswer(held=True, wake_at=known.wake_at)
        wake = self.now + write.wake_in if write.wake_in is not None else None if known is None else known.wake_at
        self.records[write.name] = StepRecord(
            run_id=write.run_id,
            name=write.name,
            kind=write.kind.value,
            status=write.status.value,
            output=write.output,
            error=write.error,
            position=write.position,
            started_at=self.now,
            completed_at=self.now if write.status is StepStatus.COMPLETED else None,
            wake_at=wake,
            tries=write.tries,
            lease_no=write.lease_no,
            event=write.event,
            match=write.match,
        )
        return StepAnswer(held=True, wake_at=wake)


class Bench:
    """Claims and runs attempts of one job; applies each settlement as a store would."""

    def __init__(self, declared: Declared | Callable[..., Any], *, attempts: int = 3, **host: Any) -> None:
        self.declared = declared if isinstance(declared, Declared) else Declared(declared)
        self.steps = Steps()
        self.threads = Threads(8)
        self.settled: list[Settlement | None] = []
        self.attempt: Attempt
        job_id = new_id()
        self.job = ClaimedJob(
            id=job_id,
            run_id=job_id,
            name=self.declared.name,
            queue="default",
            tenant_id=None,
            lane="",
            priority=0,
            attempt=0,
            max_attempts=attempts,
            claims=0,
            has_steps=False,
            lease_no=0,
            input="null",
            unique=UniqueMode.LIVE,
            run_at=EPOCH,
            created_at=EPOCH,
            claimed_at=EPOCH,
        )
        self._host = {"classifier": Classifier(), **host}

    def claim(self, **changes: Any) -> Attempt:
        self.steps.lease_no += 1
        self.job = dataclasses.replace(
            self.job,
            attempt=self.job.attempt + 1,
            claims=self.job.claims + 1,
            has_steps=self.job.claims > 0,
            lease_no=self.steps.lease_no,
            claimed_at=self.steps.now,
            **changes,
        )
        loop = asyncio.get_running_loop()
        host = Host(worker_id="w", loop=loop, steps=self.steps, threads=self.threads, **self._host)
        self.attempt = Attempt(self.job, self.declared, host)
        return self.attempt

    async def run(self, **changes: Any) -> Settlement | None:
        """Claims and runs one attempt to its settlement."""
        attempt = self.claim(**changes)
        with tracked(asyncio.get_running_loop()):
            settlement = await asyncio.get_running_loop().create_task(attempt.run())
        return await self.settle(settlement)

    @contextmanager
    def started(self, **changes: Any) -> Iterator[asyncio.Task[Settlement | None]]:
        """An attempt that runs beside the test."""
        attempt = self.claim(**changes)
        with tracked(asyncio.get_running_loop()):
            task = asyncio.get_running_loop().create_task(attempt.run())
            try:
                yield task
            finally:
                if not task.done():
                    self.threads.release()

    async def settle(self, settlement: Settlement | None) -> Settlement | None:
        self.settled.append(settlement)
        if settlement is not None:
            if settlement.outcome in {Outcome.SUSPENDED, Outcome.RETURNED}:
                self.job = dataclasses.replace(self.job, attempt=self.job.attempt - 1)
            if settlement.run_at is not None:
                self.steps.now = max(self.steps.now, settlement.run_at)
            await self.attempt.confirm(Verdict.SETTLED)
        return settlement

    async def run_out(self, *, most: int = 20) -> list[Outcome]:
        """Attempts until the run has stopped; how each of them ended."""
        for _ in range(most):
            settlement = await self.run()
            if settlement is None or settlement.outcome in {Outcome.OK, Outcome.DEAD, Outcome.FAILED}:
                break
        return [each.outcome for each in self.settled if each is not None]
