"""What a refresh of the cockpit costs on a large table.

`make bench` runs it on an embedded PostgreSQL of its own with 2,000,000 jobs: 56,000 ready, 7,000 delayed, 7,000 dead,
the rest done. `python benchmarks/refresh.py 200000` takes fewer.
"""

from __future__ import annotations

import asyncio
import statistics
import sys
import tempfile
import time

import asyncpg

from ultijobs.inspection import Inspector
from ultijobs.postgres.embedded import EmbeddedServer
from ultijobs.postgres.migrate import migrate

ROWS = """
insert into x_jobs (id, run_id, name, queue, state, attempt, run_at, due_at, finished_at, stop_reason, error_code,
                    fingerprint, last_error, idempotency_key, tenant_id)
select i, i, 'job' || g % 5, 'queue' || g % 4, s.state, 1,
       now() - g * interval '1 ms' + case when g % 10 = 1 then interval '1 day' else interval '0' end,
       now() - g * interval '1 ms', case when s.state = 'dead' then now() - g * interval '1 ms' end,
       case when s.state = 'dead' then 'attempts-exhausted' end, case when s.state = 'dead' then 'TimeoutError' end,
       case when s.state = 'dead' then md5((g % 12)::text) end,
       case when s.state = 'dead' then 'TimeoutError: the provider does not answer' end, g::text, 't' || g % 40
  from generate_series(1, $1::int) g
 cross join lateral (select gen_random_uuid() as i, case when g % 10 = 0 then 'dead' else 'ready' end as state) s
"""
DONE = """
insert into x_jobs_done (id, run_id, name, queue, state, attempt, finished_at)
select gen_random_uuid(), gen_random_uuid(), 'job' || g % 5, 'queue' || g % 4, 'done', 1, now() - g * interval '1 s'
  from generate_series(1, $1::int) g
"""
TURNS = 20


async def fill(url: str, jobs: int, live: int = 70_000) -> None:
    """A migrated database gets so many jobs, `live` of which wait or are dead."""
    connection = await asyncpg.connect(url)
    await connection.execute("select x_history_ahead(1)")
    await connection.execute(ROWS.replace("$1", str(live)))
    await connection.execute(DONE.replace("$1", str(max(0, jobs - live))))
    await connection.execute("vacuum analyze")
    await connection.close()


async def main(url: str, jobs: int) -> None:
    await fill(url, jobs)
    async with Inspector.connect(url, role="tui") as inspector:
        looks = {
            "overview": inspector.overview,
            "queues": inspector.queues,
            "causes": inspector.causes,
            "jobs, newest 100": inspector.jobs,
            "jobs, state:dead": lambda: inspector.jobs("state:dead"),
            "health": inspector.health,
        }
        for name, look in looks.items():
            await look()
            took = []
            for _ in range(TURNS):
                began = time.perf_counter()
                await look()
                took.append((time.perf_counter() - began) * 1000)
            middle, most = statistics.median(took), max(took)
            print(f"{name:18} p50 {middle:6.1f} ms  max {most:6.1f} ms")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ultijobs-bench-") as folder:
        server = EmbeddedServer(folder)
        try:
            url = server.start()
            asyncio.run(migrate(url))
            asyncio.run(main(url, int(sys.argv[1]) if len(sys.argv) > 1 else 2_000_000))
        finally:
            server.stop()
