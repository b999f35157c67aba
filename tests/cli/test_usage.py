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
