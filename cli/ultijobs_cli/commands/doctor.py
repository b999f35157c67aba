"""`doctor`: all that is wrong, each with its cause and a command."""

from __future__ import annotations

from typing import Final

from ultijobs.errors import SchemaOutdated
from ultijobs.inspection import CHECKS, Checked, Diagnosis, Symptom, inert
from ultijobs_cli import wording
from ultijobs_cli.command import Invocation
from ultijobs_cli.connect import inspector, outbox_inspector
from ultijobs_cli.exit_codes import ExitCode, exit_code_of
from ultijobs_cli.explanations import CODES
from ultijobs_cli.report import Finding, Report
from ultijobs_cli.tables import Block, Cell, Column, Paragraph, Tone, grid

__all__ = ["doctor"]

_SCHEMA: Final = "schema"
_TONES: Final[dict[str, Tone]] = {"ok": "green", "warning": "yellow", "error": "red", "unknown": "red"}


async def doctor(call: Invocation) -> Report:
    """Diagnoses the queue: what is wrong, and how to fix it.

    Changes nothing. Exits 0 when healthy, even with warnings; 1 on an error; 4 if the database cannot be reached.

    $ ultijobs doctor
    $ ultijobs doctor --json
    $ ultijobs explain X_SNAPSHOT_OLD
    """
    try:
        async with inspector(call) as api, outbox_inspector(call) as staging:
            found = await api.examine(outbox=staging.driver)
    except SchemaOutdated as outdated:
        checks = [Checked(_SCHEMA, "error", outdated.code)]
        symptom = Symptom(outdated.code, "error", outdated.cause, outdated.fix)
        return _report([symptom], checks, ExitCode(exit_code_of(outdated.code)))
    checks = [Checked(_SCHEMA, "ok", SchemaOutdated.code), *found.checks]
    return _report(found.symptoms, checks, ExitCode.DONE if found.healthy else ExitCode.FAILED, found)


def _report(
    symptoms: list[Symptom], checks: list[Checked], exit_code: ExitCode, found: Diagnosis | None = None
) -> Report:
    errors = sum(symptom.severity == "error" for symptom in symptoms)
    warnings = len(symptoms) - errors
    told = [wording.plural(number, word) for number, word in ((errors, "error"), (warnings, "warning")) if number]
    return Report(
        summary=f"{len(checks)} checks: {', '.join(told) or 'nothing is wrong'}",
        data={
            "healthy": exit_code is ExitCode.DONE,
            "rows": symptoms,
            "next": None,
            "checks": checks,
            "lacks": () if found is None else found.lacks,
            "as_of": None if found is None else found.as_of,
        },
        blocks=_blocks(symptoms, checks, () if found is None else found.lacks),
        findings=[_finding(symptom) for symptom in symptoms],
        exit_code=exit_code,
        rows="rows",
        findings_in_blocks=True,
    )


def _blocks(symptoms: list[Symptom], checks: list[Checked], lacks: tuple[str, ...]) -> list[Block]:
    titles = {check.name: check.title for check in CHECKS} | {_SCHEMA: "The tables do not match this release"}
    count = {check.code: sum(symptom.code == check.code for symptom in symptoms) for check in checks}
    table = grid(
        checks,
        [
            Column("CHECK", lambda row: Cell(row.check, "bold")),
            Column("RESULT", lambda row: Cell(row.result, _TONES[row.result])),
            Column("FOUND", lambda row: str(count[row.code] or ""), right=True),
            Column("WHAT", lambda row: "" if row.result == "ok" else titles[row.check], rank=1, wide=True),
        ],
        empty="no checks",
    )
    said = [block for symptom in symptoms for block in _told(symptom)]
    return [table, *said, *(Paragraph(f"not looked at: {lack}", "dim", prose=True) for lack in lacks)]


def _told(symptom: Symptom) -> list[Block]:
    """Never cut: the line that fixes it is there to be copied."""
    cause = f"{symptom.severity} {symptom.code}: {symptom.cause}"
    return [Paragraph(f"{inert(cause, line=True)}\n  fix: {inert(symptom.fix, line=True)}", _TONES[symptom.severity])]


def _finding(symptom: Symptom) -> Finding:
    known = CODES.get(symptom.code)
    return Finding(symptom.code, symptom.cause, symptom.fix, None if known is None else known.docs, symptom.at)
