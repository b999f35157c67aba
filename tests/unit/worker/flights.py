"""Claimed jobs and bodies that do nothing, for tests of what is around them."""

from __future__ import annotations

import asyncio
import math
import threading
import time
from datetime import UTC, datetime
from typing import Any

from ultijobs._execution.ending import Ending
from ultijobs._ids import new_id
from ultijobs._queue.claims import Beat, ClaimedJob, Settlement, Verdict
from ultijobs._queue.records import Outcome, UniqueMode


def claimed(lease_no: int = 1, **fields: Any) -> ClaimedJob:
    now = datetime.now(UTC)
    own = new_id()
    return ClaimedJob(
        **{
            "id": own,
            "run_id": own,
            "name": "mail",
            "queue": "default",
            "tenant_id": None,
            "lane": "",
            "priority": 0,
            "attempt": 1,
            "max_attempts": 3,
            "claims": 1,
            "has_steps": False,
            "lease_no": lease_no,
            "input": "null",
            "unique": UniqueMode.LIVE,
            "run_at": now,
            "created_at": now,
            "claimed_at": now,
            **fields,
        }
    )


def settlement(job: ClaimedJob, outcome: Outcome = Outcome.OK, **fields: Any) -> Settlement:
    return Settlement(job.id, job.run_id, job.lease_no, outcome, job.attempt, "w", job.queue, **fields)


class FakeBody:
    """Remembers what it was told, and in which thread."""

    def __init__(self, job: ClaimedJob) -> None:
        self.job = job
        self.due = math.inf
        self.ends: list[tuple[Ending, float, int]] = []
        self.checks = 0
        self.renewable = True
        self.unreadable = False
        self.abandoned = False
        self.replayed = 0
        self.steps = ((), ())
        self.error = None
        self.tasks: list[asyncio.Task[None]] = []
        self.confirmed: list[Verdict] = []

    def beat(self, now: float) -> Beat | None:
        return Beat(self.job.id, self.job.lease_no) if self.renewable else None

    def check(self) -> None:
        self.checks += 1
        self.due = math.inf

    def cancel(self, why: Ending) -> None:
        self.ends.append((why, time.monotonic(), threading.get_ident()))

    def hand_back(self) -> Settlement | None:
        return None

    async def run(self) -> Settlement | None:
        return None

    async def confirm(self, verdict: Verdict) -> None:
        self.confirmed.append(verdict)
