"""The runbook speaks of every line of Incident and of everything that doctor finds."""

from __future__ import annotations

from pathlib import Path

from ultijobs.inspection import CHECKS, StuckKind

PAGE = (Path(__file__).parents[2] / "docs" / "runbook.md").read_text(encoding="utf-8")
WORK = {
    "X_LEASES_LAPSED": StuckKind.LEASE,
    "X_NAMES_UNSERVED": StuckKind.NO_WORKER,
    "X_QUEUE_UNSERVED": StuckKind.NO_WORKER,
    "X_QUEUE_PAUSED": StuckKind.PAUSED,
    "X_TASK_LATE": StuckKind.CRON,
    "X_WORKER_WEDGED": "`wedged`",
}
"""What doctor finds that Incident has a line for, or that stands in one."""


def test_every_line_of_incident_has_its_section() -> None:
    for kind in StuckKind:
        assert f"\n### {kind}\n" in PAGE


def test_every_finding_of_doctor_is_met() -> None:
    for check in CHECKS:
        assert check.code in PAGE or str(WORK[check.code]) in PAGE, check.code
