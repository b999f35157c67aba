"""The Postgres driver."""

from __future__ import annotations

from ultijobs.postgres.driver import PostgresDriver

__all__ = ["PostgresDriver"]
