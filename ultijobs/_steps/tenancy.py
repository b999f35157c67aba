"""`cross_tenant`: the only way out of the tenant of a run, logged with its reason."""

from __future__ import annotations

import logging
from types import TracebackType
from typing import Any, Final

from ultijobs._log import emit
from ultijobs._steps.context import RUNNING
from ultijobs._steps.guard import CROSSING, Crossing
from ultijobs._text import clip
from ultijobs.errors import Invariant

__all__ = ["cross_tenant"]

REASON_LIMIT: Final = 500


class cross_tenant:  # noqa: N801 - it is used as a function is
    """Steps out of the tenant of the run for the block, for a reason that is logged: `with cross_tenant("why"):`.

    In the block `current().crossing` is the reason, and a transaction that is guarded there (`Context.guard`) sees the
    rows of all tenants. `current().tenant` stays what it is. The way out ends with the block, also for tasks and
    threads that were started in it. Raises `Invariant` for a reason that is no text, or an empty one.
    """

    def __init__(self, reason: str, /) -> None:
        given: Any = reason
        if not isinstance(given, str) or not given.strip():
            raise Invariant(
                f"cross_tenant: the reason is {given!r:.100}", fix='say why: cross_tenant("monthly report")'
            )
        self._reason = clip(given.strip(), REASON_LIMIT)
        self._opened: list[Crossing] = []

    def __enter__(self) -> None:
        running = RUNNING.get(None)
        emit(
            logging.INFO,
            "jobs.tenant.crossed",
            f"stepping out of {_place(None if running is None else running.tenant)}: {self._reason}",
            job_id=None if running is None else running.job_id,
            run_id=None if running is None else running.run_id,
            name=None if running is None else running.name,
            attempt=None if running is None else running.attempt,
        )
        crossing = Crossing(self._reason, CROSSING.get())
        CROSSING.set(crossing)
        self._opened.append(crossing)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        crossing = self._opened.pop()
        crossing.open = False
        if CROSSING.get() is crossing:
            CROSSING.set(crossing.outer)

    async def __aenter__(self) -> None:
        self.__enter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.__exit__(kind, error, trace)


def _place(tenant: str | None) -> str:
    return "no tenant" if tenant is None else f"tenant {tenant!r}"
