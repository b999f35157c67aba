"""A source that is a recording: it shows what was, and can neither be asked more nor changed."""

from __future__ import annotations

from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import asynccontextmanager
from typing import NoReturn
from uuid import UUID

from ultijobs.errors import Invariant
from ultijobs.inspection import Action, ActOutcome, Plan, PlanOptions, Target, TaskDetail, Unheard, Where
from ultijobs_tui.frame import Frame, Needs

__all__ = ["ReplaySource"]


class ReplaySource:
    """Raises `Invariant` for everything that only a database could answer."""

    live = False
    runs_tasks = False
    actor = ""

    def __init__(self, title: str) -> None:
        self.title = title

    # ruff: noqa: ARG002 - the signatures are the protocol's
    async def fetch(self, needs: Needs) -> Frame:
        _refuse()

    async def find(self, ref: str) -> UUID:
        _refuse()

    async def unheard(self, where: Where) -> list[Unheard]:
        return []

    async def input(self, id: UUID) -> str | None:
        _refuse()

    async def task(self, name: str) -> TaskDetail:
        _refuse()

    async def plan(self, action: Action, target: Target | str | Sequence[UUID], options: PlanOptions) -> Plan:
        _refuse()

    async def apply(
        self, plan: Plan, *, on_progress: Callable[[int, int | None], None], stop: Callable[[], bool]
    ) -> ActOutcome:
        _refuse()

    @asynccontextmanager
    async def subscribe(self, on_hint: Callable[[], None]) -> AsyncGenerator[None]:
        yield


def _refuse() -> NoReturn:
    raise Invariant("a recording holds overviews alone", fix="ultijobs tui, on the database itself")
