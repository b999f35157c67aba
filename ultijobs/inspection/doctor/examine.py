"""The examination: all checks over one reading of the facts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Final, Literal

from ultijobs._clock import SYSTEM_CLOCK, Clock
from ultijobs._queue.driver import Driver
from ultijobs._queue.outbox import OutboxStore
from ultijobs.inspection.doctor.database import DATABASE
from ultijobs.inspection.doctor.facts import Facts, Thresholds, gather
from ultijobs.inspection.doctor.symptoms import Check, Symptom
from ultijobs.inspection.doctor.work import WORK

__all__ = ["CHECKS", "Checked", "Diagnosis", "diagnose", "examine"]

CHECKS: Final[Sequence[Check]] = (*WORK, *DATABASE)


@dataclass(frozen=True, slots=True)
class Checked:
    """One check and how it ended; `unknown` when what it looks at could not be read."""

    check: str
    result: Literal["ok", "warning", "error", "unknown"]
    code: str


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """What was found, errors first, and how each check ended."""

    as_of: datetime
    symptoms: list[Symptom]
    checks: list[Checked]
    lacks: tuple[str, ...] = ()
    """What this driver cannot be asked, in words."""

    @property
    def healthy(self) -> bool:
        """True without an error and without a check that could not look; warnings do not count."""
        return all(check.result in {"ok", "warning"} for check in self.checks)


async def examine(
    driver: Driver,
    limits: Thresholds | None = None,
    clock: Clock = SYSTEM_CLOCK,
    outbox: OutboxStore | None = None,
) -> Diagnosis:
    """Reads the facts in a dozen bounded statements, changes nothing, and asks every check."""
    return diagnose(await gather(driver, clock, outbox), limits or Thresholds())


def diagnose(facts: Facts, limits: Thresholds) -> Diagnosis:
    """What the checks find in `facts`."""
    symptoms: list[Symptom] = []
    checks: list[Checked] = []
    for check in CHECKS:
        found = list(check.look(facts, limits))
        failure = facts.failed.get(check.needs)
        if failure is not None:
            found = [Symptom(failure.code, "error", f"{check.name}: {failure.cause}", failure.fix, at=check.name)]
        symptoms += found
        checks.append(Checked(check.name, _result(found, failed=failure is not None), check.code))
    symptoms.sort(key=lambda symptom: symptom.severity != "error")
    return Diagnosis(facts.now, symptoms, checks, () if facts.health is None else facts.health.lacks)


def _result(found: Sequence[Symptom], *, failed: bool) -> Literal["ok", "warning", "error", "unknown"]:
    if failed:
        return "unknown"
    if any(symptom.severity == "error" for symptom in found):
        return "error"
    return "warning" if found else "ok"
