"""Runs the reads of inspection with every statement explained, to count the rows that each one touches."""

from __future__ import annotations

import json
from typing import Any

import asyncpg

from ultijobs.postgres.inspection import PostgresInspection
from ultijobs.postgres.place import READING
from ultijobs.postgres.sql import Sql


class ExplainingLinks:
    """Stands in for `Links`: `rows` is what the scans of all statements so far have touched."""

    def __init__(self, connection: asyncpg.Connection) -> None:
        self._connection = connection
        self.statements: list[str] = []
        self.rows = 0

    async def fetch(self, statement: str, *arguments: object, limit: float | None = None) -> list[Any]:
        self.statements.append(statement)
        text = await self._connection.fetchval(f"explain (analyze, timing off, format json) {statement}", *arguments)
        self.rows += touched(json.loads(text)[0]["Plan"])
        return await self._connection.fetch(statement, *arguments)

    async def fetchrow(self, statement: str, *arguments: object, limit: float | None = None) -> Any:
        rows = await self.fetch(statement, *arguments)
        return rows[0] if rows else None

    async def fetchval(self, statement: str, *arguments: object, limit: float | None = None) -> Any:
        row = await self.fetchrow(statement, *arguments)
        return None if row is None else row[0]


async def explaining(url: str) -> tuple[PostgresInspection, ExplainingLinks, asyncpg.Connection]:
    """Inspection on a connection with the settings of a reading link."""
    connection = await asyncpg.connect(url, server_settings={**READING, "jit": "off"})
    links = ExplainingLinks(connection)
    return PostgresInspection(links, links, Sql("public")), links, connection


def touched(plan: dict[str, Any]) -> int:
    """Rows that the scans of tables returned or threw away, over all loops."""
    own = 0
    if str(plan.get("Relation Name", "")).startswith("x_"):
        seen = (
            plan["Actual Rows"] + plan.get("Rows Removed by Filter", 0) + plan.get("Rows Removed by Index Recheck", 0)
        )
        own = int(seen * plan["Actual Loops"])
    return own + sum(touched(child) for child in plan.get("Plans", ()))
