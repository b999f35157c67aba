"""Activity: who did what, written before it is done and closed with what came of it."""

from __future__ import annotations

from datetime import timedelta

from tests.contract.harness import Harness
from ultijobs._queue.activity import ActivityEntry

SECOND = timedelta(seconds=1)


def entry(action: str = "retry") -> ActivityEntry:
    return ActivityEntry("alice", "cli", action, "state:dead", reason="bank is back")


async def test_an_act_is_written_before_and_after(harness: Harness) -> None:
    now = await harness.driver.inspect.now()
    job_id = await harness.driver.open_activity(
        ActivityEntry(
            "alice",
            "tui",
            "retry",
            "state:dead",
            reason="bank is back",
            as_of=now - SECOND,
            matched=12,
            equivalent="ultijobs jobs retry --where state:dead",
            detail={"from_step": "charge"},
        )
    )
    (seen,) = await harness.driver.inspect.activity()
    assert (seen.id, seen.at, seen.actor, seen.source) == (job_id, now, "alice", "tui")
    assert (seen.action, seen.target, seen.reason, seen.as_of) == ("retry", "state:dead", "bank is back", now - SECOND)
    assert (seen.matched, seen.done, seen.refused, seen.failed, seen.finished_at) == (12, None, None, None, None)
    assert seen.equivalent == "ultijobs jobs retry --where state:dead"
    assert dict(seen.detail) == {"from_step": "charge"}
    await harness.advance(SECOND)
    finished = await harness.driver.close_activity(job_id, matched=11, done=8, refused=2, failed=1)
    (seen,) = await harness.driver.inspect.activity()
    assert (seen.matched, seen.done, seen.refused, seen.failed) == (11, 8, 2, 1)
    assert (seen.at, seen.finished_at, finished) == (now, now + SECOND, now + SECOND)


async def test_the_newest_come_first_and_pages_go_on_after_the_last(harness: Harness) -> None:
    ids = [await harness.driver.open_activity(entry(f"act-{n}")) for n in range(5)]
    first = await harness.driver.inspect.activity(limit=2)
    assert [seen.id for seen in first] == [ids[4], ids[3]]
    rest = await harness.driver.inspect.activity(after=first[-1].id)
    assert [seen.id for seen in rest] == [ids[2], ids[1], ids[0]]
