"""How a run of a task went is told by the worst of its jobs; what is no longer kept is not made up."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from ultijobs._queue.schedule import Run
from ultijobs.inspection.runs import RunResult, latest_runs

AT = datetime(2026, 3, 14, tzinfo=UTC)


class Ledger:
    def __init__(self, *runs: Run) -> None:
        self.found = list(runs)

    async def runs(self, tasks: list[str], *, each: int) -> list[Run]:
        assert (tasks, each) == (["digest"], 15)
        return self.found


def run(outcome: str, jobs: int, states: tuple[str, ...], code: str | None = None) -> Run:
    return Run("digest", AT, outcome, jobs, states, AT, AT + timedelta(seconds=2), code)


@pytest.mark.parametrize(
    ("found", "result", "took"),
    [
        (run("fired", 2, ("dead", "done", "ready"), "X_B"), RunResult.DEAD, 2_000),
        (run("caught-up", 2, ("done", "ready")), RunResult.RUNNING, None),
        (run("fired", 2, ("cancelled", "done")), RunResult.CANCELLED, 2_000),
        (run("fired", 1, ("done",)), RunResult.DONE, 2_000),
        (run("fired", 0, ()), RunResult.DONE, 2_000),
        (run("fired", 1, ()), RunResult.UNKNOWN, None),
        (run("skipped", 0, ()), RunResult.SKIPPED, None),
        (run("missed", 0, ()), RunResult.MISSED, None),
    ],
)
async def test_the_worst_of_its_jobs_says_how_a_run_went(found: Run, result: RunResult, took: int | None) -> None:
    ledger: Any = Ledger(found)
    ((told,),) = (await latest_runs(ledger, ["digest"])).values()
    assert (told.result, told.took_ms, told.error_code) == (result, took, found.error_code)


async def test_without_tasks_nothing_is_asked() -> None:
    ledger: Any = None
    assert await latest_runs(ledger, []) == {}
