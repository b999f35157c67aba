"""An example application is tested by `ultijobs.testing` alone, as its authors would do it."""

from __future__ import annotations

import os
from pathlib import Path

from tests.support.inner import installed, run_pytest

EXAMPLE = Path(__file__).parent / "example"


def test_an_application_is_tested_without_a_database() -> None:
    done = run_pytest(EXAMPLE)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "6 passed" in done.stdout


def test_a_test_that_fails_shows_the_attempts(tmp_path: Path) -> None:
    (tmp_path / "pyproject.toml").write_text((EXAMPLE / "pyproject.toml").read_text())
    (tmp_path / "clinic.py").write_text((EXAMPLE / "clinic.py").read_text())
    (tmp_path / "test_failing.py").write_text(
        "from clinic import Bill, bill\n\n\n"
        "def test_it(jobs_app):\n"
        "    bill.enqueue_sync(Bill(visit_id=7, clinic='north', cents=0))\n"
        "    assert jobs_app.run_until_idle_sync()[0].outcome == 'ok'\n"
    )
    done = run_pytest(tmp_path)
    assert done.returncode == 1, done.stdout + done.stderr
    assert "ultijobs executions" in done.stdout
    assert "attempt 1 of 3: dead (terminal), Terminal('visit 7 costs nothing')" in done.stdout


def test_the_plugin_of_the_wheel_is_found_by_itself() -> None:
    assert installed() or "ULTIJOBS_TEST_WHEEL" not in os.environ
