"""One database as a driver sees it: where it is, as whom and with which settings we connect, how it has been lately."""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Final

import asyncpg

from ultijobs.postgres.arrays import introduce_arrays
from ultijobs.postgres.dsn import Dsn
from ultijobs.postgres.faults import is_away, unavailable

if TYPE_CHECKING:
    from asyncpg import Connection, Record

__all__ = ["READING", "SWEEPING", "Gate", "Place"]

CONNECT_WITHIN: Final = 5.0

_HOT: Final = {"plan_cache_mode": "force_generic_plan", "enable_seqscan": "off"}
"""Plans of the hot statements are right without looking at parameters, and right on a table that was empty."""

READING: Final = {
    "default_transaction_read_only": "on",
    "plan_cache_mode": "force_custom_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "max_parallel_workers_per_gather": "0",
}
"""Reads of inspection stop at a limit: plans that collect and sort all rows before it are ruled out, helpers too."""


SWEEPING: Final = {
    "plan_cache_mode": "force_generic_plan",
    "enable_seqscan": "off",
    "enable_bitmapscan": "off",
    "enable_sort": "off",
}
"""Sweeps go along an index from where they were: whatever collects and sorts is ruled out."""


class Gate:
    """Exponential backoff with jitter between attempts to connect, shared by all links to one place."""

    FIRST: Final = 0.1
    LONGEST: Final = 1.5

    def __init__(self) -> None:
        self._failures = 0
        self._not_before = 0.0

    async def wait(self) -> None:
        pause = self._not_before - time.monotonic()
        if pause > 0:
            await asyncio.sleep(pause)

    def failed(self) -> None:
        whole = min(self.LONGEST, self.FIRST * 2 ** min(self._failures, 10))
        self._failures += 1
        self._not_before = time.monotonic() + random.uniform(whole / 2, whole)  # noqa: S311 - spreads load, no secret

    def passed(self) -> None:
        self._failures = 0
        self._not_before = 0.0


class Place:
    """One database as one driver sees it: where it is, as whom we connect, and how it has been lately."""

    def __init__(self, dsn: Dsn, role: str = "app") -> None:
        self.dsn = dsn
        self.role = role
        self.gate = Gate()

    def apart(self) -> Place:
        """The same database for another thread: its backoff is its own."""
        return Place(self.dsn, self.role)

    async def connect(
        self,
        *,
        role: str | None = None,
        limit: float = 5.0,
        hot: bool = False,
        read_only: bool = False,
        settings: Mapping[str, str] | None = None,
    ) -> Connection[Record]:
        """Raises `DriverUnavailable`; waits out the backoff that an earlier failure left."""
        await self.gate.wait()
        arguments = self.dsn.connect_arguments(role or self.role)
        if not self.dsn.pgbouncer:
            arguments["server_settings"] |= {
                "statement_timeout": str(int(limit * 1000)),
                "idle_in_transaction_session_timeout": "15000",
                "jit": "off",
                "tcp_keepalives_idle": "30",
                "tcp_keepalives_interval": "10",
                "tcp_keepalives_count": "3",
                **(_HOT if hot else {}),
                **(READING if read_only else {}),
                **(settings or {}),
            }
        try:
            connection: Connection[Record] = await asyncpg.connect(**arguments, timeout=CONNECT_WITHIN)
        except Exception as failure:
            if not is_away(failure):
                raise
            self.gate.failed()
            raise unavailable(self.dsn, failure) from failure
        introduce_arrays(connection)
        self.gate.passed()
        return connection
