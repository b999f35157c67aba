"""Asks the planner how it would run what workers send all day: each of these has an index that it must go by."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final, cast

from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["CLAIMING", "DEDUPING", "LAPSED", "RUNS", "detours"]

CLAIMING: Final = """\
select j.id from {schema}.x_jobs j
 where j.state in ('ready', 'suspended') and j.behind is null and j.queue = 'default' and j.lane = ''
   and (-j.priority) = 0 and j.run_at <= now()
 order by j.run_at, j.id limit 10"""

LAPSED: Final = """\
select j.id from {schema}.x_jobs j where j.state = 'running' and j.lease_until < now() limit 100"""

DEDUPING: Final = """\
select j.id from {schema}.x_jobs j
 where j.name = 'name' and coalesce(j.tenant_id, '') collate "C" = '' and j.idempotency_key = 'key' and j.key_held
   and j.state in ('ready', 'running', 'suspended') and j.idempotency_key is not null limit 1"""

RUNS: Final = "select s.name from {schema}.x_job_steps s where s.run_id = '00000000-0000-0000-0000-000000000000'"

_PROBES: Final = (
    ("claims", CLAIMING, "x_jobs_claim"),
    ("lapsed leases", LAPSED, "x_jobs_running"),
    ("idempotency keys", DEDUPING, "x_jobs_key"),
    ("steps", RUNS, "x_job_steps_pkey"),
)


async def detours(links: Links, sql: Sql) -> list[str]:
    """See `InspectionStore.detours`."""
    told: list[str] = []
    for what, statement, index in _PROBES:
        text: str = await links.fetchval(f"explain (format json) {sql(statement)}")
        scans = list(_scans(json.loads(text)[0]["Plan"]))
        if scans != [index]:
            told.append(f"{what} go by {', '.join(scans)} instead of {index}")
    return told


def _scans(plan: Mapping[str, Any]) -> Iterator[str]:
    """What each scan of the plan goes by, and sorts, which an index makes needless."""
    if plan["Node Type"] == "Sort":
        yield "a sort"
    if "Index Name" in plan:
        yield plan["Index Name"]
    elif "Relation Name" in plan and "Bitmap" not in plan["Node Type"]:
        yield f"a scan of all {plan['Relation Name']}"
    for child in cast("Sequence[Mapping[str, Any]]", plan.get("Plans", ())):
        yield from _scans(child)
