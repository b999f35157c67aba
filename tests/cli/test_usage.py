"""A command line that cannot be read answers as every other error does."""

from __future__ import annotations

import pytest

from tests.cli.conftest import Cli, Seeds


@pytest.mark.parametrize("limit", ["0", "-1", "1.5", str(10**30), "many"])
def test_a_limit_that_is_no_count_is_refused_by_the_name_of_its_flag(queue: Cli, limit: str) -> None:
    answer = queue("jobs", "ls", "--limit", limit, "--json")
    assert answer.code == 2
    assert answer.codes == ["X_CLI_BAD_FLAG"]
    assert answer.json["findings"][0]["at"] == "--limit"
    assert "--limit" in answer.err


def test_an_unknown_state_is_refused_with_the_list_of_states(queue: Cli, seeds: Seeds) -> None:
    answer = queue("jobs", "ls", "--state", "zombie", "--json")
    assert answer.code == 2
    [finding] = answer.json["findings"]
    assert finding["at"] == "--state"
    assert "zombie" in finding["cause"]
    assert "cancelled" in finding["fix"]


def test_a_filter_that_cannot_be_read_says_where(queue: Cli, seeds: Seeds) -> None:
    answer = queue("jobs", "ls", "--where", "state:dead qeue:a", "--json")
    assert answer.code == 2
    assert answer.codes == ["X_FILTER_INVALID"]
    assert answer.json["findings"][0]["at"] == "--where:11"


def test_usage_errors_are_one_envelope_under_json_wherever_the_flag_stands(cli: Cli) -> None:
    for words in (
        ("--json", "jobs", "lss"),
        ("jobs", "--json", "lss"),
        ("jobs", "ls", "--nope", "--json"),
        ("nope", "--json"),
        ("--json",),
    ):
        answer = cli(*words)
        assert answer.code == 2, words
        assert answer.json["ok"] is False
        assert answer.codes == ["X_CLI_BAD_FLAG"]


def test_an_error_is_three_lines_on_stderr_and_nothing_on_stdout(cli: Cli) -> None:
    answer = cli("jobs", "ls", "--limit", "0")
    assert answer.out == ""
    code, fix, docs = answer.err.splitlines()
    assert code.startswith("X_CLI_BAD_FLAG: ")
    assert fix == "fix: ultijobs jobs ls --help"
    assert docs == "docs: ultijobs explain X_CLI_BAD_FLAG"


def test_without_a_database_the_fix_names_flag_and_variable(cli: Cli) -> None:
    answer = cli("jobs", "ls")
    assert answer.code == 2
    assert "--database-url" in answer.err
    assert "ULTIJOBS_DATABASE_URL" in answer.err


@pytest.mark.parametrize(
    "words",
    [
        ["jobs", "ls", "--tenant", ""],
        ["jobs", "ls", "--queue", " "],
        ["jobs", "ls", "--name", ""],
        ["stats", "--tenant", ""],
        ["queues", "pause", ""],
        ["queues", "pause", "q", "--for", "0s"],
        ["queues", "pause", "q", "--for", "-5m"],
        ["workers", "drain", ""],
        ["jobs", "ls", "--queue", b"\xff\xfe".decode("utf-8", "surrogateescape")],
        ["activity", "--after", "yesterday"],
        ["jobs", "ls", "--after", "yesterday"],
    ],
    ids=ascii,
)
def test_a_value_that_means_nothing_is_refused(queue: Cli, seeds: Seeds, words: list[str]) -> None:
    answer = queue(*words, "--json")
    assert answer.code == 2
    assert queue("activity", "--json").data["rows"] == []


def test_a_flag_of_the_bare_group_is_refused_before_a_subcommand(queue: Cli, seeds: Seeds) -> None:
    answer = queue("jobs", "--state", "dead", "show", "123456")
    assert answer.code == 2
    assert "ultijobs jobs show --state" in answer.err


def test_json_that_is_nested_too_deep_to_be_read_is_refused_by_the_name_of_its_flag(queue: Cli) -> None:
    answer = queue("events", "publish", "shop.opened", "--payload", "[" * 100_000, "--json")
    assert answer.code == 2
    assert answer.codes == ["X_CLI_BAD_FLAG"]
    assert answer.json["findings"][0]["at"] == "--payload"


LIMITED = (
    ["jobs", "ls"],
    ["jobs", "retry", "--where", "state:dead", "--yes"],
    ["jobs", "cancel", "--where", "state:ready", "--yes"],
    ["jobs", "drain", "--queue", "a", "--to", "memory:", "--yes"],
    ["causes"],
    ["leases"],
    ["activity"],
    ["events", "ls"],
    ["outbox", "ls"],
    ["backfill", "--list"],
)


@pytest.mark.parametrize("words", LIMITED, ids=" ".join)
def test_a_limit_that_is_none_is_exit_2_by_its_name(queue: Cli, seeds: Seeds, words: list[str]) -> None:
    for limit in ("0", "-1", "1.5", str(10**30), "many", ""):
        answer = queue(*words, "--limit", limit, "--json")
        assert answer.code == 2, limit
        assert [finding["at"] for finding in answer.json["findings"]] == ["--limit"]


@pytest.mark.parametrize("pace", ["0/1s", "1/x", "fast", "5", "/1s", "-1/1s", "1.5/1s"])
def test_a_pace_that_is_none_is_exit_2_by_its_name(queue: Cli, seeds: Seeds, pace: str) -> None:
    answer = queue("jobs", "retry", "--where", "state:dead", "--pace", pace, "--yes", "--json")
    assert answer.code == 2
    [finding] = answer.json["findings"]
    assert (finding["at"], finding["fix"]) == ("--pace", "write --pace 500/1s")
    assert pace in finding["cause"]


def test_an_order_can_be_looked_at_before_it_is_given(queue: Cli, seeds: Seeds) -> None:
    seeds.job(queue="billing")
    looked = queue("queues", "pause", "billing", "--reason", "bank is down", "--dry-run", "--json")
    assert (looked.code, looked.data["dry_run"], looked.data["would_change"]) == (0, True, True)
    assert looked.data["equivalent"] == "ultijobs queues pause billing --reason 'bank is down'"
    assert [row["state"] for row in queue("queues", "--json").data["rows"]] == ["unserved"]
    assert queue("activity", "--json").data["rows"] == []
    queue("queues", "pause", "billing")
    again = queue("queues", "pause", "billing", "--dry-run", "--json")
    assert (again.data["would_change"], again.data["warnings"]) == (False, ["queue billing is paused already"])


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("jobs", "ls", "--queue", "biling"), "no queue is called 'biling'; there is billing"),
        (("jobs", "ls", "--where", "queue:biling"), "no queue is called 'biling'; there is billing"),
        (("jobs", "ls", "--name", "chargi"), "no job is called 'chargi'; there is charge"),
        (("jobs", "--tenant", "acne"), "no job of a tenant 'acne' is known; there is acme"),
        (("causes", "--tenant", "acne"), "no job of a tenant 'acne' is known; there is acme"),
        (("leases", "--queue", "biling"), "no queue is called 'biling'; there is billing"),
        (("stats", "--queue", "biling"), "no queue is called 'biling'; there is billing"),
        (("jobs", "retry", "--where", "queue:biling", "--yes"), "no queue is called 'biling'; there is billing"),
    ],
)
def test_an_empty_answer_says_which_name_of_the_filter_nothing_is_known_under(
    queue: Cli, seeds: Seeds, words: tuple[str, ...], said: str
) -> None:
    seeds.job(queue="billing", tenant_id="acme")
    answer = queue(*words)
    assert answer.code == 0
    assert said in answer.err
    assert queue(*words, "--json").json["ok"]


def test_an_empty_answer_to_names_that_are_known_says_nothing_more(queue: Cli, seeds: Seeds) -> None:
    seeds.job(queue="billing", tenant_id="acme")
    assert queue("jobs", "ls", "--queue", "billing", "--tenant", "acme", "--state", "dead").err == ""
