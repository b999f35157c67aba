"""Acting on jobs: nothing happens that was not asked for, and what was refused says why."""

from __future__ import annotations

import shlex

import pytest

from tests.cli.conftest import Cli, Seeds
from ultijobs.inspection import Outcome
from ultijobs_cli import acts


def state(queue: Cli, job: object) -> str:
    return queue("jobs", "show", str(job), "--json").data["state"]


def test_retry_answers_with_what_it_matched_did_and_refused(queue: Cli, seeds: Seeds) -> None:
    dead, live = seeds.dead(), seeds.job("other")
    answer = queue("jobs", "retry", str(dead), str(live), "--json")
    assert answer.code == 1
    data = answer.data
    assert (data["matched"], data["done"], data["failed"]) == (2, [str(dead)], [])
    [refused] = data["refused"]
    assert set(refused) == {"id", "code", "cause"}
    assert (refused["id"], refused["code"]) == (str(live), "X_JOB_NOT_RETRYABLE")
    assert state(queue, dead) == "ready"


def test_an_unknown_id_does_not_keep_the_others_from_their_retry(queue: Cli, seeds: Seeds) -> None:
    dead = seeds.dead()
    answer = queue("jobs", "retry", "zebra", str(dead), "--json")
    assert answer.code == 3
    assert answer.data["done"] == [str(dead)]
    assert answer.data["refused"] == [
        {"id": "zebra", "code": "X_JOB_UNKNOWN", "cause": answer.data["refused"][0]["cause"]}
    ]


def test_an_id_given_twice_is_acted_on_once(queue: Cli, seeds: Seeds) -> None:
    dead = seeds.dead()
    data = queue("jobs", "retry", str(dead), dead.hex[-8:], "--json").data
    assert (data["matched"], data["done"]) == (1, [str(dead)])


@pytest.mark.parametrize("outcome", [Outcome.OK, Outcome.DEAD, Outcome.FAILED])
def test_a_job_that_has_ended_is_not_cancelled(queue: Cli, seeds: Seeds, outcome: Outcome) -> None:
    job = seeds.settled(outcome)
    before = queue("jobs", "show", str(job), "--json").data
    answer = queue("jobs", "cancel", str(job), "--json")
    assert answer.code == 1
    assert answer.codes == ["X_JOB_NOT_CANCELLABLE"]
    assert queue("jobs", "show", str(job), "--json").data == before


def test_a_done_job_is_retried_only_when_done_is_said(queue: Cli, seeds: Seeds) -> None:
    job = seeds.settled(Outcome.OK)
    assert queue("jobs", "retry", str(job)).code == 1
    assert queue("jobs", "retry", str(job), "--done").code == 0
    assert state(queue, job) == "ready"


def test_an_unknown_step_is_not_found_and_the_known_ones_are_listed(queue: Cli, seeds: Seeds) -> None:
    claim = seeds.running()
    seeds.step(claim, "load")
    seeds.settle(claim, Outcome.DEAD)
    answer = queue("jobs", "retry", str(claim.id), "--from-step", "laod", "--json")
    assert answer.code == 3
    assert answer.codes == ["X_STEP_UNKNOWN"]
    assert "load" in answer.json["findings"][0]["cause"]
    assert state(queue, claim.id) == "dead"


def test_a_retry_is_undone_by_its_act_and_only_once(queue: Cli, seeds: Seeds) -> None:
    dead = [seeds.dead(), seeds.dead("mail")]
    before = queue("jobs", "show", str(dead[1]), "--json").data
    told = queue("jobs", "retry", *map(str, dead))
    act = queue("activity", "--json").data["rows"][0]["id"]
    assert f"ultijobs jobs undo …{act.replace('-', '')[-8:]}" in told.out + told.err
    seeds.running()
    assert queue("jobs", "undo", act, "--json").code == 2
    foreseen = queue("jobs", "undo", act, "--dry-run", "--json")
    assert (foreseen.code, foreseen.data["matched"], foreseen.codes) == (0, 2, ["X_NOT_UNDOABLE"])
    undone = queue("jobs", "undo", f"…{act[-8:]}", "--reason", "still down", "--yes", "--json")
    assert (undone.code, undone.codes) == (1, ["X_NOT_UNDOABLE"])
    assert undone.data["done"] == [str(dead[1])]
    after = queue("jobs", "show", str(dead[1]), "--json").data
    assert {**after, "updated_at": None} == {**before, "updated_at": None}
    again = queue("jobs", "undo", act, "--yes", "--json")
    assert (again.code, again.codes) == (1, ["X_NOT_UNDOABLE"])
    assert queue("jobs", "undo", "abcdef", "--yes", "--json").code == 3


def test_a_filter_needs_yes_where_nobody_can_be_asked(queue: Cli, seeds: Seeds) -> None:
    ids = [seeds.dead(), seeds.dead()]
    answer = queue("jobs", "retry", "--where", "state:dead", "--json")
    assert answer.code == 2
    assert answer.codes == ["X_CLI_BAD_FLAG"]
    assert {state(queue, job) for job in ids} == {"dead"}
    assert queue("activity", "--json").data["rows"] == []
    assert queue("jobs", "retry", "--where", "state:dead", "--yes", "--json").data["matched"] == 2
    assert {state(queue, job) for job in ids} == {"ready"}


@pytest.mark.parametrize("words", [[], ["--where", ""], ["--where", "  "], ["--where", "state:dead", "abcdef12"]])
def test_an_act_takes_ids_or_a_filter_and_never_everything(queue: Cli, seeds: Seeds, words: list[str]) -> None:
    job = seeds.dead()
    answer = queue("jobs", "retry", *words, "--yes", "--json")
    assert answer.code == 2
    assert state(queue, job) == "dead"


@pytest.mark.parametrize(
    ("typed", "done"), [("y\n", True), ("yes\n", True), ("\n", False), ("n\n", False), ("", False)]
)
def test_at_a_terminal_a_filter_shows_its_plan_and_asks(
    queue: Cli, seeds: Seeds, monkeypatch: pytest.MonkeyPatch, typed: str, done: bool
) -> None:
    monkeypatch.setattr(acts, "at_terminal", lambda: True)
    job = seeds.dead(queue="billing")
    answer = queue("jobs", "retry", "--where", "state:dead", input=typed)
    assert "retry 1 job? [y/N]" in answer.err
    assert "billing 1" in answer.err
    assert answer.code == (0 if done else 1)
    assert state(queue, job) == ("ready" if done else "dead")


def test_many_rows_ask_for_their_number(queue: Cli, seeds: Seeds, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(acts, "at_terminal", lambda: True)
    for _ in range(21):
        seeds.dead()
    refused = queue("jobs", "retry", "--where", "state:dead", input="y\n")
    assert "type 21 to go on" in refused.err
    assert refused.code == 1
    assert queue("jobs", "retry", "--where", "state:dead", input="21\n").code == 0
    assert queue("stats", "--json").data["totals"]["ready"]["value"] == 21


def test_a_dry_run_tells_the_plan_and_changes_nothing(queue: Cli, seeds: Seeds) -> None:
    ids = {str(seeds.dead(queue="billing")) for _ in range(2)}
    answer = queue("jobs", "retry", "--where", "state:dead", "--dry-run", "--json")
    assert answer.code == 0
    data = answer.data
    assert (data["dry_run"], data["matched"], data["done"], data["queues"]) == (True, 2, [], {"billing": 2})
    assert set(data["samples"]) == ids
    assert {state(queue, job) for job in ids} == {"dead"}


def test_the_equivalent_command_does_the_same(queue: Cli, seeds: Seeds) -> None:
    job = seeds.dead(queue="billing")
    told = queue("jobs", "retry", "--where", "queue:billing", "--reason", "it's fixed", "--dry-run", "--json").data
    program, *words = shlex.split(told["equivalent"])
    assert program == "ultijobs"
    assert queue(*words, "--yes", "--json").data["done"] == [str(job)]


def test_what_is_touched_after_as_of_is_left_alone(queue: Cli, seeds: Seeds) -> None:
    early = seeds.dead()
    seeds.clock.move(minutes=5)
    late = seeds.dead()
    words = ("--where", "state:dead", "--as-of", "2026-03-01T12:01:00Z", "--yes")
    assert queue("jobs", "retry", *words, "--json").data["done"] == [str(early)]
    assert state(queue, late) == "dead"


def test_a_limit_makes_a_canary(queue: Cli, seeds: Seeds) -> None:
    first, _ = sorted([seeds.dead(), seeds.dead()])
    data = queue("jobs", "retry", "--where", "state:dead", "--limit", "1", "--yes", "--json").data
    assert data["done"] == [str(first)]


def test_a_queue_that_nobody_knows_is_told(queue: Cli, seeds: Seeds) -> None:
    seeds.job(queue="billing")
    paused = queue("queues", "pause", "biling", "--json")
    assert paused.code == 0
    assert paused.data["warnings"] == ["no job, worker or declaration names the queue biling; there is billing"]
    assert queue("queues", "resume", "biling").code == 0
    resumed = queue("queues", "resume", "billling", "--json")
    assert (resumed.code, resumed.codes) == (3, ["X_QUEUE_UNKNOWN"])
    assert resumed.json["findings"][0]["fix"] == "ultijobs queues resume billing"


@pytest.mark.parametrize(
    ("flag", "value"),
    [
        ("--pace", "fast"),
        ("--pace", "0/1s"),
        ("--pace", "500/soon"),
        ("--as-of", "yesterday"),
        ("--as-of", "2026-03-01T12:00:00"),
        ("--limit", "0"),
    ],
)
def test_an_option_that_cannot_be_read_is_refused_by_name(queue: Cli, seeds: Seeds, flag: str, value: str) -> None:
    job = seeds.dead()
    answer = queue("jobs", "retry", str(job), flag, value, "--json")
    assert answer.code == 2
    assert answer.json["findings"][0]["at"] == flag
    assert state(queue, job) == "dead"


def test_paced_acts_do_all_of_it(queue: Cli, seeds: Seeds) -> None:
    ids = [seeds.dead() for _ in range(5)]
    assert len(queue("jobs", "retry", *map(str, ids), "--pace", "2/10ms", "--json").data["done"]) == 5


def test_every_act_leaves_who_why_and_with_what_result(queue: Cli, seeds: Seeds) -> None:
    job = seeds.dead()
    queue("jobs", "retry", str(job), "--reason", "fixed", "--as", "ada")
    [act] = queue("activity", "--json").data["rows"]
    assert (act["actor"], act["source"], act["action"], act["reason"]) == ("ada", "cli", "retry", "fixed")
    assert (act["matched"], act["done"], act["refused"], act["failed"]) == (1, 1, 0, 0)


def test_a_cancel_keeps_its_reason(queue: Cli, seeds: Seeds) -> None:
    job = seeds.job()
    assert queue("jobs", "cancel", str(job), "--reason", "customer left").code == 0
    data = queue("jobs", "show", str(job), "--json").data
    assert (data["state"], data["cancel_reason"]) == ("cancelled", "customer left")


def test_pausing_a_queue_tells_who_why_and_until_when(queue: Cli, seeds: Seeds) -> None:
    seeds.job(queue="billing")
    words = ("queues", "pause", "billing", "--reason", "bank is down", "--for", "30m", "--as", "ada", "--json")
    assert queue(*words).data["changed"] is True
    assert queue(*words).data["changed"] is False
    [row] = queue("queues", "ls", "--json").data["rows"]
    assert (row["state"], row["paused_by"], row["pause_reason"]) == ("paused", "ada", "bank is down")
    assert row["resume_at"] == "2026-03-01T12:30:00Z"
    assert queue("queues", "resume", "billing", "--json").data["changed"] is True
    assert queue("queues", "ls", "--json").data["rows"][0]["state"] != "paused"


def test_draining_a_worker_that_is_not_there_is_not_found(queue: Cli, seeds: Seeds) -> None:
    answer = queue("workers", "drain", "w-404", "--json")
    assert answer.code == 3
    assert answer.codes == ["X_WORKER_UNKNOWN"]
