"""The outbox at the command line: what waits, what was set aside, and staging that again."""

from __future__ import annotations

import asyncio
from datetime import timedelta
from uuid import UUID

import pytest

from tests.cli.conftest import Cli, Seeds
from ultijobs._ids import new_id
from ultijobs._queue.outbox import Published, Unsent
from ultijobs._queue.records import NewJob


def staged(seeds: Seeds, *names: str, tenant: str | None = None) -> list[UUID]:
    """Rows of one transaction."""

    async def put() -> list[UUID]:
        async with seeds.driver.transaction() as tx:
            given = [NewJob(id=new_id(), name=name, input="{}", tenant_id=tenant) for name in names]
            return [row.id for row in await seeds.driver.outbox.stage(given, tx=tx)]

    return asyncio.run(put())


@pytest.fixture
def rows(seeds: Seeds) -> dict[str, UUID]:
    """One published, one that was refused, the one behind it, one that waits."""
    (sent,) = staged(seeds, "sent")
    bad, behind = staged(seeds, "bad", "behind")
    (waiting,) = staged(seeds, "waiting")

    async def relay() -> None:
        outbox = seeds.driver.outbox
        first, second, *rest = await outbox.claim("r", limit=10, lease=timedelta(seconds=30))
        await outbox.mark([Published(sent, first.claim_no, sent)])
        await outbox.fail([Unsent(bad, second.claim_no, "ValueError: \x1b[31mno", None)])
        await outbox.release(rest)

    asyncio.run(relay())
    return {"sent": sent, "bad": bad, "behind": behind, "waiting": waiting}


def test_ls_tells_each_row_newest_first_with_its_state_and_what_went_wrong(queue: Cli, rows: dict[str, UUID]) -> None:
    answer = queue("outbox", "ls", "--json")
    assert answer.code == 0
    told = answer.data["rows"]
    assert [row["name"] for row in told] == ["waiting", "behind", "bad", "sent"]
    assert [row["state"] for row in told] == ["staged", "set-aside", "set-aside", "published"]
    assert {"id", "name", "state", "attempts", "last_error", "staged_at"} <= set(told[0])
    assert (told[2]["attempts"], told[1]["held_by"]) == (1, str(rows["bad"]))
    assert answer.data["staged"] == {"value": 1, "kind": "exact"}
    assert answer.data["set_aside"] == {"value": 2, "kind": "exact"}
    assert "\x1b" not in queue("outbox").out


def test_ls_takes_a_state_and_a_page(queue: Cli, rows: dict[str, UUID]) -> None:
    first = queue("outbox", "ls", "--state", "set-aside", "--limit", "1", "--json").data
    assert [row["name"] for row in first["rows"]] == ["behind"]
    second = queue("outbox", "ls", "--state", "set-aside", "--after", first["next"], "--json").data
    assert [row["name"] for row in second["rows"]] == ["bad"]
    assert second["next"] is None
    assert queue("outbox", "ls", "--state", "odd").code == 2


def test_a_tenant_that_is_known_nowhere_is_told_and_one_without_such_rows_is_not(queue: Cli, seeds: Seeds) -> None:
    staged(seeds, "sent", tenant="acme")
    assert "no job of a tenant 'acne' is known" in queue("outbox", "ls", "--tenant", "acne").err
    assert "is known" not in queue("outbox", "ls", "--tenant", "acme", "--state", "set-aside").err


def test_retry_stages_a_row_again_with_those_behind_it_and_answers_as_retry_does(
    queue: Cli, rows: dict[str, UUID]
) -> None:
    foreseen = queue("outbox", "retry", rows["bad"].hex[-8:], "--dry-run", "--json")
    assert (foreseen.code, foreseen.data["matched"], foreseen.data["done"]) == (0, 2, [])
    assert foreseen.data["warnings"] == ["1 later rows of the same transaction come along"]
    assert queue("activity", "--json").data["rows"] == []
    answer = queue("outbox", "retry", rows["bad"].hex[-8:], "--yes", "--reason", "fixed", "--json")
    assert answer.code == 0
    assert answer.data["done"] == [str(rows["bad"]), str(rows["behind"])]
    assert (answer.data["matched"], answer.data["refused"], answer.data["failed"]) == (2, [], [])
    assert {row["state"] for row in queue("outbox", "ls", "--json").data["rows"]} == {"staged", "published"}
    (act,) = queue("activity", "--json").data["rows"]
    assert (act["action"], act["reason"], act["done"]) == ("outbox-retry", "fixed", 2)


def test_a_row_of_another_tenant_does_not_exist(queue: Cli, rows: dict[str, UUID]) -> None:
    assert queue("outbox", "ls", "--tenant", "acme", "--json").data["rows"] == []
    answer = queue("outbox", "retry", str(rows["bad"]), "--tenant", "acme", "--json")
    assert (answer.code, answer.codes) == (3, ["X_JOB_UNKNOWN"])


def test_retry_refuses_what_is_not_set_aside_and_what_is_unknown(queue: Cli, rows: dict[str, UUID]) -> None:
    answer = queue("outbox", "retry", str(rows["sent"]), str(rows["waiting"]), "--json")
    assert answer.code == 1
    assert answer.codes == ["X_JOB_NOT_RETRYABLE", "X_JOB_NOT_RETRYABLE"]
    for unknown in (str(new_id()), "zebra"):
        answer = queue("outbox", "retry", unknown, "--json")
        assert (answer.code, answer.codes) == (3, ["X_JOB_UNKNOWN"])
        assert answer.data["refused"][0]["id"] == unknown
        assert [each["docs"] for each in answer.json["findings"]] == ["ultijobs explain X_JOB_UNKNOWN"]
    assert queue("outbox", "retry").code == 2
