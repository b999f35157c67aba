"""Coalescing: one call for all who ask at once, an answer of its own for each."""

import asyncio
import contextvars
from collections.abc import Sequence

import pytest

from ultijobs._coalesce import Backoff, Coalescer


class Away(Exception):
    pass


async def test_what_is_asked_in_one_turn_of_the_loop_goes_out_in_one_call():
    calls: list[list[int]] = []

    async def send(items: Sequence[int]) -> list[int]:
        calls.append(list(items))
        return [item * 10 for item in items]

    coalescer = Coalescer(send)
    answers = await asyncio.gather(*(coalescer.ask(number) for number in range(5)))
    assert answers == [0, 10, 20, 30, 40]
    assert calls == [[0, 1, 2, 3, 4]]


async def test_what_is_asked_during_a_call_rides_with_the_next_one():
    calls: list[list[int]] = []
    gate, started = asyncio.Event(), asyncio.Event()

    async def send(items: Sequence[int]) -> list[int]:
        calls.append(list(items))
        started.set()
        await gate.wait()
        return list(items)

    coalescer = Coalescer(send)
    first = asyncio.create_task(coalescer.ask(1))
    await started.wait()
    later = [asyncio.create_task(coalescer.ask(number)) for number in (2, 3, 4)]
    await asyncio.sleep(0)
    gate.set()
    assert await asyncio.gather(first, *later) == [1, 2, 3, 4]
    assert calls == [[1], [2, 3, 4]]


async def test_lanes_bound_the_calls_in_flight_and_the_limit_their_size():
    running = most = 0
    sizes: list[int] = []

    async def send(items: Sequence[int]) -> list[int]:
        nonlocal running, most
        running += 1
        most = max(most, running)
        sizes.append(len(items))
        await asyncio.sleep(0)
        running -= 1
        return list(items)

    coalescer = Coalescer(send, lanes=2, limit=3)
    assert await asyncio.gather(*(coalescer.ask(number) for number in range(10))) == list(range(10))
    assert most == 2
    assert max(sizes) == 3
    assert sum(sizes) == 10


async def test_an_error_of_the_data_reaches_only_the_item_that_causes_it():
    async def send(items: Sequence[int]) -> list[int]:
        if 3 in items:
            raise ValueError("three")
        return list(items)

    coalescer = Coalescer(send)
    answers = await asyncio.gather(*(coalescer.ask(number) for number in range(8)), return_exceptions=True)
    assert [answer for answer in answers if not isinstance(answer, Exception)] == [0, 1, 2, 4, 5, 6, 7]
    assert isinstance(answers[3], ValueError)
    assert coalescer.pending == 0


async def test_a_passing_error_is_tried_again_while_the_item_is_useful():
    tries = 0
    troubles: list[Exception] = []
    useful = {1, 2}

    async def send(items: Sequence[int]) -> list[int]:
        nonlocal tries
        tries += 1
        if tries == 2:
            useful.discard(2)
        if tries < 4:
            raise Away
        return list(items)

    coalescer = Coalescer(
        send,
        transient=(Away,),
        backoff=Backoff(first=0.001, most=0.002),
        useful=lambda item: item in useful,
        on_trouble=troubles.append,
    )
    one, two = await asyncio.gather(coalescer.ask(1), coalescer.ask(2), return_exceptions=True)
    assert one == 1
    assert isinstance(two, Away)
    assert len(troubles) == 3


async def test_without_a_back_off_a_passing_error_reaches_all_who_asked():
    async def send(items: Sequence[int]) -> list[int]:
        raise Away

    coalescer = Coalescer(send, transient=(Away,))
    answers = await asyncio.gather(coalescer.ask(1), coalescer.ask(2), return_exceptions=True)
    assert [type(answer) for answer in answers] == [Away, Away]


async def test_drained_returns_when_every_answer_is_given():
    answered: list[int | BaseException] = []

    async def send(items: Sequence[int]) -> list[int]:
        await asyncio.sleep(0)
        return list(items)

    coalescer = Coalescer(send)
    for number in range(3):
        coalescer.put(number, answered.append)
    await coalescer.drained()
    assert answered == [0, 1, 2]
    await coalescer.drained()


async def test_close_leaves_nobody_waiting():
    started = asyncio.Event()

    async def send(items: Sequence[int]) -> list[int]:
        started.set()
        await asyncio.Event().wait()
        return []

    coalescer = Coalescer(send)
    first = asyncio.create_task(coalescer.ask(1))
    await started.wait()
    second = asyncio.create_task(coalescer.ask(2))
    await asyncio.sleep(0)
    await coalescer.close()
    for task in (first, second):
        with pytest.raises(asyncio.CancelledError):
            await task
    with pytest.raises(asyncio.CancelledError):
        await coalescer.ask(3)
    assert coalescer.pending == 0


async def test_a_close_waits_for_what_is_answered_in_time_and_gives_up_the_rest():
    async def send(items: Sequence[int]) -> list[int]:
        if 2 in items:
            await asyncio.Event().wait()
        await asyncio.sleep(0)
        return list(items)

    quick, stuck = Coalescer(send), Coalescer(send)
    answered, given_up = asyncio.create_task(quick.ask(1)), asyncio.create_task(stuck.ask(2))
    await asyncio.sleep(0)
    await quick.close(within=30)
    await stuck.close(within=0.01)
    assert await answered == 1
    with pytest.raises(asyncio.CancelledError):
        await given_up


async def test_an_asker_that_is_cancelled_does_not_take_its_item_back():
    sent: list[int] = []

    async def send(items: Sequence[int]) -> list[int]:
        sent.extend(items)
        return list(items)

    coalescer = Coalescer(send)
    task = asyncio.create_task(coalescer.ask(1))
    await asyncio.sleep(0)
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    await coalescer.drained()
    assert sent == [1]


def test_the_back_off_doubles_up_to_its_most():
    backoff = Backoff(first=0.1, most=1.0)
    for failures, whole in ((1, 0.1), (2, 0.2), (3, 0.4), (4, 0.8), (5, 1.0), (5_000, 1.0)):
        assert all(whole / 2 <= backoff.after(failures) <= whole for _ in range(20))


async def test_a_call_runs_outside_of_every_askers_context():
    whose: contextvars.ContextVar[str] = contextvars.ContextVar("whose")
    seen: list[str] = []

    async def send(items: Sequence[int]) -> list[int]:
        seen.append(whose.get("nobody"))
        return list(items)

    coalescer = Coalescer(send)
    whose.set("an asker")
    await coalescer.ask(1)
    await coalescer.ask(2)
    assert seen == ["nobody", "nobody"]
