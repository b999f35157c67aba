"""x_catalog: what applications declare, written by workers and `migrate --app`, read by all who lack the code."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Final

from ultijobs._queue.telling import CatalogEntry
from ultijobs.postgres.links import Links
from ultijobs.postgres.rows import catalog_entry
from ultijobs.postgres.sql import Sql

__all__ = ["CATALOG", "CONFIRM", "PUBLISH", "catalog", "confirm", "publish"]

PUBLISH: Final = """\
insert into {schema}.x_catalog (kind, name, queue, declaration, code_version, environment, last_seen)
select t.kind, t.name, t.queue, t.declaration::json, t.code_version, t.environment, now()
  from unnest($1::text[], $2::text[], $3::text[], $4::text[], $5::text[], $6::text[])
       t(kind, name, queue, declaration, code_version, environment)
on conflict (kind, name) do update set queue = excluded.queue, declaration = excluded.declaration,
  code_version = excluded.code_version, environment = excluded.environment, last_seen = excluded.last_seen"""


async def publish(links: Links, sql: Sql, entries: Sequence[CatalogEntry]) -> None:
    """See `Driver.publish_catalog`. Sorted, so that workers which start at once never wait for each other in a ring."""
    unique = {(entry.kind, entry.name): entry for entry in entries}
    ordered = [unique[key] for key in sorted(unique)]
    if not ordered:
        return
    await links.fetch(
        sql(PUBLISH),
        [e.kind for e in ordered],
        [e.name for e in ordered],
        [e.queue for e in ordered],
        [json.dumps(dict(e.declaration)) for e in ordered],
        [e.code_version for e in ordered],
        [e.environment for e in ordered],
    )


CONFIRM: Final = """\
update {schema}.x_catalog c set last_seen = now()
 where (c.kind, c.name) in (
   select k.kind, k.name from {schema}.x_catalog k
    where (k.kind, k.name) in (select t.kind, t.name from unnest($1::text[], $2::text[]) t(kind, name))
      and k.last_seen < now() - interval '1 hour'
    order by k.kind, k.name for update skip locked)"""


async def confirm(links: Links, sql: Sql, entries: Sequence[CatalogEntry]) -> None:
    """See `Driver.confirm_catalog`. Writes at most once an hour, whatever the number of processes."""
    await links.fetch(sql(CONFIRM), [entry.kind for entry in entries], [entry.name for entry in entries])


CATALOG: Final = """\
select kind, name, queue, declaration::text as declaration, code_version, environment, last_seen
  from {schema}.x_catalog where $1::text is null or kind = $1::text order by kind, name limit 10000"""


async def catalog(links: Links, sql: Sql, kind: str | None) -> list[CatalogEntry]:
    """See `InspectionStore.catalog`."""
    return [catalog_entry(row) for row in await links.fetch(sql(CATALOG), kind)]
