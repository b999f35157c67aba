"""An application as a user writes it: a clinic that books visits, reminds of them and bills what was done."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import datetime

from pydantic import BaseModel

from ultijobs import App, Context, Request, RetryPolicy, Step, SyncStep, Terminal, cross_tenant, job, task


class Visit(BaseModel):
    id: int
    clinic: str
    patient: str


class Bill(BaseModel):
    visit_id: int
    clinic: str
    cents: int


class Day(BaseModel):
    day: str


class LineBusy(Exception):
    """The telephone line is taken."""


@dataclass
class Services:
    """What the handlers use: in production a telephone and a printer."""

    calls: list[str] = field(default_factory=list[str])
    printed: list[str] = field(default_factory=list[str])
    busy: int = 0

    async def call(self, patient: str) -> str:
        if self.busy:
            self.busy -= 1
            raise LineBusy(patient)
        self.calls.append(patient)
        return f"called {patient}"

    def print(self, text: str) -> str:
        self.printed.append(text)
        return text


@job(
    Visit,
    idempotency_key=lambda visit: f"visit:{visit.id}",
    tenant=lambda visit: visit.clinic,
    retry=RetryPolicy(attempts=3, delay="10m", jitter=False),
)
async def accompany(input: Visit, step: Step, ctx: Context[Services]) -> None:
    """Reminds of a visit, waits for it, and bills it."""
    await step.sleep("reminder", "2d")
    await step.run("call", ctx.services.call, input.patient)
    seen = await step.wait_for_event("visit", "visit.ended", payload=Day, match=str(input.id), timeout="14d")
    if seen is not None:
        await bill.enqueue(Bill(visit_id=input.id, clinic=input.clinic, cents=4_200))


@job(Bill, idempotency_key=lambda bill: f"bill:{bill.visit_id}", tenant=lambda bill: bill.clinic, queue="billing")
def bill(input: Bill, step: SyncStep, ctx: Context[Services]) -> None:
    if input.cents <= 0:
        raise Terminal(f"visit {input.visit_id} costs nothing")
    step.run("print", ctx.services.print, f"{ctx.tenant}: {input.cents}")


@job(Day, idempotency_key=lambda day: day.day, tenant="none")
async def report(input: Day, ctx: Context[Services]) -> None:
    with cross_tenant("the day's report is over all clinics"):
        ctx.services.print(f"report of {input.day}, because {ctx.crossing}")


@task(cron="30 18 * * 1-5", tz="Europe/Berlin", catch_up="run-all")
def at_closing_time(occurrence: datetime) -> list[Request[Day]]:
    return [report.request(Day(day=f"{occurrence:%Y-%m-%d}"))]


@asynccontextmanager
async def services() -> AsyncGenerator[Services]:
    yield Services()


app = App(jobs=[accompany, bill, report], tasks=[at_closing_time], lifespan=services)
