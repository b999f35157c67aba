"""What became of a claim that no longer holds: told from the attempt it left, or from the state of its row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final
from uuid import UUID

from ultijobs._queue.records import Outcome
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["Fate", "fates"]

FATES: Final = """\
select t.ord, a.outcome, coalesce(j.state, d.state) as state
  from unnest($1::uuid[], $2::bigint[]) with ordinality t(id, lease_no, ord)
  left join lateral (
    select h.state, h.run_id from {schema}.x_jobs h where h.id = t.id and h.lease_no = t.lease_no limit 1) j on true
  left join lateral (
    select h.state, h.run_id from {schema}.x_jobs_done h
     where h.id = t.id and h.lease_no = t.lease_no limit 1) d on true
  left join lateral (
    select r.outcome from {schema}.x_job_attempts r
     where r.run_id = coalesce(j.run_id, d.run_id, t.id) and r.lease_no = t.lease_no
     limit 1) a on true
 order by t.ord"""


class Fate:
    """How the claim ended, as far as storage tells: `outcome` of its attempt row, and the row's state since."""

    __slots__ = ("outcome", "state")

    def __init__(self, outcome: str | None, state: str | None) -> None:
        self.outcome = outcome
        self.state = state

    @property
    def cancelled(self) -> bool:
        if self.outcome is not None:
            return self.outcome == Outcome.CANCELLED
        return self.state == "cancelled"

    def landed(self, outcome: Outcome) -> bool:
        """True when a settlement with `outcome` is what ended it."""
        if self.outcome is not None:
            return self.outcome == outcome
        if outcome is Outcome.OK:
            return self.state == "done"
        return outcome is Outcome.SUSPENDED and self.state == "suspended"


async def fates(links: Links, sql: Sql, claims: Sequence[tuple[UUID, int]]) -> list[Fate]:
    """One answer per (id, lease_no), in the order given."""
    if not claims:
        return []
    ids, leases = zip(*claims, strict=True)
    rows = await links.fetch(sql(FATES), list(ids), list(leases))
    return [Fate(row["outcome"], row["state"]) for row in rows]
