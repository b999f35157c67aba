"""Settings: which source wins, and that a broken one is named."""

from pathlib import Path

import pytest

from ultijobs._settings import Settings, load
from ultijobs.errors import Invariant


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "pyproject.toml").write_text(
        '[tool.ultijobs]\ndatabase-url = "postgresql://file"\nschema = "jobs"\napp = "shop:app"\nenv = "dev"\n'
    )
    inner = tmp_path / "src" / "shop"
    inner.mkdir(parents=True)
    return inner


def test_nothing_set_is_nothing(tmp_path):
    assert load({}, tmp_path) == Settings()


def test_the_nearest_pyproject_is_read(project):
    assert load({}, project) == Settings("postgresql://file", "jobs", "shop:app", "dev", None)


def test_variables_win_over_the_file_and_our_own_over_the_common_one(project):
    assert load({"DATABASE_URL": "postgresql://common"}, project).database_url == "postgresql://common"
    both = {"DATABASE_URL": "postgresql://common", "ULTIJOBS_DATABASE_URL": "postgresql://own"}
    assert load(both, project).database_url == "postgresql://own"
    assert load({"ULTIJOBS_ENV": "production"}, project).environment == "production"


def test_an_empty_variable_counts_as_not_set(project):
    assert load({"ULTIJOBS_DATABASE_URL": "", "ULTIJOBS_SCHEMA": ""}, project).schema == "jobs"


@pytest.mark.parametrize("text", ["[tool.ultijobs]\nschema = 3\n", "[tool.ultijobs\n"])
def test_a_broken_file_is_named(tmp_path, text):
    (tmp_path / "pyproject.toml").write_text(text)
    with pytest.raises(Invariant, match=r"pyproject\.toml"):
        load({}, tmp_path)


def test_a_project_without_our_table_is_fine(tmp_path):
    (tmp_path / "pyproject.toml").write_text('[project]\nname = "shop"\n')
    assert load({}, tmp_path) == Settings()
