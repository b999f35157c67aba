"""Orders that need no consent: they touch no job, and one more order undoes them."""

from __future__ import annotations

from collections.abc import Mapping

from ultijobs.inspection import Inspector, Plan
from ultijobs_cli.acts import outcome_findings
from ultijobs_cli.exit_codes import ExitCode, exit_code_of
from ultijobs_cli.report import Report
from ultijobs_cli.tables import Paragraph

__all__ = ["order"]


async def order(api: Inspector, plan: Plan, about: Mapping[str, object], *, dry_run: bool = False) -> Report:
    """Applies the plan; `about` is what the answer's data begins with."""
    if dry_run:
        return _foreseen(plan, about)
    outcome = await api.apply(plan)
    refusals = (*outcome.refused, *outcome.failed)
    changed = outcome.matched > 0 and not refusals
    (name,) = about.values()
    done = "done" if changed else "nothing changed"
    summary = "; ".join((f"{plan.action} {name}: {done}", *plan.warnings))
    exit_code = max((exit_code_of(refusal.code) for refusal in refusals), default=ExitCode.DONE)
    return Report(
        summary=summary,
        data={
            **about,
            "action": plan.action,
            "changed": changed,
            "activity_id": outcome.activity_id,
            "warnings": plan.warnings,
        },
        blocks=[Paragraph(summary)],
        findings=outcome_findings(outcome),
        exit_code=exit_code,
    )


def _foreseen(plan: Plan, about: Mapping[str, object]) -> Report:
    """What would be changed; nothing is."""
    (name,) = about.values()
    would = "would be done" if plan.matched.value else "would change nothing"
    summary = "; ".join((f"{plan.action} {name}: {would}", *plan.warnings))
    data = {
        **about,
        "action": plan.action,
        "dry_run": True,
        "changed": False,
        "would_change": bool(plan.matched.value),
        "activity_id": None,
        "warnings": plan.warnings,
        "equivalent": plan.equivalent,
    }
    return Report(summary, data, [Paragraph(summary), Paragraph(plan.equivalent)])
