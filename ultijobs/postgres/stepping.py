"""Fragments that find streams (queue, lane, rank) by stepping over each in the claim index, and read one of them."""

from __future__ import annotations

from typing import Final

__all__ = ["IN_STREAM", "STREAMS"]

STREAMS: Final = """\
streams as (
  (select j.queue, j.lane, -j.priority as rank, 1 as n from {schema}.x_jobs j
    where j.state in ('ready', 'suspended') and j.behind is null order by j.queue, j.lane, -j.priority limit 1)
  union all
  select x.queue, x.lane, x.rank, s.n + 1 from streams s cross join lateral (
    select j.queue, j.lane, -j.priority as rank from {schema}.x_jobs j
     where j.state in ('ready', 'suspended') and j.behind is null
       and (j.queue, j.lane, -j.priority) > (s.queue, s.lane, s.rank)
     order by j.queue, j.lane, -j.priority limit 1) x where s.n < 5000)"""
"""A part of `with recursive`."""

IN_STREAM: Final = (
    "j.state in ('ready', 'suspended') and j.behind is null "
    "and j.queue = s.queue and j.lane = s.lane and -j.priority = s.rank"
)
"""True for the rows `j` of a stream `s`; the index has them by run_at, id."""
