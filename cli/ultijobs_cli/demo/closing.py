"""The end of a round: a job that waits for the report of the last audit, then writes down what the round found."""

from __future__ import annotations

from typing import Protocol

from pydantic import BaseModel, Field

from ultijobs import Context, Step, job

__all__ = ["AUDITED", "Round", "Totals", "close_round"]

AUDITED = "round.audited"
"""Published with the last report of a round, under the number of the round."""


class Round(BaseModel):
    round: int = Field(ge=1)


class Totals(BaseModel):
    """What all reports of a round come to."""

    round: int
    distributions: int
    files: int
    bytes: int


class Services(Protocol):
    """What the end of a round needs of its process."""

    async def close(self, totals: Totals) -> None: ...


@job(Round, idempotency_key=lambda closing: str(closing.round), tenant="none", queue="audit")
async def close_round(input: Round, step: Step, ctx: Context[Services]) -> None:
    """Holds no process while the audits run. A round with an audit that stopped stays open."""
    audited = await step.wait_for_event("last report", AUDITED, payload=Totals, match=str(input.round), timeout="1m")
    if audited is not None:
        await step.run("close", ctx.services.close, audited.payload)
