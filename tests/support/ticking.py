"""An application that is asked for a job each second."""

from __future__ import annotations

from datetime import datetime

from pydantic import BaseModel

from tests.support.effects import effect
from ultijobs import App, Request, job, task


class Tick(BaseModel):
    at: str


@job(Tick, idempotency_key=lambda tick: tick.at, tenant="none")
async def tick(input: Tick) -> None:
    await effect("tick")


@task(cron="* * * * * *", tz="UTC", catch_up="run-all", max_catch_up=1_000)
def secondly(occurrence: datetime) -> list[Request[Tick]]:
    return [tick.request(Tick(at=occurrence.isoformat()))]


app = App(jobs=[tick], tasks=[secondly])
