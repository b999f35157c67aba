"""What travels when a job moves: everything that a row holds, but what speaks of a claim."""

from __future__ import annotations

from dataclasses import fields

import asyncpg
import pytest

from ultijobs._queue.moving import MovedEvent, MovedJob, MovedStep
from ultijobs.postgres.moved_rows import ATTEMPT_TYPES, EVENT_TYPES, JOB_TYPES, STEP_TYPES

OF_A_CLAIM = {"lease_until", "running_step", "abandoned", "woken", "cancel_reason"}
"""A row that moves is held by nobody; its reason says where it goes."""


@pytest.mark.parametrize(
    ("table", "types", "left"),
    [
        ("x_jobs", JOB_TYPES, OF_A_CLAIM),
        ("x_job_steps", STEP_TYPES, set()),
        ("x_job_attempts", ATTEMPT_TYPES, set()),
        ("x_job_events", EVENT_TYPES, {"delivered"}),
    ],
)
async def test_every_column_travels(pg_url: str, table: str, types: dict[str, str], left: set[str]) -> None:
    connection = await asyncpg.connect(pg_url)
    columns = "select attname from pg_attribute where attrelid = $1::text::regclass and attnum > 0 and not attisdropped"
    found = {row[0] for row in await connection.fetch(columns, table)}
    await connection.close()
    assert set(types) == found - left


def test_the_values_have_the_columns() -> None:
    assert {field.name for field in fields(MovedJob)} - {"steps", "attempts"} == set(JOB_TYPES)
    assert {field.name for field in fields(MovedStep)} == set(STEP_TYPES) - {"run_id"}
    assert {field.name for field in fields(MovedEvent)} == set(EVENT_TYPES)
