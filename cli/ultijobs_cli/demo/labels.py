"""A backfill over the application's own table of files: the kind of each, which no row was written with."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import PurePosixPath
from typing import Any, Final, Protocol

import asyncpg

from ultijobs import BatchSource, Context, backfill

__all__ = ["CREATE_FILES", "STORE_FILES", "kind_of", "label_files"]

CREATE_FILES = """
create table if not exists audit_files (
  id           bigint generated always as identity primary key,
  distribution text not null,
  path         text not null,
  kind         text,
  unique (distribution, path)
)
"""

STORE_FILES = """
insert into audit_files (distribution, path) select $1, path from unnest($2::text[]) path on conflict do nothing
"""

UNLABELLED = "select count(*) from audit_files where kind is null"

KINDS: Final[Mapping[str, str]] = {
    ".py": "source",
    ".pyi": "stub",
    ".pyc": "bytecode",
    ".so": "library",
    ".dylib": "library",
    ".dll": "library",
    ".pyd": "library",
    ".txt": "text",
    ".md": "text",
    ".rst": "text",
    ".json": "data",
    ".toml": "data",
    ".yaml": "data",
}


class Services(Protocol):
    """What a pass needs of its process."""

    async def label(self, kinds: Mapping[int, str]) -> None: ...


def kind_of(path: str) -> str:
    """What a file is by its name."""
    named = PurePosixPath(path)
    if any(part.endswith(".dist-info") for part in named.parts):
        return "metadata"
    return KINDS.get(named.suffix.lower(), "other")


async def unlabelled() -> int:
    """How many files have no kind. The command line asks too, outside of any worker and its pool."""
    connection = await asyncpg.connect(os.environ["ULTIJOBS_DATABASE_URL"])
    try:
        return int(await connection.fetchval(UNLABELLED))
    finally:
        await connection.close()


@backfill(
    BatchSource.table("audit_files", key="id"),
    tenant="none",
    count=unlabelled,
    batch=250,
    rate=4,
    queue="labels",
)
async def label_files(rows: Sequence[dict[str, Any]], ctx: Context[Services]) -> None:
    """Labels one page; once more is the same labels again."""
    await ctx.services.label({row["id"]: kind_of(row["path"]) for row in rows})
