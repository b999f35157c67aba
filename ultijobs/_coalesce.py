"""Puts what many tasks ask at the same moment into one call, and gives each its own answer.

Nobody waits for company: an item goes out with the next turn of the loop, or, while every lane is busy, with the call
that follows. Batches grow by themselves under load.
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import random
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

__all__ = ["Backoff", "Coalescer"]

T = TypeVar("T")
R = TypeVar("R")

Done = Callable[[R | BaseException], None]


@dataclass(frozen=True, slots=True)
class Backoff:
    """Seconds between tries of a failed call: doubling from `first` to `most`, each shortened by up to half."""

    first: float = 0.05
    most: float = 1.0

    def after(self, failures: int) -> float:
        whole = min(self.most, self.first * 2.0 ** min(failures - 1, 32))
        return whole * random.uniform(0.5, 1.0)  # noqa: S311 - spreads processes, guards nothing


class Coalescer(Generic[T, R]):
    """Batches calls of `send`, at most `lanes` at a time with at most `limit` items each.

    `send` answers in the order of its items. An error of a class in `transient` is tried again by `backoff` for the
    items that are still `useful`, the others get the error; `backoff=None` gives it to all of them at once. Any other
    error speaks of the data: the batch is split in halves until the item that causes it stands alone and gets it.
    """

    def __init__(
        self,
        send: Callable[[Sequence[T]], Awaitable[Sequence[R]]],
        *,
        limit: int = 2_000,
        lanes: int = 1,
        transient: tuple[type[Exception], ...] = (),
        backoff: Backoff | None = None,
        useful: Callable[[T], bool] | None = None,
        on_trouble: Callable[[Exception], None] | None = None,
    ) -> None:
        self._send = send
        self._limit = limit
        self._free = lanes
        self._transient = transient
        self._backoff = backoff
        self._useful = useful
        self._on_trouble = on_trouble
        self._queue: deque[tuple[T, Done[R]]] = deque()
        self._kicked = False
        self._flights: set[asyncio.Task[None]] = set()
        self._pending = 0
        self._idle: asyncio.Event | None = None
        self._closed = False
        # A flight is nobody's: made in an asker's context it would look like a task of that asker.
        self._outside = contextvars.Context()

    @property
    def pending(self) -> int:
        """Items without an answer yet, those in flight included."""
        return self._pending

    def put(self, item: T, done: Done[R]) -> None:
        """Sends `item`; `done` is called once, on the loop, with its answer or its exception, and must not raise."""
        if self._closed:
            done(asyncio.CancelledError())
            return
        self._queue.append((item, done))
        self._pending += 1
        if self._free and not self._kicked:
            self._kicked = True
            asyncio.get_running_loop().call_soon(self._kick, context=self._outside)

    async def ask(self, item: T) -> R:
        """The answer to `item`. An asker that is cancelled does not take its item back."""
        future: asyncio.Future[R] = asyncio.get_running_loop().create_future()

        def done(answer: R | BaseException) -> None:
            if future.done():
                return
            if isinstance(answer, BaseException):
                future.set_exception(answer)
            else:
                future.set_result(answer)

        self.put(item, done)
        return await future

    async def drained(self) -> None:
        """Returns when nothing is pending."""
        if self._pending:
            if self._idle is None:
                self._idle = asyncio.Event()
            self._idle.clear()
            await self._idle.wait()

    async def close(self, *, within: float = 0.0) -> None:
        """Gives up what is not answered `within` so many seconds: each such item gets a `CancelledError`."""
        if within:
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(within):
                    await self.drained()
        self._closed = True
        flights = list(self._flights)
        for flight in flights:
            flight.cancel()
        await asyncio.gather(*flights, return_exceptions=True)
        self._give(self._take(len(self._queue)), asyncio.CancelledError())

    def _kick(self) -> None:
        self._kicked = False
        while self._queue and self._free:
            self._free -= 1
            flight = asyncio.get_running_loop().create_task(self._fly(self._take(self._limit)))
            self._flights.add(flight)
            flight.add_done_callback(self._landed)

    def _take(self, most: int) -> list[tuple[T, Done[R]]]:
        queue = self._queue
        if len(queue) <= most:
            batch = list(queue)
            queue.clear()
            return batch
        return [queue.popleft() for _ in range(most)]

    def _landed(self, flight: asyncio.Task[None]) -> None:
        self._flights.discard(flight)
        self._free += 1
        if self._queue and not self._kicked and not self._closed:
            # One turn later, so that those who were just answered and ask again ride along.
            self._kicked = True
            flight.get_loop().call_soon(self._kick, context=self._outside)

    async def _fly(self, batch: list[tuple[T, Done[R]]]) -> None:
        open_batches = [batch]
        failures = 0
        try:
            while open_batches:
                batch = open_batches[-1]
                try:
                    answers = await self._send([item for item, _ in batch])
                    if len(answers) != len(batch):
                        raise RuntimeError(f"{len(answers)} answers to {len(batch)} items")  # noqa: TRY301 - told to the batch
                except self._transient as error:
                    failures += 1
                    open_batches[-1] = await self._again(batch, error, failures)
                    if not open_batches[-1]:
                        open_batches.pop()
                except Exception as error:  # noqa: BLE001 - whatever it is, it belongs to one of the items
                    open_batches.pop()
                    open_batches += self._halves(batch, error)
                else:
                    failures = 0
                    open_batches.pop()
                    for (_, done), answer in zip(batch, answers, strict=True):
                        self._pending -= 1
                        done(answer)
        finally:
            for rest in open_batches:
                self._give(rest, asyncio.CancelledError())
            if not self._pending and self._idle is not None:
                self._idle.set()

    async def _again(self, batch: list[tuple[T, Done[R]]], error: Exception, failures: int) -> list[tuple[T, Done[R]]]:
        if self._on_trouble is not None:
            self._on_trouble(error)
        if self._backoff is None:
            self._give(batch, error)
            return []
        await asyncio.sleep(self._backoff.after(failures))
        if self._useful is None:
            return batch
        kept: list[tuple[T, Done[R]]] = []
        late: list[tuple[T, Done[R]]] = []
        for entry in batch:
            (kept if self._useful(entry[0]) else late).append(entry)
        self._give(late, error)
        return kept

    def _halves(self, batch: list[tuple[T, Done[R]]], error: Exception) -> list[list[tuple[T, Done[R]]]]:
        if len(batch) == 1:
            self._give(batch, error)
            return []
        middle = len(batch) // 2
        return [batch[middle:], batch[:middle]]

    def _give(self, batch: Sequence[tuple[T, Done[R]]], error: BaseException) -> None:
        self._pending -= len(batch)
        for _, done in batch:
            done(error)
        if not self._pending and self._idle is not None:
            self._idle.set()
