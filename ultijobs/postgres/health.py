"""The server as part of the patient: who holds back vacuum, dead rows, waits for locks, connections, notifications."""

from __future__ import annotations

from typing import Final

from ultijobs._queue.views import Health, Snapshot, TableHealth
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["SERVER", "SNAPSHOTS", "TABLES", "health"]

SERVER: Final = """\
select now() as as_of, current_setting('server_version') as version, current_setting('max_connections')::int
  as connection_limit,
       (select coalesce(max(version), 0) from {schema}.x_schema) as schema_version,
       (select count(*) from pg_catalog.pg_stat_activity where backend_type = 'client backend') as connections,
       (select count(*) from pg_catalog.pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock') as blocked,
       (select count(*) from pg_catalog.pg_stat_activity
         where datname = current_database() and application_name = 'ultijobs-listen') as listeners,
       pg_catalog.pg_notification_queue_usage() as notify_queue"""

SNAPSHOTS: Final = """\
select pid, coalesce(application_name, '') as application, coalesce(state, '') as state,
       (extract(epoch from clock_timestamp() - xact_start) * 1000)::bigint as age_ms, left(coalesce(query, ''),
         200) as query
  from pg_catalog.pg_stat_activity
 where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
   and (backend_xmin is not null or backend_xid is not null or state like 'idle in transaction%')
 order by xact_start limit 10"""

TABLES: Final = """\
select relname as table, n_live_tup as live, n_dead_tup as dead, last_autovacuum from pg_catalog.pg_stat_user_tables
 where schemaname = $1::text and relname like 'x\\_%' order by n_dead_tup desc, relname limit 100"""


async def health(links: Links, sql: Sql) -> Health:
    """See `InspectionStore.health`. Three statements on the statistics views; no table of jobs is read."""
    server = await links.fetchrow(sql(SERVER))
    assert server is not None
    snapshots = await links.fetch(SNAPSHOTS)
    tables = await links.fetch(TABLES, sql.schema)
    return Health(
        kind="postgres",
        version=server["version"],
        schema_version=server["schema_version"],
        connections=server["connections"],
        connection_limit=server["connection_limit"],
        snapshots=[Snapshot(**dict(row.items())) for row in snapshots],
        tables=[TableHealth(**dict(row.items())) for row in tables],
        blocked=server["blocked"],
        listeners=server["listeners"],
        notify_queue=server["notify_queue"],
        as_of=server["as_of"],
    )
