"""`doctor` on the command line: what it prints, and how it ends."""

from __future__ import annotations

from pathlib import Path

import asyncpg

from tests.cli.conftest import Cli, Seeds
from tests.cli.processes import Shop
from tests.cli.test_envelope import FINDING
from tests.support.servers import Server, blocking
from ultijobs.inspection import CHECKS


def test_a_healthy_queue_is_exit_0_with_every_check_listed(queue: Cli, seeds: Seeds) -> None:
    answer = queue("doctor", "--json")
    assert answer.code == 0
    assert answer.data["healthy"] is True
    assert answer.data["rows"] == []
    assert [row["check"] for row in answer.data["checks"]] == ["schema", *(check.name for check in CHECKS)]
    assert {row["result"] for row in answer.data["checks"]} == {"ok"}
    assert "no server" in answer.data["lacks"][0]


def test_a_warning_is_told_and_exit_0(queue: Cli, seeds: Seeds) -> None:
    queue("queues", "pause", "mail", "--reason", "provider down")
    answer = queue("doctor", "--json")
    assert answer.code == 0
    assert answer.codes == ["X_QUEUE_PAUSED"]
    [finding] = answer.json["findings"]
    assert list(finding) == FINDING
    assert finding["fix"] == "ultijobs queues resume mail"
    assert finding["docs"] == "ultijobs explain X_QUEUE_PAUSED"
    assert answer.data["rows"][0]["severity"] == "warning"


def test_an_error_is_exit_1_and_whole_on_stdout(queue: Cli, seeds: Seeds) -> None:
    seeds.job(queue="letters")
    answer = queue("doctor", COLUMNS="60")
    assert answer.code == 1
    assert "error X_QUEUE_UNSERVED: queue letters has 1 due job and no worker that serves it" in answer.out
    assert "fix: ultijobs worker --app MODULE:NAME --queues letters" in answer.out
    assert "X_QUEUE_UNSERVED" not in answer.err


def test_what_it_finds_can_be_explained(cli: Cli) -> None:
    for check in CHECKS:
        assert cli("explain", check.code).code == 0


def test_a_database_that_is_away_or_without_tables_is_exit_4(tmp_path: Path, empty_pg_url: str) -> None:
    away = Shop(tmp_path, "postgresql://127.0.0.1:1/shop").run("doctor", "--json")
    assert (away.code, away.json["findings"][0]["code"]) == (4, "X_DRIVER_UNAVAILABLE")
    empty = Shop(tmp_path, empty_pg_url).run("doctor", "--json")
    assert (empty.code, empty.json["findings"][0]["code"]) == (4, "X_SCHEMA_OUTDATED")
    assert empty.data["checks"] == [{"check": "schema", "result": "error", "code": "X_SCHEMA_OUTDATED"}]


def test_an_outbox_in_another_database_is_looked_at_where_it_is(tmp_path: Path, pg_url: str, pg: Server) -> None:
    elsewhere = pg.create()
    shop = Shop(tmp_path, pg_url)
    source = (tmp_path / "shop.py").read_text(encoding="utf-8")
    (tmp_path / "shop.py").write_text(
        source.replace("App(jobs=[ship, wait])", f"App(jobs=[ship, wait], outbox={elsewhere!r})"), encoding="utf-8"
    )
    blocking(_stage(elsewhere))
    done = shop.run("doctor", "--json")
    assert (done.code, [finding["code"] for finding in done.json["findings"]]) == (1, ["X_OUTBOX_LATE"])
    pg.drop(elsewhere)


async def _stage(url: str) -> None:
    connection = await asyncpg.connect(url)
    await connection.execute(
        "insert into x_outbox (id, run_id, name, staged_at) select i, i, 'ship', now() - interval '1 h'"
        " from gen_random_uuid() i"
    )
    await connection.close()
