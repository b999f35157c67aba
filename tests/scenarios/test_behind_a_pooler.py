"""A fleet behind pgbouncer in transaction mode, where no session belongs to anybody."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.scenarios.conftest import LATE, Ground, calm
from tests.scenarios.trade import JOBS, of_three_parts, one_at_a_time
from tests.support.eventually import eventually
from tests.support.servers import free_port
from tests.support.stage import Ask, writes_after_cancel
from ultijobs import App

PGBOUNCER = shutil.which("pgbouncer") or shutil.which("pgbouncer", path="/usr/sbin")
CONFIGURATION = """\
[databases]
{database} = host=127.0.0.1 port={server} dbname={database} user=postgres
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = {port}
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 5
max_client_conn = 200
ignore_startup_parameters = extra_float_digits
"""

pytestmark = [
    pytest.mark.skipif(PGBOUNCER is None, reason="pgbouncer is not installed"),
    pytest.mark.timeout(300),
]


@pytest.fixture
def pooled(ground: Ground, tmp_path: Path) -> Iterator[str]:
    """The queue's address through a pooler with five connections."""
    assert PGBOUNCER is not None
    database, port = urlsplit(ground.url).path.strip("/"), free_port()
    file = ground.stage.scratch / "pgbouncer.ini"
    file.write_text(CONFIGURATION.format(database=database, server=ground.server.port, port=port))
    # pgbouncer refuses to run as root.
    account = "nobody" if os.geteuid() == 0 else None
    ground.stage.scratch.chmod(0o755)
    with (tmp_path / "pgbouncer.log").open("wb") as log:
        process = subprocess.Popen([PGBOUNCER, str(file)], stdout=log, stderr=log, user=account)
        try:
            yield f"postgresql://postgres@127.0.0.1:{port}/{database}?pgbouncer=1"
        finally:
            process.terminate()
            process.wait(10)


async def test_a_pooler_in_transaction_mode_changes_nothing_but_the_latency(ground: Ground, pooled: str) -> None:
    ground.stage.app = "tests.scenarios.trade:ticking_app"
    workers = [await ground.worker(name, url=pooled, concurrency=16) for name in ("w1", "w2")]
    async with App(jobs=JOBS, driver=pooled):
        parts = await of_three_parts.enqueue_many([Ask(key=str(number)) for number in range(1_000)])
        alone = await one_at_a_time.enqueue_many([Ask(key=str(number)) for number in range(20)])
        long = await writes_after_cancel.enqueue_many([Ask(key=str(number), seconds=120) for number in range(20)])
        await ground.stage.effect("start", 20, within=120)
        ids = [str(each.id) for each in long]
        cancel = ground.stage.spawn("cancel", ["-m", "ultijobs_cli", "jobs", "cancel", *ids, "--yes"], pooled)
        assert await cancel.exit_code() == 0, cancel.text()
        # Nobody is told through a pooler: a cancel is learnt by the next renewal, a third of the lease later at most.
        await ground.stage.effect("refused X_ABORTED", 20, within=1 + 2 * LATE)
        await all_ended(ground, "of_three_parts", len(parts))
        await all_ended(ground, "one_at_a_time", len(alone))
    assert await kinds(ground, "select distinct json_typeof(input) as kind from x_jobs_all") == {"object"}
    assert await kinds(ground, "select distinct json_typeof(output) as kind from x_job_steps") == {"object"}
    entered = [
        row["step"]
        for row in await ground.stage.fetch("select step from fx where step in ('alone', 'left') order by n")
    ]
    assert entered == ["alone", "left"] * len(alone)
    fired = [row["occurrence"] for row in await ground.fetch("select occurrence from x_schedule_slots order by 1")]
    assert fired == [fired[0] + timedelta(seconds=number) for number in range(len(fired))]
    calm(*workers)
    for worker in workers:
        assert "prepared statement" not in worker.text()
        assert [line["level"] for line in worker.lines("jobs.notifications.off")] == ["warning"]


async def kinds(ground: Ground, statement: str) -> set[str]:
    return {row["kind"] for row in await ground.fetch(statement)}


async def all_ended(ground: Ground, name: str, count: int) -> None:
    statement = "select count(*) as n from x_jobs_all where name = $1 and state = 'done'"

    async def done() -> bool:
        return bool((await ground.fetch(statement, name))[0]["n"] == count)

    await eventually(done, within=120, every=0.2, that=f"{count} {name} are done")
