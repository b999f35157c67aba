"""What the list of workers says of one that is gone."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from ultijobs._queue.views import WorkerRow
from ultijobs_cli.commands.workers import state_of, uptime

NOW = datetime(2026, 3, 14, 14, tzinfo=UTC)
BEGAN = NOW - timedelta(hours=2)


GONE = WorkerRow(
    "w-1", UUID(int=1), "h", 1, "1", None, None, "gone", ("default",), ("ship",), 4, 0, 4,
    BEGAN, BEGAN + timedelta(minutes=5), None, None, 0, 0, listening=True,
)  # fmt: skip


def test_a_worker_that_is_gone_was_up_until_its_last_beat() -> None:
    assert uptime(GONE, NOW) == "5m00s"
    assert uptime(replace(GONE, state="healthy"), NOW) == "2h"


def test_a_state_is_a_word_of_the_list_and_a_time_says_that_the_process_has_ended() -> None:
    standing_by = replace(GONE, state="drained")
    assert state_of(standing_by, NOW).text == "drained"
    assert state_of(replace(standing_by, stopped_at=NOW - timedelta(minutes=14)), NOW).text == "drained 14m"
