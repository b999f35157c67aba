"""The call of a handler: its stored steps, its input, its services, in the attempt's task or in a thread."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from typing import Any

from ultijobs._execution.host import Handler, Host
from ultijobs._queue.claims import ClaimedJob
from ultijobs._steps.context import Context
from ultijobs._steps.ledger import Ledger
from ultijobs._steps.recorder import Recorder
from ultijobs._steps.runner import Runner, StepRules
from ultijobs._steps.step import Step
from ultijobs._steps.sync_step import SyncStep
from ultijobs.errors import JobRowStatusUnknown, UltijobsError

__all__ = ["Body"]


class Body:
    """One call of one handler, and what is known of it afterwards."""

    __slots__ = ("_context", "_handler", "_host", "_job", "_ledger", "in_thread", "misfit", "runner", "unreadable")

    def __init__(self, job: ClaimedJob, handler: Handler, host: Host, context: Context[Any]) -> None:
        self._job = job
        self._handler = handler
        self._host = host
        self._context = context
        self._ledger: Ledger | None = None
        self.runner: Runner | None = None
        """None for a handler that takes no steps."""
        self.in_thread = False
        """True while the handler's code runs where no cancellation reaches it."""
        self.misfit = False
        """The input does not fit the declaration; the handler was not called."""
        self.unreadable = False
        """The run has a record that this release does not know; the handler was not called."""

    @property
    def replayed(self) -> int:
        """How many steps came from storage."""
        return 0 if self._ledger is None else len(self._ledger.replayed)

    @property
    def steps(self) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """The names of the steps that were executed, and of those that came from storage, in their order."""
        return ((), ()) if self._ledger is None else (self._ledger.executed, tuple(self._ledger.replayed))

    @property
    def parked(self) -> bool:
        return self.runner is not None and self.runner.parked

    @property
    def fatal(self) -> UltijobsError | None:
        return None if self.runner is None else self.runner.fatal

    @property
    def fenced(self) -> bool:
        """True when the store has refused a write of this claim."""
        return self.runner is not None and self.runner.recorder.fenced

    async def run(self) -> None:
        """Raises what the handler raises, and what keeps it from being called."""
        job, handler, host, context = self._job, self._handler, self._host, self._context
        if job.has_steps:
            records = await host.steps.load(job.run_id)
            try:
                self._ledger = Ledger(records)
            except JobRowStatusUnknown:
                self.unreadable = True
                raise
        try:
            value = handler.validate(job.input)
        except Exception:
            self.misfit = True
            raise
        if host.context is not None:
            services = host.context(host.services, context)
            context.services = await services if inspect.isawaitable(services) else services
        takes = handler.takes
        given: dict[str, Any] = {"input": value, "ctx": context, "claim": job, "host": host}
        arguments = {name: given[name] for name in takes if name in given}
        if "step" in takes:
            self.runner = self._make_runner()
            arguments["step"] = Step(self.runner) if handler.is_async else SyncStep(self.runner)
        if handler.is_async:
            await handler.fn(**arguments)
        else:
            await self._in_a_thread(functools.partial(handler.fn, **arguments))

    def close(self, reason: UltijobsError) -> None:
        """Refuses every further step and every write."""
        if self.runner is not None:
            self.runner.recorder.close(reason)

    def refuse_forgotten(self) -> None:
        """Raises `RunCodeChanged` when a handler that has returned did not ask for a recorded step."""
        if self._ledger is not None and not self.parked:
            self._ledger.refuse_forgotten()

    async def _in_a_thread(self, call: functools.partial[Any]) -> None:
        self.in_thread = True
        copied = functools.partial(contextvars.copy_context().run, call)
        try:
            value = await self._host.threads.run(copied, self._host.loop)
        finally:
            self.in_thread = False
        if inspect.isawaitable(value):
            await value

    def _make_runner(self) -> Runner:
        host, context, own = self._host, self._context, asyncio.current_task()
        if self._ledger is None:
            self._ledger = Ledger()
        return Runner(
            self._job,
            Recorder(self._job, host.steps, host.loop, error_limit=host.error_limit),
            self._ledger,
            context.signal,
            host.threads,
            rules=StepRules(self._handler.step_timeout, host.output_limit, self._handler.event_poll),
            loop=host.loop,
            # A task that starts eagerly runs before it is known as a child.
            has_company=lambda: bool(context.children) or asyncio.current_task() is not own,
        )
