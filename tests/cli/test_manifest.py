"""The manifest says what an application declares: the same bytes for the same code, and no secret."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.cli.processes import Shop

MODULE = """
from datetime import timedelta

from pydantic import BaseModel, Field

from ultijobs import App, BatchSource, Limits, Rate, RetryPolicy, backfill, job, task


class Order(BaseModel):
    id: int
    tags: set[str] = {"red", "green", "blue", "black", "white"}
    note: str = Field(default="", max_length=20)


@job(Order, idempotency_key=lambda order: str(order.id), tenant=lambda order: "acme", queue="slow", concurrency=3,
     retry=RetryPolicy(attempts=4, delay="2s", jitter=False), timeout="10m", unique="rerun", priority=7)
async def ship(input: Order) -> None: ...


class Opaque:
    def __init__(self, fn) -> None: ...
    @classmethod
    def __get_pydantic_core_schema__(cls, source, handler):
        from pydantic_core import core_schema
        return core_schema.no_info_plain_validator_function(lambda value: value)


@job(Opaque, idempotency_key=lambda _: "a", tenant="none")
async def any_input(input: Opaque) -> None: ...


@task(cron="0 3 * * *", tz="Europe/Berlin", catch_up="run-all", max_catch_up=3)
def nightly(occurrence): return []


@backfill(BatchSource.table("files", key="id", dsn="postgresql://u:s3cret@h/d"), tenant="none",
          environments={"production", "staging", "canary"}, requires="4f2a", rate=2)
async def hash_files(rows, ctx): ...


app = App(jobs=[ship, any_input, hash_files], tasks=[nightly], driver="postgresql://u:s3cret@h/d",
          outbox="postgresql://u:s3cret@h/other", schema="jobs", redact=["*iban*"],
          limits=Limits(per_queue={"slow": 2, "fast": 9}, tenant_rate=Rate(3, per="2s"), fair={"slow", "fast", "b"}))
"""


@pytest.fixture
def shop(tmp_path: Path) -> Shop:
    shop = Shop(tmp_path, None)
    (tmp_path / "shop.py").write_text(MODULE, encoding="utf-8")
    return shop


def test_it_is_byte_identical_between_runs(shop: Shop) -> None:
    outs = {shop.run("manifest", "--json", PYTHONHASHSEED=seed).out for seed in ("1", "2", "3")}
    assert len(outs) == 1
    assert "s3cret" not in outs.pop()


def test_it_has_every_declaration_by_name(shop: Shop) -> None:
    done = shop.run("manifest", "--json")
    assert done.code == 0, done.err
    data = done.data
    assert set(data) == {
        "jobs", "tasks", "backfills", "limits", "sizes", "retention", "schema", "transactions", "outbox", "redact",
    }  # fmt: skip
    opaque, ship = data["jobs"]
    schema = ship.pop("input")
    assert ship == {
        "name": "ship",
        "queue": "slow",
        "priority": 7,
        "attempts": 4,
        "backoff": "exponential",
        "delay_ms": 2_000,
        "max_delay_ms": 3_600_000,
        "jitter": False,
        "dead_letter": True,
        "retry_delays_ms": [2_000, 4_000, 8_000],
        "timeout_ms": 600_000,
        "step_timeout_ms": None,
        "event_poll_ms": None,
        "concurrency": 3,
        "unique": "rerun",
        "tenant": "by input",
    }
    assert schema["properties"]["note"] == {"default": "", "maxLength": 20, "title": "Note", "type": "string"}
    assert schema["properties"]["tags"]["default"] == ["black", "blue", "green", "red", "white"]
    assert (opaque["name"], opaque["input"]) == ("any_input", {})
    assert data["tasks"] == [
        {"name": "nightly", "cron": "0 3 * * *", "tz": "Europe/Berlin", "catch_up": "run-all", "max_catch_up": 3}
    ]
    [fill] = data["backfills"]
    assert (fill["name"], fill["environments"]) == ("hash_files", ["canary", "production", "staging"])
    assert data["limits"] == {
        "per_process": None,
        "per_queue": {"fast": 9, "slow": 2},
        "per_tenant": None,
        "tenant_rate": {"count": 3, "per_ms": 2_000},
        "fair": ["b", "fast", "slow"],
    }
    assert (data["schema"], data["outbox"], data["redact"]) == ("jobs", True, ["*iban*"])


def test_a_person_reads_tables(shop: Shop) -> None:
    done = shop.run("manifest", COLUMNS="120")
    assert done.code == 0
    told = [line.split() for line in done.out.splitlines()]
    assert told[0] == ["JOB", "QUEUE", "ATTEMPTS", "TIMEOUT", "CAP", "UNIQUE", "TENANT"]
    assert ["nightly", "0", "3", "*", "*", "*", "Europe/Berlin", "run-all"] in told
    assert any(line[:1] == ["hash_files"] for line in told)


def test_without_an_application_it_asks_for_one(shop: Shop) -> None:
    done = shop.run("manifest", "--json", ULTIJOBS_APP="")
    assert (done.code, done.json["findings"][0]["fix"]) == (2, "give --app MODULE:NAME, or set ULTIJOBS_APP")
