"""Keeps history's days ahead of the clock, through a function that the migrating role owns."""

from __future__ import annotations

from typing import Final

import asyncpg

from ultijobs.errors import Invariant
from ultijobs.postgres.links import Links
from ultijobs.postgres.sql import Sql

__all__ = ["AHEAD", "make_days_ahead"]

AHEAD: Final = "select {schema}.x_history_ahead(7)"


async def make_days_ahead(links: Links, sql: Sql) -> None:
    """Makes the partitions of the next 7 days; rows of a day without one go to the default partition.

    Raises `Invariant` when this role may not call the function.
    """
    try:
        await links.fetch(sql(AHEAD))
    except asyncpg.InsufficientPrivilegeError as refused:
        raise Invariant(
            f"this role may not make history's days: {refused}",
            fix=f"grant execute on function {sql.quoted}.x_history_ahead(int) to the worker's role",
        ) from refused
