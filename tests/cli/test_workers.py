"""What the list of workers says of one that is gone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from ultijobs._queue.views import WorkerRow
from ultijobs_cli.commands.workers import uptime

NOW = datetime(2026, 3, 14, 14, tzinfo=UTC)
BEGAN = NOW - timedelta(hours=2)


def test_a_worker_that_is_gone_was_up_until_its_last_beat() -> None:
    gone = WorkerRow(
        "w-1", UUID(int=1), "h", 1, "1", None, None, "gone", ("default",), ("ship",), 4, 0, 4,
        BEGAN, BEGAN + timedelta(minutes=5), None, None, 0, 0, listening=True,
    )  # fmt: skip
    assert uptime(gone, NOW) == "5m00s"
    assert uptime(replace(gone, state="healthy"), NOW) == "2h"
