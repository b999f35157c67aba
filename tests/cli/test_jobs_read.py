"""Reading jobs: the same facts for a person and for a script."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from typing import cast
from uuid import UUID

import pytest

from tests.cli.conftest import Cli, Seeds
from ultijobs._queue.claims import ClaimAsk
from ultijobs._queue.telling import CatalogEntry
from ultijobs.inspection import ANY, Inspector, JobPage, JobState, Outcome, Sort
from ultijobs_cli.commands.jobs_read import filled

NOW = datetime(2026, 3, 14, tzinfo=UTC)

ROW = {
    *("id", "run_id", "name", "queue", "state", "attempt", "max_attempts", "priority", "idempotency_key", "tenant_id"),
    *("run_at", "due_at", "created_at", "updated_at", "finished_at", "lease_no", "lease_until", "worker_id"),
    *("last_error", "error_code", "fingerprint", "stop_reason", "cancel_reason", "traceparent", "enqueued_by"),
    "code_version",
}


def one_of_each(queue: Cli, seeds: Seeds) -> dict[str, str]:
    """One job in each state; the value is its id."""
    made = {
        JobState.READY: seeds.job("ready"),
        JobState.DELAYED: seeds.job("delayed", delay=timedelta(hours=1)),
        JobState.RUNNING: seeds.running("running").id,
        JobState.SUSPENDED: seeds.settled(Outcome.SUSPENDED, "suspended", delay=timedelta(0)),
        JobState.DONE: seeds.settled(Outcome.OK, "done"),
        JobState.FAILED: seeds.settled(Outcome.FAILED, "failed"),
        JobState.DEAD: seeds.dead("dead"),
        JobState.CANCELLED: seeds.job("cancelled"),
    }
    assert queue("jobs", "cancel", str(made[JobState.CANCELLED])).code == 0
    return {str(state): str(job) for state, job in made.items()}


def test_every_state_can_be_asked_for_and_lists_exactly_its_rows(queue: Cli, seeds: Seeds) -> None:
    made = one_of_each(queue, seeds)
    for state, job in made.items():
        rows = queue("jobs", "ls", "--state", state, "--json").data["rows"]
        assert [(row["id"], row["state"]) for row in rows] == [(job, state)]
    assert {row["id"] for row in queue("jobs", "ls", "--json").data["rows"]} == set(made.values())


def test_the_counts_of_stats_add_up_to_the_rows(queue: Cli, seeds: Seeds) -> None:
    one_of_each(queue, seeds)
    totals = queue("stats", "--json").data["totals"]
    assert totals == {state: {"value": 1, "kind": "exact"} for state in JobState}


def test_states_can_be_listed_together(queue: Cli, seeds: Seeds) -> None:
    one_of_each(queue, seeds)
    rows = queue("jobs", "ls", "--state", "dead,failed", "--state", "running", "--json").data["rows"]
    assert {row["state"] for row in rows} == {"dead", "failed", "running"}


def test_filter_flags_and_filter_words_hold_together(queue: Cli, seeds: Seeds) -> None:
    wanted = seeds.dead("charge", queue="billing", tenant_id="t1")
    seeds.dead("charge", queue="billing", tenant_id="t2")
    seeds.dead("charge", queue="bulk", tenant_id="t1")
    seeds.dead("send", queue="billing", tenant_id="t1")
    seeds.job("charge", queue="billing", tenant_id="t1")
    flags = ("--queue", "billing", "--name", "char*", "--tenant", "t1", "--where", "state:dead")
    rows = queue("jobs", "ls", *flags, "--json").data["rows"]
    assert [row["id"] for row in rows] == [str(wanted)]


def test_pages_follow_each_other_without_gap_or_overlap(queue: Cli, seeds: Seeds) -> None:
    made = {str(seeds.job()) for _ in range(7)}
    seen: list[str] = []
    after: list[str] = []
    while True:
        data = queue("jobs", "ls", "--limit", "3", *after, "--json").data
        seen += [row["id"] for row in data["rows"]]
        if data["next"] is None:
            break
        after = ["--after", data["next"]]
    assert len(seen) == 7
    assert set(seen) == made


def test_a_row_has_every_column_and_never_the_input(queue: Cli, seeds: Seeds) -> None:
    seeds.job(input='{"card": "4111"}')
    answer = queue("jobs", "ls", "--json")
    [row] = answer.data["rows"]
    assert set(row) >= ROW
    assert "4111" not in answer.out


def test_json_lines_prints_one_row_a_line_and_nothing_else_on_stdout(queue: Cli, seeds: Seeds) -> None:
    made = [str(seeds.job()) for _ in range(3)]
    lines = queue("jobs", "ls", "--json-lines").out.splitlines()
    assert sorted(made) == sorted(made_id for line in lines for made_id in made if f'"id": "{made_id}"' in line)
    assert len(lines) == 3


def test_the_bare_group_lists(queue: Cli, seeds: Seeds) -> None:
    seeds.job()
    assert queue("jobs", "--json").data["rows"] == queue("jobs", "ls", "--json").data["rows"]
    assert queue("queues", "--json").data["rows"] == queue("queues", "ls", "--json").data["rows"]
    assert queue("workers", "--json").data["rows"] == []


def test_a_job_nobody_runs_is_marked_in_the_list(queue: Cli, seeds: Seeds) -> None:
    seeds.job()
    assert "waits: no-worker" in queue("jobs", "ls").out
    assert queue("jobs", "ls", "--json").data["rows"][0]["waiting_on"] == "no-worker"


def test_show_has_all_keys_with_null_where_nothing_is(queue: Cli, seeds: Seeds) -> None:
    data = queue("jobs", "show", str(seeds.job()), "--json").data
    more = {"steps", "attempts", "retry_delays_ms", "backfill", "progress", "waiting_on", "behind", "input"}
    assert set(data) >= ROW | more
    assert data["steps"] == data["attempts"] == data["retry_delays_ms"] == []
    assert data["backfill"] is data["progress"] is data["traceparent"] is None


def test_after_two_of_five_failures_two_delays_are_left(queue: Cli, seeds: Seeds) -> None:
    retry = {"backoff": "exponential", "delay_ms": 1000, "max_delay_ms": 3_600_000}
    asyncio.run(seeds.driver.publish_catalog([CatalogEntry("job", "charge", "default", {"retry": retry})]))
    trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
    who = '{"kind": "user", "id": "u-3"}'
    first = seeds.running(max_attempts=5, traceparent=trace, enqueued_by=who)
    seeds.settle(first, Outcome.RETRIED, delay=timedelta(seconds=1))
    seeds.clock.move(seconds=2)
    (second,) = asyncio.run(seeds.driver.claim(ClaimAsk("w-1", {"default": 1}, ("charge",), 1, timedelta(seconds=30))))
    seeds.settle(second, Outcome.RETRIED, delay=timedelta(seconds=2))
    data = queue("jobs", "show", str(first.id), "--json").data
    assert (data["state"], data["attempt"], data["max_attempts"]) == ("delayed", 2, 5)
    assert data["retry_delays_ms"] == [4_000, 8_000]
    assert (data["traceparent"], data["enqueued_by"]) == (trace, who)


def test_show_has_steps_and_attempts(queue: Cli, seeds: Seeds) -> None:
    claim = seeds.running()
    seeds.step(claim, "load", '{"rows": 7}')
    seeds.settle(claim, Outcome.DEAD, error="no good", error_code="E_BAD")
    data = queue("jobs", "show", str(claim.id), "--json").data
    [step] = data["steps"]
    [attempt] = data["attempts"]
    assert (step["name"], step["status"], step["output"]) == ("load", "completed", None)
    assert (attempt["attempt"], attempt["outcome"], attempt["error_code"]) == (1, "dead", "E_BAD")


def test_payloads_are_shown_only_when_asked_for(queue: Cli, seeds: Seeds) -> None:
    claim = seeds.running(input='{"card": "4111"}')
    seeds.step(claim, "load", '{"iban": "DE02"}')
    for words in ((), ("--json",)):
        hidden = queue("jobs", "show", str(claim.id), *words).out
        shown = queue("jobs", "show", str(claim.id), "--input", *words).out
        assert "4111" not in hidden
        assert "DE02" not in hidden
        assert "4111" in shown
        assert "DE02" in shown
    data = queue("jobs", "show", str(claim.id), "--input", "--json").data
    assert data["input"] == {"card": "4111"}
    assert data["steps"][0]["output"] == {"iban": "DE02"}


def test_what_steps_returned_is_redacted_as_the_input_is(queue: Cli, seeds: Seeds) -> None:
    claim = seeds.running(input='{"password": "hunter1"}')
    seeds.step(claim, "load", '{"user": {"api_key": "hunter2"}, "name": "Ann"}')
    seeds.step(claim, "fetch-token", '"hunter3"')
    for words in ((), ("--json",)):
        shown = queue("jobs", "show", str(claim.id), "--input", *words).out
        assert "hunter" not in shown
        assert "Ann" in shown


def test_an_id_may_be_its_last_digits(queue: Cli, seeds: Seeds) -> None:
    job = seeds.job()
    for ref in (str(job), job.hex, job.hex[-8:], f"…{job.hex[-8:]}", job.hex[-6:].upper()):
        assert queue("jobs", "show", ref, "--json").data["id"] == str(job)


def test_digits_that_several_jobs_share_are_refused_with_the_ids(queue: Cli, seeds: Seeds) -> None:
    twins = [UUID(f"01a228dc-2035-7277-901c-{head}abcdef") for head in ("000001", "000002")]
    for twin in twins:
        seeds.job(id=twin)
    answer = queue("jobs", "show", "abcdef", "--json")
    assert answer.code == 2
    assert all(str(twin) in answer.json["findings"][0]["cause"] for twin in twins)
    assert queue("jobs", "show", "1abcdef", "--json").data["id"] == str(twins[0])


@pytest.mark.parametrize("verb", ["show", "why", "retry", "cancel"])
@pytest.mark.parametrize(
    "ref", ["zebra", "12345", "abcdef123456", "01a228dc-2035-7277-901c-5255b18d17b8", "'; drop", " "]
)
def test_what_names_no_job_is_an_unknown_job(queue: Cli, seeds: Seeds, verb: str, ref: str) -> None:
    seeds.job()
    answer = queue("jobs", verb, ref, "--json")
    assert answer.code == 3
    assert answer.codes == ["X_JOB_UNKNOWN"]
    assert answer.json["findings"][0]["at"] == ref


def test_a_job_of_another_tenant_does_not_exist(queue: Cli, seeds: Seeds) -> None:
    job = str(seeds.dead(tenant_id="t1"))
    for verb in ("show", "why", "retry", "cancel"):
        answer = queue("jobs", verb, job, "--tenant", "t2", "--json")
        assert answer.code == 3, verb
        assert answer.codes == ["X_JOB_UNKNOWN"]
    assert queue("jobs", "show", job, "--tenant", "t1").code == 0


def test_why_names_what_it_waits_for_and_what_frees_it(queue: Cli, seeds: Seeds) -> None:
    job = str(seeds.job(delay=timedelta(minutes=5)))
    data = queue("jobs", "why", job, "--json").data
    assert set(data) == {"id", "state", "waiting_on", "since", "holder", "frees"}
    assert (data["id"], data["state"], data["waiting_on"]) == (job, "delayed", "delay")
    assert data["frees"]
    assert data["frees"] in queue("jobs", "why", job).out


def test_times_are_iso_in_utc_with_a_z(queue: Cli, seeds: Seeds) -> None:
    seeds.job()
    assert queue("jobs", "ls", "--json").data["rows"][0]["created_at"] == "2026-03-01T12:00:00Z"


def test_stdout_is_ascii_under_json_whatever_a_job_wrote(queue: Cli, seeds: Seeds) -> None:
    seeds.job("日本\u202e\u2066", queue="\x9bq")
    assert queue("jobs", "ls", "--json").out.isascii()


def test_leases_show_who_holds_what_until_when(queue: Cli, seeds: Seeds) -> None:
    claim = seeds.running(worker="w-9")
    [lease] = queue("leases", "--json").data["rows"]
    assert (lease["id"], lease["worker_id"], lease["lease_no"]) == (str(claim.id), "w-9", claim.lease_no)
    assert "in 30s" in queue("leases").out
    seeds.clock.move(minutes=1)
    assert "lapsed" in queue("leases").out


def test_leases_can_be_narrowed_by_a_filter(queue: Cli, seeds: Seeds) -> None:
    mine = seeds.running("ship", queue="billing", worker="web-3")
    seeds.running("load", queue="mail", worker="web-4")
    for words in (["--where", "worker:web-3"], ["--queue", "billing"], ["--name", "ship"]):
        assert [row["id"] for row in queue("leases", *words, "--json").data["rows"]] == [str(mine.id)]
    assert queue("leases", "--where", "state:dead", "--json").data["rows"] == []
    assert len(queue("leases", "--json").data["rows"]) == 2


def test_causes_group_what_stopped_for_the_same_reason(queue: Cli, seeds: Seeds) -> None:
    for _ in range(3):
        seeds.dead(fingerprint="aa11")
    seeds.dead(fingerprint="bb22")
    rows = queue("causes", "--json").data["rows"]
    assert [(row["fingerprint"], row["count"]) for row in rows] == [
        ("aa11", {"value": 3, "kind": "exact"}),
        ("bb22", {"value": 1, "kind": "exact"}),
    ]
    assert queue("causes").out.splitlines()[1].split()[:2] == ["3", "aa11"]


def test_an_empty_queue_says_so(queue: Cli, seeds: Seeds) -> None:
    assert queue("jobs").out == "no jobs match\n"
    assert queue("workers").out == "no workers\n"
    assert queue("leases").out == "nothing runs\n"
    assert queue("causes").out == "nothing has stopped\n"


def test_watch_and_one_object_exclude_each_other(queue: Cli, seeds: Seeds) -> None:
    answer = queue("jobs", "ls", "--watch", "--json")
    assert answer.code == 2
    assert answer.codes == ["X_CLI_BAD_FLAG"]


class Barren:
    """An inspector of a history without end, in which nothing matches."""

    def __init__(self) -> None:
        self.reads = 0

    async def jobs(self, _where: object, **_asked: object) -> JobPage:
        self.reads += 1
        return JobPage([], str(self.reads), NOW)


async def test_a_search_of_history_that_finds_nothing_ends_and_says_where_it_would_go_on() -> None:
    api = Barren()
    first, sort = JobPage([], "0", NOW), Sort.NEWEST
    page = await filled(cast("Inspector", api), ANY, first, sort=sort, limit=10, monotonic=lambda: 4.0 * api.reads)
    assert (page.rows, page.next, api.reads) == ([], "3", 3)
