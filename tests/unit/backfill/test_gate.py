"""Where a backfill belongs, and which migrations count as applied."""

from __future__ import annotations

from pathlib import Path

import pytest

from ultijobs._backfill.gate import Gate, misplaced, unmigrated
from ultijobs.errors import DriverUnavailable
from ultijobs.postgres.tables import Applied

NOTHING = Applied(frozenset(), frozenset())


def alembic(*heads: str) -> Applied:
    return Applied(frozenset(heads), frozenset())


@pytest.mark.parametrize(
    ("environments", "environment", "fits"),
    [
        ((), None, True),
        ((), "production", True),
        (("production", "staging"), "staging", True),
        (("production",), "staging", False),
        (("production",), None, False),
        (("production",), "", False),
    ],
)
def test_a_backfill_belongs_to_the_environments_it_names(environments, environment, fits):
    assert (misplaced("fill", environments, environment) is None) is fits


def test_the_refusal_names_both_sides_and_the_way_out():
    elsewhere = misplaced("fill", ("production",), "staging")
    unset = misplaced("fill", ("production",), None)
    assert elsewhere is not None
    assert unset is not None
    assert "production" in elsewhere.cause
    assert "staging" in elsewhere.cause
    assert unset.fix.startswith("export ULTIJOBS_ENV=production")


async def test_a_migration_of_django_counts_when_its_row_is_there():
    applied = Applied(frozenset(), frozenset({"shop.0042_fill", "auth.0001_initial"}))
    assert await unmigrated("fill", "shop.0042_fill", applied) is None
    missing = await unmigrated("fill", "shop.0043_more", applied)
    assert missing is not None
    assert missing.fix == "python manage.py migrate shop 0043_more"


async def test_without_any_list_nothing_is_applied(tmp_path: Path):
    missing = await unmigrated("fill", "ae1027a6acf", NOTHING, tmp_path)
    assert missing is not None
    assert missing.fix == "alembic upgrade ae1027a6acf"


def scripts(folder: Path, *chain: str) -> Path:
    """An Alembic folder whose revisions follow each other."""
    (folder / "alembic.ini").write_text("[alembic]\nscript_location = %(here)s/migrations\npath_separator = os\n")
    versions = folder / "migrations" / "versions"
    versions.mkdir(parents=True)
    for before, revision in zip((None, *chain), chain, strict=False):
        (versions / f"{revision}.py").write_text(f"revision = {revision!r}\ndown_revision = {before!r}\n")
    return folder


async def test_a_revision_before_the_head_is_applied_and_one_behind_it_is_not(tmp_path: Path):
    folder = scripts(tmp_path, "a1", "b2", "c3", "d4")
    for requires in ("a1", "b2", "c3"):
        assert await unmigrated("fill", requires, alembic("c3"), folder) is None
    missing = await unmigrated("fill", "d4", alembic("c3"), folder / "migrations")
    assert missing is not None
    assert "c3" in missing.cause


async def test_without_the_scripts_only_the_head_itself_is_known(tmp_path: Path):
    assert await unmigrated("fill", "c3", alembic("c3"), tmp_path) is None
    unknown = await unmigrated("fill", "a1", alembic("c3"), tmp_path)
    assert unknown is not None
    assert "as far as can be told" in unknown.cause


async def test_scripts_that_cannot_be_read_are_an_error_and_not_an_answer(tmp_path: Path):
    folder = scripts(tmp_path, "a1", "b2")
    (folder / "migrations" / "versions" / "b2.py").write_text("import nothing_of_that_name\n")
    with pytest.raises(DriverUnavailable, match="nothing_of_that_name"):
        await unmigrated("fill", "a1", alembic("b2"), folder)


async def test_a_queue_in_no_database_has_no_migrations_to_wait_for():
    assert await Gate(None).unmigrated("fill", "c3") is None
