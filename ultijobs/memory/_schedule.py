"""The scheduler's store in memory: a leader, the tasks' states, the ledger of slots."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timedelta

from ultijobs._queue.records import Enqueued
from ultijobs._queue.schedule import Arming, Dispatch, Dispatched, Leader, Run, Slot, TaskState
from ultijobs.memory._enqueue import Transactions
from ultijobs.memory._store import Store

__all__ = ["MemorySchedule"]


class _Overtaken(Exception):
    """Rolls a dispatch back: the term ended, or the slot was decided, while its jobs were stored."""


@dataclass(slots=True)
class _Lead:
    holder: str
    term: int
    lease_until: datetime


@dataclass(slots=True)
class _Tables:
    leads: dict[str, _Lead] = field(default_factory=dict[str, _Lead])
    states: dict[str, TaskState] = field(default_factory=dict[str, TaskState])
    slots: dict[tuple[str, datetime], Slot] = field(default_factory=dict[tuple[str, datetime], Slot])


class MemorySchedule:
    """See `ScheduleStore`."""

    def __init__(self, store: Store, transactions: Transactions) -> None:
        self._store = store
        self._transactions = transactions
        self._tables = _Tables()

    async def lead(self, holder: str, *, lease: timedelta, scope: str = "") -> Leader:
        with self._store.lock:
            now = self._store.now()
            lead = self._tables.leads.get(scope)
            if lead is None or lead.lease_until <= now:
                lead = _Lead(holder, 1 if lead is None else lead.term + 1, now + lease)
                self._tables.leads[scope] = lead
            elif lead.holder == holder:
                lead.lease_until = now + lease
            return Leader(lead.holder, lead.term, lead.lease_until, now)

    async def resign(self, holder: str) -> None:
        with self._store.lock:
            for lead in self._tables.leads.values():
                if lead.holder == holder:
                    lead.lease_until = min(lead.lease_until, self._store.now())

    async def leader(self) -> Leader | None:
        with self._store.lock:
            latest = max(self._tables.leads.items(), key=lambda item: (item[1].lease_until, item[0]), default=None)
            return None if latest is None else self._shown(latest[0])

    async def states(self) -> list[TaskState]:
        with self._store.lock:
            states = [state for _, state in sorted(self._tables.states.items())]
            return [replace(state, leader=self._shown(state.owner)) for state in states]

    async def arm(self, holder: str, term: int, tasks: Sequence[Arming]) -> None:
        with self._store.lock:
            scope = self._scope(holder, term)
            if scope is None:
                return
            now = self._store.now()
            for task in tasks:
                state = self._tables.states.get(task.task)
                if state is not None and self._led_elsewhere(state, scope):
                    continue
                if state is None or (state.cron, state.tz) != (task.cron, task.tz):
                    fired = None if state is None else state.last_fired
                    made = TaskState(task.task, task.cron, task.tz, now, now, fired, None)
                else:
                    made = replace(state, retired=False)
                self._tables.states[task.task] = replace(made, owner=scope)

    async def retire(self, holder: str, term: int, tasks: Sequence[str]) -> None:
        with self._store.lock:
            scope = self._scope(holder, term)
            if scope is not None:
                for task in tasks:
                    state = self._tables.states.get(task)
                    if state is not None and not self._led_elsewhere(state, scope):
                        self._tables.states[task] = replace(state, retired=True)

    async def dispatch(self, holder: str, term: int, dispatch: Dispatch) -> Dispatched | None:
        with self._store.lock:
            if not self._leads(holder, term):
                return None
            if (dispatch.task, dispatch.occurrence) in self._tables.slots:
                self._decide(dispatch)
                return Dispatched((), fresh=False)
        try:
            async with self._transactions.begin() as tx:
                answers = tuple(await self._transactions.enqueue(dispatch.jobs, tx))
                with self._store.lock:
                    if not self._leads(holder, term) or (dispatch.task, dispatch.occurrence) in self._tables.slots:
                        raise _Overtaken  # noqa: TRY301 - leaving the block by an exception is what rolls back
                    self._file(dispatch, term, answers)
        except _Overtaken:
            return await self.dispatch(holder, term, dispatch)
        return Dispatched(answers, fresh=True)

    async def fault(self, holder: str, term: int, task: str, error: str) -> None:
        with self._store.lock:
            state = self._tables.states.get(task)
            if state is not None and self._leads(holder, term):
                self._tables.states[task] = replace(state, last_error=error)

    async def slots(self, task: str | None = None, *, limit: int = 100) -> list[Slot]:
        with self._store.lock:
            found = [slot for slot in self._tables.slots.values() if task in {None, slot.task}]
            return sorted(found, key=lambda slot: (slot.occurrence, slot.task), reverse=True)[:limit]

    async def runs(self, tasks: Sequence[str], *, each: int = 15) -> list[Run]:
        with self._store.lock:
            found: list[Run] = []
            for task in sorted(tasks, key=str.encode):
                slots = [slot for slot in self._tables.slots.values() if slot.task == task]
                slots.sort(key=lambda slot: slot.occurrence, reverse=True)
                found += [self._run(slot) for slot in slots[:each]]
            return found

    def _run(self, slot: Slot) -> Run:
        known = [row for job in slot.job_ids[:20] if (row := self._store.find(job)) is not None]
        began = [row.started_at for row in known if row.started_at is not None]
        ended = [row.finished_at for row in known if row.finished_at is not None]
        codes = [row.error_code for row in known if row.state in {"dead", "failed"} and row.error_code is not None]
        return Run(
            slot.task, slot.occurrence, slot.outcome, len(slot.job_ids), tuple(sorted({row.state for row in known})),
            min(began, default=None), max(ended, default=None), max(codes, default=None),
        )  # fmt: skip

    def decided(self, before: datetime) -> list[tuple[str, datetime]]:
        """The slots whose time, and whose decision, lie before; the caller holds the lock."""
        return [
            key
            for key, slot in self._tables.slots.items()
            if max(slot.through or slot.occurrence, slot.decided_at) < before
        ]

    def forget(self, before: datetime, limit: int) -> int:
        gone = self.decided(before)[:limit]
        for key in gone:
            del self._tables.slots[key]
        return len(gone)

    def _leads(self, holder: str, term: int) -> bool:
        return self._scope(holder, term) is not None

    def _scope(self, holder: str, term: int) -> str | None:
        """Where `holder` leads in that term; None when the term is over."""
        now = self._store.now()
        for scope, lead in self._tables.leads.items():
            if (lead.holder, lead.term) == (holder, term) and lead.lease_until > now:
                return scope
        return None

    def _led_elsewhere(self, state: TaskState, scope: str) -> bool:
        return replace(state, leader=self._shown(state.owner)).owned_by_another(scope)

    def _shown(self, scope: str) -> Leader | None:
        lead = self._tables.leads.get(scope)
        return None if lead is None else Leader(lead.holder, lead.term, lead.lease_until, self._store.now())

    def _file(self, dispatch: Dispatch, term: int, jobs: Sequence[Enqueued]) -> None:
        now = self._store.now()
        lapse = dispatch.lapse
        if lapse is not None:
            self._tables.slots.setdefault(
                (dispatch.task, lapse.first),
                Slot(
                    task=dispatch.task,
                    occurrence=lapse.first,
                    outcome=lapse.outcome.value,
                    reason=lapse.reason,
                    through=lapse.last,
                    slots=lapse.slots,
                    job_ids=(),
                    term=term,
                    decided_at=now,
                ),
            )
        self._tables.slots[dispatch.task, dispatch.occurrence] = Slot(
            task=dispatch.task,
            occurrence=dispatch.occurrence,
            outcome=dispatch.outcome.value,
            reason=None,
            through=None,
            slots=1,
            job_ids=tuple(job.id for job in jobs),
            term=term,
            decided_at=now,
        )
        self._decide(dispatch)

    def _decide(self, dispatch: Dispatch) -> None:
        state = self._tables.states.get(dispatch.task)
        if state is not None:
            decided = max(state.watermark, min(dispatch.watermark, self._store.now()))
            fired = max(state.last_fired or dispatch.occurrence, dispatch.occurrence)
            self._tables.states[dispatch.task] = replace(state, watermark=decided, last_fired=fired, last_error=None)
