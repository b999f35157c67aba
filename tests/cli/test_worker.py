"""Workers as processes: they run what is enqueued, drain on a signal, and refuse what they cannot start."""

from __future__ import annotations

import signal
from collections.abc import AsyncIterator
from pathlib import Path
from uuid import UUID

import pytest

from tests.cli.processes import Shop
from tests.support.eventually import eventually
from ultijobs.inspection import Inspector, JobDetail, WorkerRow


@pytest.fixture
def shop(tmp_path: Path, pg_url: str) -> Shop:
    return Shop(tmp_path, pg_url)


@pytest.fixture
async def api(pg_url: str) -> AsyncIterator[Inspector]:
    async with Inspector.connect(pg_url) as inspector:
        yield inspector


async def reached(api: Inspector, job: str, state: str) -> JobDetail:
    async def fact() -> JobDetail | None:
        detail = await api.job(UUID(job))
        return detail if detail.row.state == state else None

    return await eventually(fact, within=40, every=0.1)


async def serving(api: Inspector, *, workers: int = 1, state: str = "idle") -> list[WorkerRow]:
    """The rows of the workers once so many are there."""

    async def rows() -> list[WorkerRow]:
        found = [row for row in await api.workers() if row.state == state]
        return found if len(found) == workers else []

    return await eventually(rows, within=40, every=0.1)


def enqueued(shop: Shop, name: str) -> str:
    done = shop.run("jobs", "enqueue", name, "--input", '{"id": "o-1", "boxes": 3}', "--json")
    assert done.code == 0, done.err
    assert set(done.data) == {"id", "run_id", "deduped", "state"}
    return done.data["id"]


async def test_a_job_goes_from_enqueue_to_done_and_the_worker_drains_on_sigterm(shop: Shop, api: Inspector) -> None:
    job = enqueued(shop, "ship")
    again = shop.run("jobs", "enqueue", "ship", "--input", '{"id": "o-1"}', "--json")
    assert (again.data["id"], again.data["deduped"]) == (job, True)
    with shop.started("worker", "--name", "w-1", "--poll", "200ms", "--log-format", "json") as worker:
        done = await reached(api, job, "done")
        assert [(step.name, step.output) for step in done.steps] == [("pack", "3")]
        [row] = await serving(api)
        assert (row.worker_id, row.queues) == ("w-1", ("default", "slow"))
        worker.signal(signal.SIGTERM)
        assert worker.code() == 0
        assert '"event": "jobs.worker.started"' in worker.said()
        assert '"event": "jobs.worker.draining"' in worker.said()
    shown = shop.run("jobs", "show", job, "--input", "--json").data
    assert shown["input"] == {"id": "o-1", "boxes": 3}


async def test_a_second_signal_hands_back_at_once_and_exits_130(shop: Shop, api: Inspector) -> None:
    job = enqueued(shop, "wait")
    with shop.started("worker", "--queues", "slow", "--grace", "10m") as worker:
        await eventually((shop.folder / "started-o-1").exists, within=40)
        worker.signal(signal.SIGTERM)
        await eventually(lambda: "jobs.worker.draining" in worker.said(), within=40)
        worker.signal(signal.SIGINT)
        assert worker.code() == 130
    detail = await api.job(UUID(job))
    assert (detail.row.state, detail.row.attempt) == ("ready", 0)


async def test_several_processes_serve_and_drain_as_one_command(shop: Shop, api: Inspector) -> None:
    with shop.started("worker", "--processes", "2") as supervisor:
        rows = await serving(api, workers=2)
        assert len({row.pid for row in rows}) == 2
        supervisor.signal(signal.SIGTERM)
        assert supervisor.code() == 0


async def test_a_drained_worker_stands_by_until_it_is_resumed(shop: Shop, api: Inspector) -> None:
    with shop.started("worker", "--name", "w-1"):
        await serving(api)
        assert shop.run("workers", "drain", "w-1", "--json").data["changed"] is True
        await serving(api, state="drained")
        job = enqueued(shop, "ship")
        assert shop.run("workers", "resume", "w-1", "--json").data["changed"] is True
        await reached(api, job, "done")


def test_a_module_that_raises_on_import_is_exit_4_with_its_traceback(shop: Shop) -> None:
    (shop.folder / "shop.py").write_text("import json\n\n\ndef settle():\n    return 1 / 0\n\n\nsettle()\n")
    for words in (["worker"], ["worker", "--processes", "3"], ["jobs", "enqueue", "ship", "--json"]):
        done = shop.run(*words)
        assert done.code == 4
        assert 'shop.py", line 5, in settle' in done.err
        assert "X_APP_UNUSABLE: importing shop raised ZeroDivisionError: division by zero" in done.err
        assert "importlib" not in done.err
    assert done.json["findings"][0]["code"] == "X_APP_UNUSABLE"
    assert shop.run("workers", "--json").data["rows"] == []


LIFESPAN = """
from contextlib import asynccontextmanager
from ultijobs import App, job

@asynccontextmanager
async def services():
    {before}
    yield None
    {after}

@job(idempotency_key=lambda _: "k", tenant="none")
def ship(): ...

app = App(jobs=[ship], lifespan=services)
"""


async def test_a_lifespan_that_raises_is_exit_4_under_its_own_code(shop: Shop, api: Inspector) -> None:
    (shop.folder / "shop.py").write_text(LIFESPAN.format(before="1 / 0", after="pass"))
    done = shop.run("worker")
    assert done.code == 4
    assert "X_LIFESPAN_FAILED: App(lifespan=…) raised ZeroDivisionError before the first job" in done.err
    assert 'shop.py", line 7, in services' in done.err
    (shop.folder / "shop.py").write_text(LIFESPAN.format(before="pass", after='raise OSError("the printer is gone")'))
    with shop.started("worker") as worker:
        await serving(api)
        worker.signal(signal.SIGTERM)
        assert worker.code() == 4
        assert (
            "X_LIFESPAN_FAILED: App(lifespan=…) raised OSError after the last job: the printer is gone" in worker.said()
        )


ONE = """
from ultijobs import App, Limits, job

@job(idempotency_key=lambda _: "k", tenant="none", name="one"{declared})
def one(): ...
"""
TWIN = """
@job(idempotency_key=lambda _: "k", tenant="none", name="one")
def two(): ...
"""


NO_SLOTS = """
from ultijobs.memory import MemoryDriver

class Plain(MemoryDriver):
    keeps_slots = False

"""


@pytest.mark.parametrize(
    ("module", "code"),
    [
        (ONE.format(declared="") + TWIN + "app = App(jobs=[one, two])", "X_JOB_DUPLICATE"),
        (
            ONE.format(declared=", concurrency=2")
            + TWIN.replace('"one"', '"two", concurrency=1')
            + NO_SLOTS
            + "app = App(jobs=[one, two], driver=Plain())",
            "X_JOB_CONCURRENCY_UNENFORCEABLE",
        ),
    ],
)
def test_an_application_that_cannot_be_kept_is_exit_4_by_its_code(shop: Shop, module: str, code: str) -> None:
    (shop.folder / "shop.py").write_text(module)
    done = shop.run("worker", "--json")
    assert done.code == 4, done.err
    assert done.json["findings"][0]["code"] == code
    if code == "X_JOB_CONCURRENCY_UNENFORCEABLE":
        assert "one, two" in done.json["findings"][0]["cause"]


def test_a_missing_name_offers_the_app_that_is_there(shop: Shop) -> None:
    done = shop.run("worker", "--app", "shop:ap")
    assert done.code == 4
    assert "fix: write --app shop:app" in done.err
    assert shop.run("worker", "--app", "shopp").code == 4


def test_the_application_s_own_database_is_read_where_no_setting_names_one(shop: Shop) -> None:
    job = enqueued(shop, "ship")
    url = shop.env.pop("ULTIJOBS_DATABASE_URL")
    assert shop.run("jobs").code == 2
    assert shop.run("worker").code == 2
    text = (shop.folder / "shop.py").read_text().replace("App(jobs", f"App(driver={url!r}, jobs")
    (shop.folder / "shop.py").write_text(text)
    assert [row["id"] for row in shop.run("jobs", "--json").data["rows"]] == [job]


def test_a_flag_that_the_application_overrules_is_refused(shop: Shop) -> None:
    text = (shop.folder / "shop.py").read_text().replace("App(jobs", 'App(driver="postgresql://a:hunter2@db/one", jobs')
    (shop.folder / "shop.py").write_text(text)
    done = shop.run("worker", "--database-url", "postgresql://a:hunter2@db/two")
    assert done.code == 2
    assert "--database-url" in done.err
    assert "hunter2" not in done.err


@pytest.mark.parametrize(
    ("words", "at"),
    [
        (["--concurrency", "0"], "--concurrency"),
        (["--processes", "-1"], "--processes"),
        (["--lease", "soon"], "--lease"),
        (["--queues", "a,,b"], "--queues"),
        (["--metrics-port", "65535", "--processes", "2"], "--metrics-port"),
        (["--metrics-port", "65536"], "--metrics-port"),
    ],
)
def test_an_option_of_the_worker_that_makes_no_sense_is_refused_by_name(shop: Shop, words: list[str], at: str) -> None:
    done = shop.run("worker", *words, "--json")
    assert done.code == 2
    assert done.json["findings"][0]["at"] == at
