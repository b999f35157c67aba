"""What scripts rely on: one object, always of the same shape."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli, Seeds
from ultijobs.inspection import Inspector

ENVELOPE = ["ok", "command", "summary", "findings", "data"]
FINDING = ["code", "cause", "fix", "docs", "at"]
LISTS = {
    "jobs ls": "id run_id name queue state attempt max_attempts priority idempotency_key tenant_id run_at due_at "
    "created_at updated_at started_at finished_at lease_no lease_until worker_id last_error error_code fingerprint "
    "stop_reason cancel_reason traceparent enqueued_by code_version running_step progress waiting_on behind lane",
    "queues ls": "queue state ready delayed running suspended dead oldest_ready_ms capacity workers paused_at "
    "paused_by pause_reason resume_at",
    "leases": "id run_id name queue tenant_id worker_id attempt max_attempts lease_no running_step started_at "
    "lease_until expired progress",
    "causes": "stop_reason fingerprint error_code error count first_at last_at jobs queues tenants step sample retried "
    "died_again",
    "events ls": "id name key published_at expires_at published_by",
    "activity": "id at actor source action target reason as_of matched done refused failed finished_at equivalent "
    "detail",
}


@pytest.fixture
def full(queue: Cli, seeds: Seeds) -> Cli:
    """A queue with something in every list."""
    seeds.running()
    seeds.dead()
    assert queue("queues", "pause", "default").code == 0
    assert queue("events", "publish", "paid").code == 0
    return queue


@pytest.mark.parametrize("command", LISTS)
def test_the_rows_of_a_list_keep_their_fields(full: Cli, command: str) -> None:
    answer = full(*command.split(), "--json")
    assert list(answer.json) == ENVELOPE
    assert answer.json["command"] == command
    assert {"rows", "next", "as_of"} == set(answer.data)
    assert answer.data["rows"]
    for row in answer.data["rows"]:
        assert list(row) == LISTS[command].split()


def test_stats_keep_their_fields(full: Cli) -> None:
    data = full("stats", "--json").data
    assert list(data) == ["queues", "totals", "oldest_ready_ms", "as_of", "outbox"]
    assert list(data["outbox"]) == ["staged", "oldest", "set_aside", "oldest_set_aside"]
    assert list(data["totals"]) == ["ready", "delayed", "running", "suspended", "done", "failed", "dead", "cancelled"]
    assert all(set(count) == {"value", "kind"} for count in data["totals"].values())
    assert list(data["queues"][0]) == LISTS["queues ls"].split()


@pytest.mark.parametrize(
    "words",
    [
        ["jobs", "show", "zebra"],
        ["jobs", "ls", "--limit", "0"],
        ["jobs", "ls", "--where", "x"],
        ["workers", "drain", "w"],
    ],
    ids=" ".join,
)
def test_a_failure_is_the_same_object_with_findings(queue: Cli, seeds: Seeds, words: list[str]) -> None:
    answer = queue(*words, "--json")
    assert answer.code != 0
    assert list(answer.json) == ENVELOPE
    assert answer.json["ok"] is False
    [finding] = answer.json["findings"]
    assert list(finding) == FINDING
    assert finding["docs"] == f"ultijobs explain {finding['code']}"


def test_an_error_that_nothing_expected_is_exit_1_with_a_code(
    queue: Cli, seeds: Seeds, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def broken(_self: Inspector) -> None:
        raise ZeroDivisionError("postgresql://a:hunter2@h/d")

    monkeypatch.setattr(Inspector, "queues", broken)
    answer = queue("queues", "ls", "--json")
    assert answer.code == 1
    assert answer.codes == ["X_CLI_UNEXPECTED"]
    assert "ZeroDivisionError" in answer.err
    assert "hunter2" not in answer.out + answer.err


@pytest.mark.parametrize("wrapped", [False, True])
def test_an_interruption_is_exit_130(queue: Cli, seeds: Seeds, monkeypatch: pytest.MonkeyPatch, wrapped: bool) -> None:
    async def interrupted(_self: Inspector) -> None:
        if wrapped:  # As an import does it whose class was being made.
            raise RuntimeError("Error calling __set_name__") from KeyboardInterrupt()
        raise KeyboardInterrupt

    monkeypatch.setattr(Inspector, "queues", interrupted)
    answer = queue("queues", "ls", "--json")
    assert answer.code == 130
    assert answer.json["ok"] is False
