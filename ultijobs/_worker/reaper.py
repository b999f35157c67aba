"""Ends claims whose lease lapsed, wherever their worker went, and says what became of the jobs."""

from __future__ import annotations

import logging
from collections.abc import Callable

from ultijobs._log import emit
from ultijobs._queue.claims import CrashPolicy, Reaped
from ultijobs._queue.driver import Driver
from ultijobs._queue.records import JobState

__all__ = ["Reaper"]


class Reaper:
    """Reaps with the policies of this app's jobs and, for other names, of the catalogue."""

    def __init__(
        self,
        driver: Driver,
        own: dict[str, CrashPolicy],
        *,
        worker_id: str,
        reaped: Callable[[list[Reaped]], None],
    ) -> None:
        self._driver = driver
        self._policies = dict(own)
        self._own = own
        self._worker_id = worker_id
        self._reaped = reaped

    async def once(self) -> list[Reaped]:
        reaped = await self._driver.reap(list(self._policies.values()))
        for claim in reaped:
            self._tell(claim)
        if reaped:
            self._reaped(reaped)
        return reaped

    def learn(self, policies: dict[str, CrashPolicy]) -> None:
        """Takes the policies of names that other applications declare."""
        self._policies = policies | self._own

    def _tell(self, claim: Reaped) -> None:
        stopped = claim.state in {JobState.DEAD, JobState.FAILED}
        emit(
            logging.ERROR if stopped else logging.WARNING,
            "jobs.lease.lapsed",
            f"the lease of {claim.name} lapsed under worker {claim.worker_id or '?'}: "
            + ("its attempts are used up" if stopped else "it is delivered again"),
            job_id=claim.id,
            run_id=claim.run_id,
            name=claim.name,
            attempt=claim.attempt,
            lease_no=claim.lease_no,
            worker_id=self._worker_id,
            code="X_JOB_MAX_ATTEMPTS" if stopped else None,
            stop_reason="lease-exhausted" if stopped else None,
        )
