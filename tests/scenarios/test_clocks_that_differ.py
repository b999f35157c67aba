"""Hosts whose clocks are minutes off: time is the database's."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Any
from uuid import UUID

import pytest

from tests.scenarios.conftest import LATE, Ground, calm, clock, faketime_is_missing
from tests.scenarios.trade import waits_for_word
from tests.support.eventually import eventually
from tests.support.stage import Ask, quick
from ultijobs import App

pytestmark = [
    faketime_is_missing,
    pytest.mark.timeout(180),
]


async def test_fast_and_slow_hosts_agree_by_the_clock_of_the_database(ground: Ground, here: App[Any]) -> None:
    workers = [await ground.worker("slow", env=clock("-5m")), await ground.worker("exact")]
    now = await asked(ground, "jobs", "enqueue", "quick", "--input", '{"key": "now"}')
    later = await asked(ground, "jobs", "enqueue", "quick", "--input", '{"key": "later"}', "--delay", "3s")
    assert await ground.started(UUID(str(now["id"]))) <= 0.5 + LATE
    assert 3 <= await ground.started(UUID(str(later["id"]))) <= 3 + 2 * LATE

    for key in ("fast", "slow"):
        await waits_for_word.enqueue(Ask(key=key))
    await eventually(lambda: suspended(ground, 2))
    await asked(ground, "events", "publish", "word.given", "--key", "fast")
    await asked(ground, "events", "publish", "word.given", "--key", "slow", offset="-5m")
    await ground.stage.effect("heard", 2, within=5)

    long = await quick.enqueue_many([Ask(key=f"long {number}", seconds=12) for number in range(16)])
    await ground.stage.effect("start", 2 + len(long))
    waiting = await quick.enqueue(Ask(key="waits for a slot"))
    stats = await asked(ground, "stats")
    due = (await ground.fetch("select due_at from x_jobs where id = $1", waiting.id))[0]["due_at"]
    age = (datetime.fromisoformat(str(stats["as_of"])) - due).total_seconds()
    assert abs(float(str(stats["oldest_ready_ms"])) / 1_000 - age) <= 1
    await ground.started(waiting.id)
    await ground.all_done(5 + len(long))
    assert {row["attempt"] for row in await ground.fetch("select attempt from x_jobs_all")} <= {1}
    await ground.executed_once()
    calm(*workers)
    assert not any(worker.lines("jobs.lease.lost") for worker in workers)


async def asked(ground: Ground, *words: str, offset: str = "+5m") -> dict[str, object]:
    """What a command answers on a host whose clock is off."""
    line = ["-m", "ultijobs_cli", *words, "--app", ground.stage.app, "--json"]
    command = ground.stage.spawn("-".join(words[:2]), line, ground.url, **clock(offset))
    assert await command.exit_code() == 0, command.text()
    answer = json.loads(command.text().partition("\n")[0])
    data: dict[str, object] = answer["data"]
    return data


async def suspended(ground: Ground, count: int) -> bool:
    return (await ground.states())["suspended"] == count
