"""The server as part of the patient: who holds back vacuum, dead rows, waits for locks, connections, notifications."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Final

from ultijobs._queue.health import Blocked, Health, Snapshot, TableHealth
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

if TYPE_CHECKING:
    from asyncpg import Record

__all__ = ["BLOCKED", "SERVER", "SNAPSHOTS", "TABLES", "health"]

SERVER: Final = """\
select now() as as_of, current_setting('server_version') as version,
       current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int
         as connection_limit,
       (select coalesce(max(version), 0) from {schema}.x_schema) as schema_version,
       (select coalesce(json_object_agg(a.name, a.n order by a.n desc, a.name), '{}')::text
          from (select coalesce(s.application_name, '') as name, count(*) as n from pg_catalog.pg_stat_activity s
                 where s.backend_type = 'client backend' group by 1) a) as applications,
       (select count(*) from pg_catalog.pg_stat_activity
         where datname = current_database() and wait_event_type = 'Lock') as blocked,
       (select count(*) from pg_catalog.pg_stat_activity
         where datname = current_database() and application_name = 'ultijobs-listen') as listeners,
       pg_catalog.pg_notification_queue_usage() as notify_queue,
       array(select c.relname::text from pg_catalog.pg_index i join pg_catalog.pg_class c on c.oid = i.indexrelid
               join pg_catalog.pg_namespace n on n.oid = c.relnamespace
              where n.nspname = '{schema_name}' and c.relname like 'x\\_%' and not i.indisvalid
              order by 1 limit 100) as invalid_indexes,
       pg_catalog.pg_has_role('pg_read_all_stats', 'usage') as sees_all"""

# A transaction that was prepared and forgotten holds back vacuum like any other, and no session shows it.
SNAPSHOTS: Final = """\
select x.* from (
  (select pid, coalesce(application_name, '') as application, coalesce(state, '') as state,
          (extract(epoch from clock_timestamp() - xact_start) * 1000)::bigint as age_ms,
          left(coalesce(query, ''), 200) as query
     from pg_catalog.pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid() and xact_start is not null
      and backend_type <> 'autovacuum worker'
      and (backend_xmin is not null or backend_xid is not null or state like 'idle in transaction%')
    order by xact_start limit 10)
  union all
  (select 0, '', 'prepared', (extract(epoch from clock_timestamp() - prepared) * 1000)::bigint, gid
     from pg_catalog.pg_prepared_xacts where database = current_database() order by prepared limit 10)) x
 order by x.age_ms desc limit 10"""

BLOCKED: Final = """\
select w.pid, coalesce(w.application_name, '') as application,
       (extract(epoch from clock_timestamp() - coalesce(w.query_start, w.xact_start)) * 1000)::bigint as waited_ms,
       left(coalesce(w.query, ''), 200) as query, pg_catalog.pg_blocking_pids(w.pid) as by
  from (select a.* from pg_catalog.pg_stat_activity a
         where a.datname = current_database() and a.wait_event_type = 'Lock'
         order by coalesce(a.query_start, a.xact_start) limit 10) w"""

TABLES: Final = """\
select relname as table, n_live_tup as live, n_dead_tup as dead, last_autovacuum from pg_catalog.pg_stat_user_tables
 where schemaname = $1::text and relname like 'x\\_%' order by n_dead_tup desc, relname limit 100"""

_HIDDEN: Final = (
    "sessions of other roles are shown without their query and their age: "
    "grant pg_read_all_stats to this role to see them"
)


async def health(links: Links, sql: Sql) -> Health:
    """See `InspectionStore.health`. Four statements at the most, on the catalogues; no table of jobs is read."""
    server = await links.fetchrow(sql(SERVER))
    assert server is not None
    snapshots = await links.fetch(SNAPSHOTS)
    tables = await links.fetch(TABLES, sql.schema)
    blocked = await links.fetch(BLOCKED) if server["blocked"] else []
    applications: dict[str, int] = json.loads(server["applications"])
    return Health(
        kind="postgres",
        version=server["version"],
        schema_version=server["schema_version"],
        connections=sum(applications.values()),
        connection_limit=server["connection_limit"],
        snapshots=[Snapshot(**dict(row.items())) for row in snapshots],
        tables=[TableHealth(**dict(row.items())) for row in tables],
        blocked=server["blocked"],
        listeners=server["listeners"],
        notify_queue=server["notify_queue"],
        as_of=server["as_of"],
        waits=[_blocked(row) for row in blocked],
        applications=applications,
        invalid_indexes=list(server["invalid_indexes"]),
        lacks=() if server["sees_all"] else (_HIDDEN,),
    )


def _blocked(row: Record) -> Blocked:
    return Blocked(
        pid=row["pid"],
        application=row["application"],
        waited_ms=max(0, row["waited_ms"] or 0),
        query=row["query"],
        by=tuple(row["by"]),
    )
