import subprocess
import sys

import pytest

from ultijobs._connect import driver_for
from ultijobs.errors import Invariant, NotImplementedYet, UltijobsError


@pytest.mark.parametrize("url", ["redis://:secret@h/0", "rediss://:secret@h", "nats://u:secret@h"])
def test_a_planned_backing_is_refused_by_code(url: str) -> None:
    with pytest.raises(NotImplementedYet) as caught:
        driver_for(url)
    assert "postgresql://" in caught.value.fix


@pytest.mark.parametrize("url", ["", "localhost", "mysql://u:secret@h/db", "embedded:", "sqlite:x"])
def test_an_unknown_backing_is_refused_with_the_ones_that_exist(url: str) -> None:
    with pytest.raises(Invariant) as caught:
        driver_for(url)
    assert caught.value.fix


@pytest.mark.parametrize("url", ["redis://u:secret@h", "nats://u:secret@h", "mysql://u:secret@h/db", "secret"])
def test_a_password_is_never_repeated(url: str) -> None:
    with pytest.raises(UltijobsError) as caught:
        driver_for(url)
    assert "secret" not in " ".join(caught.value.lines())


@pytest.mark.parametrize(
    ("url", "kind"),
    [
        ("postgresql://u:secret@h/db", "PostgresDriver"),
        ("postgres://h/db", "PostgresDriver"),
        ("memory:", "MemoryDriver"),
    ],
)
def test_a_scheme_names_its_driver_and_shows_no_password(url: str, kind: str) -> None:
    driver = driver_for(url, "jobs")
    assert type(driver).__name__ == kind
    assert "secret" not in driver.url


def test_no_backing_is_imported_before_it_is_asked_for() -> None:
    code = "import sys, ultijobs._connect, ultijobs.inspection; print([m for m in sys.modules if 'asyncpg' in m])"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout.strip() == "[]"
