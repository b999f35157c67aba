"""What a backlog costs: two workers drain 10,000 due jobs and 1,000,000, in turn, then beside an old snapshot.

`python benchmarks/backlog.py` does it on an embedded PostgreSQL of its own, `python benchmarks/backlog.py 200000` with
fewer jobs. The jobs do nothing, and are of 50 tenants.
"""

from __future__ import annotations

import asyncio
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Sequence
from pathlib import Path

import asyncpg
from pydantic import BaseModel

from ultijobs import App, job
from ultijobs.postgres.embedded import EmbeddedServer
from ultijobs.postgres.migrate import migrate

ROWS = """
insert into {schema}.x_jobs (id, run_id, name, run_at, due_at, idempotency_key, tenant_id, input)
select i, i, 'nothing', now() - interval '1 day' + g * interval '1 ms', now() - interval '1 day', i::text,
       't' || g % 50, json_build_object('n', g)
  from generate_series(1, {rows}) g cross join lateral (select gen_random_uuid() as i where g > 0) s
"""
SECONDS = 15.0
FEW = 10_000
DONE = re.compile(r"^ultijobs_jobs_total\{.*outcome=\"ok\".*\} ([0-9.e+]+)$", re.MULTILINE)


class Number(BaseModel):
    n: int


@job(Number, idempotency_key=lambda i: str(i.n), tenant=lambda i: f"t{i.n % 50}")
async def nothing() -> None: ...


app = App(jobs=[nothing])


class Workers:
    """Two worker processes of 8 slots each."""

    def __init__(self, url: str, schema: str) -> None:
        self.ports = (9711, 9712)
        self.processes = [
            subprocess.Popen(
                [
                    *(sys.executable, "-m", "ultijobs_cli", "worker", "--app", "backlog:app", "--database-url", url),
                    *("--schema", schema, "--concurrency", "8", "--metrics-port", str(port)),
                ],
                cwd=Path(__file__).parent,
                stderr=subprocess.DEVNULL,
            )
            for port in self.ports
        ]

    def cpu(self) -> float:
        stats = [Path(f"/proc/{each.pid}/stat").read_text().split() for each in self.processes]
        return sum(int(stat[13]) + int(stat[14]) for stat in stats) / 100

    def done(self) -> float:
        """The jobs that they did; 0 before both are there."""
        try:
            answers = [urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics").read() for port in self.ports]
        except OSError:
            return 0
        return sum(float(number) for answer in answers for number in DONE.findall(answer.decode()))

    def stop(self) -> None:
        for each in self.processes:
            each.terminate()
        for each in self.processes:
            each.wait()


async def drain(connection: asyncpg.Connection[asyncpg.Record], url: str, schema: str, windows: int) -> None:
    waiting = f"select exists (select from {schema}.x_jobs)"
    workers = Workers(url, schema)
    try:
        while workers.done() < 500:  # noqa: ASYNC110 - other processes do it
            await asyncio.sleep(0.1)
        for window in range(windows):
            began, cpu, before = time.monotonic(), workers.cpu(), workers.done()
            while time.monotonic() < began + SECONDS and await connection.fetchval(waiting):  # noqa: ASYNC110 - as above
                await asyncio.sleep(0.2)
            done = workers.done() - before
            rate, cost = done / (time.monotonic() - began), (workers.cpu() - cpu) / done * 1e6
            print(f"{schema:5} {window}  {rate:7.0f} jobs/s  {cost:5.0f} us of the workers' CPU a job", flush=True)
    finally:
        workers.stop()


async def main(url: str, many: int) -> None:
    sizes: Sequence[tuple[str, int]] = (("few", FEW), ("many", many))
    connection = await asyncpg.connect(url)
    for schema, rows in sizes:
        await connection.execute(f"create schema {schema}")
        await migrate(url, schema)
        await connection.execute(ROWS.format(schema=schema, rows=rows))
        await connection.execute(f"vacuum analyze {schema}.x_jobs")
    for turn in range(3):
        for schema, _ in sizes:
            if turn and schema == "few":
                await connection.execute(ROWS.format(schema=schema, rows=FEW))
            await drain(connection, url, schema, 1)
    old = await asyncpg.connect(url)
    async with old.transaction(isolation="repeatable_read"):
        await old.fetchval("select 1")
        print("beside an old snapshot")
        await drain(connection, url, "many", 6)
    await old.close()
    await connection.close()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ultijobs-bench-") as folder:
        server = EmbeddedServer(folder)
        try:
            asyncio.run(main(server.start(), int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000))
        finally:
            server.stop()
