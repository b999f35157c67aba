"""Crashes at any moment: whatever dies when, each step's record is one, and what it gave is what everyone gets."""

import asyncio
from collections import Counter
from dataclasses import dataclass

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.support.attempts import Bench
from ultijobs._execution.ending import Ending
from ultijobs._queue.claims import Settlement
from ultijobs._queue.records import Outcome
from ultijobs._queue.steps import StepAnswer, StepWrite
from ultijobs._steps.step import Step


@dataclass(frozen=True)
class Work:
    """A step whose function fails so many times before it succeeds."""

    failures: int


@dataclass(frozen=True)
class Nap:
    seconds: int


@dataclass(frozen=True)
class Branches:
    parts: tuple[tuple[Work | Nap, ...], ...]


work = st.builds(Work, st.integers(0, 2))
nap = st.builds(Nap, st.integers(0, 3))
branches = st.builds(Branches, st.lists(st.lists(work | nap, max_size=3).map(tuple), min_size=1, max_size=3).map(tuple))
programs = st.lists(work | nap | branches, max_size=6)
crashes = st.lists(st.tuples(st.integers(0, 12), st.booleans()), max_size=5)


class Execution:
    """Runs a program of steps and notes every effect and every result."""

    def __init__(self, program: list[Work | Nap | Branches]) -> None:
        self.program = program
        self.effects: Counter[str] = Counter()
        self.results: dict[str, set[int]] = {}

    async def handler(self, step: Step) -> None:
        for number, part in enumerate(self.program):
            if isinstance(part, Branches):
                async with asyncio.TaskGroup() as group:
                    for which, branch in enumerate(part.parts):
                        group.create_task(self._branch(step, f"{number}.{which}", branch))
            else:
                await self._branch(step, str(number), (part,))

    async def _branch(self, step: Step, name: str, parts: tuple[Work | Nap, ...]) -> None:
        for number, part in enumerate(parts):
            of = f"{name}/{number}"
            if isinstance(part, Nap):
                await step.sleep(of, part.seconds)
            else:
                given = await step.run(of, self._effect, of, part.failures)
                self.results.setdefault(of, set()).add(given)

    async def _effect(self, of: str, failures: int) -> int:
        await asyncio.sleep(0)
        self.effects[of] += 1
        if self.effects[of] <= failures:
            raise ConnectionError(of)
        return self.effects[of]


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(programs, crashes)
def test_a_recorded_result_is_never_made_twice_wherever_workers_die(
    program: list[Work | Nap | Branches], planned: list[tuple[int, bool]]
):
    asyncio.run(_run(program, planned))


async def _run(program: list[Work | Nap | Branches], planned: list[tuple[int, bool]]) -> None:
    execution = Execution(program)
    bench = Bench(execution.handler, attempts=1_000)
    for _ in range(200):
        crash = planned.pop() if planned else None
        if crash is not None:
            settlement = await _until_it_dies(bench, *crash)
        else:
            settlement = await bench.run()
        if settlement is not None and settlement.outcome is Outcome.OK:
            break
    else:
        raise AssertionError("the run does not end")
    _judge(execution, bench)


async def _until_it_dies(bench: Bench, writes: int, stored: bool) -> Settlement | None:
    """An attempt whose worker dies at its nth write: before it is stored, or after it without an answer."""
    left = writes
    store = bench.steps.record

    def record(write: StepWrite, done: object, /) -> None:
        nonlocal left
        left -= 1
        if left >= 0:
            store(write, done)  # type: ignore[arg-type]
            return
        if stored and left == -1:
            store(write, lambda _: None)
        bench.attempt.cancel(Ending.LOST)
        # A dead worker learns nothing; here its task has to end all the same.
        asyncio.get_running_loop().call_soon(done, StepAnswer(held=False))  # type: ignore[arg-type]

    bench.steps.record = record  # type: ignore[method-assign]
    try:
        return await bench.run()
    finally:
        bench.steps.record = store  # type: ignore[method-assign]


def _judge(execution: Execution, bench: Bench) -> None:
    for name, count in execution.effects.items():
        record = bench.steps.records[name]
        assert record.status == "completed"
        # One value for all who ever asked, and it is the stored one.
        assert execution.results[name] == {int(str(record.output))}
        # The effect that was recorded is the last one.
        assert count == int(str(record.output))
