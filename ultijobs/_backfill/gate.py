"""What must hold before a pass begins: its environment, and the migration that it requires."""

from __future__ import annotations

import asyncio
from collections.abc import Collection
from pathlib import Path
from typing import TYPE_CHECKING

from ultijobs._backfill.revisions import ancestors, configuration
from ultijobs.errors import BackfillEnvironment, BackfillMigrationPending

if TYPE_CHECKING:
    from ultijobs.postgres.tables import Applied, Tables

__all__ = ["Gate", "misplaced", "unmigrated"]


def misplaced(name: str, environments: Collection[str], environment: str | None) -> BackfillEnvironment | None:
    """The refusal of a backfill that does not belong to `environment`; None where it does."""
    if not environments or environment in environments:
        return None
    here = f"this is {environment}" if environment else "no environment is set here"
    first = next(iter(environments))
    return BackfillEnvironment(
        f"backfill {name} belongs to {', '.join(environments)}, and {here}",
        fix=f"run it in {first}" if environment else f"export ULTIJOBS_ENV={first}, if this is {first}",
    )


class Gate:
    """Answers for required migrations; the list is read once, and only when something requires one.

    A queue that lies in no SQL database, as in tests on the memory driver, has no migrations to wait for.
    """

    def __init__(self, tables: Tables | None, directory: Path | None = None) -> None:
        self._tables = tables
        self._directory = directory
        self._applied: Applied | None = None

    async def unmigrated(self, name: str, requires: str | None) -> BackfillMigrationPending | None:
        """The refusal of a backfill whose migration is not applied. Raises `DriverUnavailable` when nobody can tell."""
        if requires is None or self._tables is None:
            return None
        if self._applied is None:
            self._applied = await self._tables.applied()
        return await unmigrated(name, requires, self._applied, self._directory)


async def unmigrated(
    name: str, requires: str, applied: Applied, directory: Path | None = None
) -> BackfillMigrationPending | None:
    """Whether `requires` is among what is applied: `app.0042_name` of Django, or a revision of Alembic.

    Alembic records its heads alone. What lies before them is read off the migration scripts, where an alembic.ini is
    found at `directory` or above, by default from the working directory on.
    """
    if requires in applied.alembic or requires in applied.django:
        return None
    heads = ", ".join(sorted(applied.alembic))
    cause = f"backfill {name} requires the migration {requires}, which is not applied"
    if not applied.alembic:
        return BackfillMigrationPending(cause, fix=_fix(requires, django=bool(applied.django)))
    ini = configuration(Path.cwd() if directory is None else directory)
    if ini is None:
        return BackfillMigrationPending(
            f"{cause}, as far as can be told: alembic_version is at {heads}, and no alembic.ini says what came before",
            fix="run it where alembic.ini and Alembic are, or apply the migration with: alembic upgrade head",
        )
    if requires in await asyncio.to_thread(ancestors, applied.alembic, ini):
        return None
    return BackfillMigrationPending(f"{cause}: alembic_version is at {heads}", fix=_fix(requires, django=False))


def _fix(requires: str, *, django: bool) -> str:
    app, dot, named = requires.partition(".")
    return f"python manage.py migrate {app} {named}" if dot or django else f"alembic upgrade {requires}"
