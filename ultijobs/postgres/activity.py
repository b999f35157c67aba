"""x_activity: what operators did, opened before it is done and closed with the result."""

from __future__ import annotations

import json
from datetime import datetime
from typing import Final
from uuid import UUID

from ultijobs._ids import new_id
from ultijobs._queue.activity import ActivityEntry, ActivityRow
from ultijobs.errors import Invariant
from ultijobs.postgres.links import Links
from ultijobs.postgres.rows import ACTIVITY, activity_row
from ultijobs.postgres.sql import Sql

__all__ = ["CLOSE", "LIST", "OPEN", "activity", "close_activity", "open_activity"]

OPEN: Final = """\
insert into {schema}.x_activity (id, actor, source, action, target, reason, as_of, matched, equivalent, detail)
values ($1::uuid, $2::text, $3::text, $4::text, $5::text, $6::text, $7::timestamptz, $8::int, $9::text,
  $10::text::json)"""


async def open_activity(links: Links, sql: Sql, entry: ActivityEntry) -> UUID:
    """See `Driver.open_activity`."""
    id = new_id()  # noqa: A001 - the word of the column
    await links.fetch(
        sql(OPEN),
        id,
        entry.actor,
        entry.source,
        entry.action,
        entry.target,
        entry.reason,
        entry.as_of,
        entry.matched,
        entry.equivalent,
        json.dumps(dict(entry.detail)),
    )
    return id


CLOSE: Final = """\
update {schema}.x_activity set matched = $2::int, done = $3::int, refused = $4::int, failed = $5::int,
  finished_at = now()
 where id = $1::uuid returning finished_at"""


async def close_activity(
    links: Links, sql: Sql, id: UUID, matched: int, done: int, refused: int, failed: int
) -> datetime:
    """See `Driver.close_activity`."""
    finished: datetime | None = await links.fetchval(sql(CLOSE), id, matched, done, refused, failed)
    if finished is None:
        raise Invariant(f"there is no activity {id}", fix="close what open_activity answered")
    return finished


LIST: Final = f"""\
select {ACTIVITY} from {{schema}}.x_activity where $1::uuid is null or id < $1::uuid order by id desc limit $2::int"""


async def activity(links: Links, sql: Sql, after: UUID | None, limit: int) -> list[ActivityRow]:
    """See `InspectionStore.activity`."""
    return [activity_row(row) for row in await links.fetch(sql(LIST), after, limit)]
