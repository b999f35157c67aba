"""Where an application's driver is open: on the loop of `async with`, or on a thread of its own for sync callers."""

from __future__ import annotations

import asyncio
import os
import threading
import weakref
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from typing import Any, TypeVar

from ultijobs._coalesce import Coalescer
from ultijobs._enqueue.portal import Portal, wait
from ultijobs._queue.driver import Driver
from ultijobs._queue.events import NewEvent
from ultijobs._queue.records import Enqueued, NewJob
from ultijobs._tx.connections import at_once
from ultijobs.errors import DriverUnavailable, Invariant, SchemaOutdated

__all__ = ["Opening", "refuse_a_running_loop"]

T = TypeVar("T")


class Opening:
    """Opens one driver in one place at a time, any number of times; the last to leave closes it.

    A fork is noticed by the process id: the child forgets the parent's loop, threads and connections, and opens anew.
    """

    def __init__(self, make: Callable[[], Driver]) -> None:
        self._make = make
        self._driver: Driver | None = None
        self._was_open = False
        self._inherited: list[object] = []
        self._begin()

    def _begin(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._sync_lock = threading.Lock()
        self._loop: asyncio.AbstractEventLoop | None = None
        self._gate = asyncio.Lock()
        self._holds = 0
        self._coalescer: Coalescer[NewJob, Enqueued] | None = None
        self._publishes: Coalescer[NewEvent, int] | None = None
        self._alone = False
        self._portal: Portal | None = None
        self._last_resort: weakref.finalize[..., Any] | None = None

    def _notice_fork(self) -> None:
        if self._pid != os.getpid():
            # Kept, not closed: its sockets and its loop's selector are the parent's.
            self._inherited.append((self._driver, self._loop, self._portal, self._coalescer, self._publishes))
            self._driver = None
            self._begin()

    @property
    def driver(self) -> Driver:
        """The driver, open or not; made at the first use in each process."""
        self._notice_fork()
        if self._driver is None:
            self._driver = self._make()
        return self._driver

    @property
    def closed(self) -> bool:
        """True when it was open and is not any more."""
        self._notice_fork()
        return self._was_open and self._coalescer is None

    @property
    def here(self) -> bool:
        """True when it is open on the running loop."""
        self._notice_fork()
        return self._coalescer is not None and self._loop is asyncio.get_running_loop()

    # -- async callers ---------------------------------------------------------------------------------
    async def enter(self, role: str = "app") -> None:
        """Opens the driver on the running loop, unless it is open there; `Invariant` when it is open elsewhere."""
        loop = asyncio.get_running_loop()
        while not self._hold(loop):
            await asyncio.to_thread(self._retire)
        try:
            async with self._gate:
                if self._coalescer is None:
                    await self._start(role)
        except BaseException:
            self._release()
            raise

    async def leave(self) -> None:
        """Closes the driver when nobody else holds it open; enqueues under way are stored first."""
        self._notice_fork()
        self._holds = max(0, self._holds - 1)
        async with self._gate:
            if self._holds or self._coalescer is None:
                return
            under_way = [each for each in (self._coalescer, self._publishes) if each is not None]
            self._coalescer = self._publishes = None
            try:
                for each in under_way:
                    await each.drained()
                    await each.close()
            finally:
                try:
                    await self.driver.close()
                finally:
                    self._vacate()

    async def _start(self, role: str) -> None:
        driver = self.driver
        await driver.open(role)
        # These speak of the store, so they are every asker's; any other error may be one row's.
        of_all = (DriverUnavailable, SchemaOutdated)
        self._coalescer = Coalescer(driver.enqueue, transient=of_all, lanes=2)
        # One lane: events are stored in the order in which they were published.
        self._publishes = Coalescer(partial(_publish, driver), limit=500, transient=of_all)
        self._was_open = True

    async def call(self, work: Callable[[Driver], Coroutine[Any, Any, T]]) -> T:
        """Runs `work` where the driver is open. Raises `Invariant` when it is not."""
        loop = self._home()
        if loop is None:
            raise Invariant("the application is not open", fix="enqueue inside `async with app:`")
        if loop is asyncio.get_running_loop():
            return await work(self.driver)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(work(self.driver), loop))

    async def with_tx(self, work: Callable[[Driver], Coroutine[Any, Any, T]]) -> T:
        """Runs `work` on the running loop, which the caller's connection belongs to. `Invariant` when not open."""
        if self._home() is None:
            raise Invariant("the application is not open", fix="enqueue inside `async with app:`")
        return await work(self.driver)

    def joinable(self, tx: object | None) -> object | None:
        """Of a caller's transaction, what the driver is given to join."""
        return tx

    async def store(self, job: NewJob) -> Enqueued:
        """Stores one row; rows of the same moment share a statement. Runs where the driver is open."""
        coalescer = self._coalescer
        if coalescer is None or self._alone or coalescer.pending:
            if coalescer is None:
                raise Invariant("the application was closed meanwhile", fix="enqueue inside `async with app:`")
            return await coalescer.ask(job)
        self._alone = True
        try:
            return (await self.driver.enqueue((job,)))[0]
        finally:
            self._alone = False

    async def publish(self, event: NewEvent) -> int:
        """Stores one event; events of the same moment share a statement. Runs where the driver is open.

        Answers how many runs were made due: for all events of a statement together, to the first of them.
        """
        if self._publishes is None:
            raise Invariant("the application was closed meanwhile", fix="publish inside `async with app:`")
        return await self._publishes.ask(event)

    # -- sync callers ----------------------------------------------------------------------------------
    def call_sync(self, work: Callable[[Driver], Coroutine[Any, Any, T]], *, call: str) -> T:
        """Runs `work` where the driver is open, and opens it on a thread of its own when it is not.

        Raises `Invariant` on a thread whose loop is running.
        """
        refuse_a_running_loop(call)
        loop = self._home_for_sync()
        return wait(work(self.driver), loop)

    def with_tx_sync(self, work: Callable[[Driver], Coroutine[Any, Any, T]], *, call: str, opens: bool = True) -> T:
        """Runs `work` on the caller's own thread, which its connection belongs to; it opens as `call_sync` does.

        Without `opens` the driver is left as it is: `work` has no use for its connections.
        """
        refuse_a_running_loop(call)
        if opens:
            self._home_for_sync()
        return at_once(work(self.driver))

    def enter_sync(self) -> None:
        refuse_a_running_loop("with app")
        wait(self.enter(), self._home_for_sync())

    def leave_sync(self) -> None:
        loop = self._home()
        if loop is not None:
            wait(self.leave(), loop)
        if self._portal is not None and self._holds == 1:
            self._retire()

    def _home_for_sync(self) -> asyncio.AbstractEventLoop:
        self._notice_fork()
        with self._sync_lock:
            loop = self._home()
            if loop is None:
                portal = Portal()
                try:
                    portal.call(self.enter())
                except BaseException:
                    portal.stop()
                    raise
                self._portal = portal
                self._last_resort = weakref.finalize(self, _shut, self._pid, portal, self.driver)
                loop = portal.loop
        return loop

    def _retire(self) -> None:
        """Closes the driver on the thread of its own, and ends that thread."""
        with self._sync_lock:
            portal, self._portal = self._portal, None
            if portal is not None:
                if self._last_resort is not None:
                    self._last_resort.detach()
                portal.stop(self.leave())

    # -- who holds it ----------------------------------------------------------------------------------
    def _home(self) -> asyncio.AbstractEventLoop | None:
        self._notice_fork()
        if self._coalescer is None or self._loop is None or self._loop.is_closed():
            return None
        if not self._loop.is_running():
            raise Invariant("the application is open on a loop that is not running", fix="close it, or run its loop")
        return self._loop

    def _hold(self, loop: asyncio.AbstractEventLoop) -> bool:
        """False when the thread of its own holds it, for nobody, and has to give it up first."""
        self._notice_fork()
        with self._lock:
            if self._loop is None or self._loop.is_closed():
                self._loop, self._gate, self._holds = loop, asyncio.Lock(), 0
                self._coalescer = self._publishes = None
            elif self._loop is not loop:
                if self._portal is not None and self._holds == 1:
                    return False
                raise Invariant(
                    "the application is open on another loop", fix="use one App a loop, or call enqueue_sync"
                )
            self._holds += 1
            return True

    def _release(self) -> None:
        with self._lock:
            self._holds = max(0, self._holds - 1)
        self._vacate()

    def _vacate(self) -> None:
        """Leaves the place to another loop, unless somebody is about to open it here."""
        with self._lock:
            if not self._holds and self._coalescer is None:
                self._loop = None


async def _publish(driver: Driver, events: Sequence[NewEvent]) -> list[int]:
    woken = await driver.events.publish(events)
    return [woken, *([0] * (len(events) - 1))]


def _shut(pid: int, portal: Portal, driver: Driver) -> None:
    # After a fork the thread belongs to the parent, and so do the connections.
    if os.getpid() == pid:
        portal.stop(driver.close())


def refuse_a_running_loop(call: str) -> None:
    """Raises `Invariant` on a thread whose loop `call` would block."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return
    other = "async with app" if call == "with app" else f"await {call.removesuffix('_sync')}(…)"
    raise Invariant(f"{call} would block the running event loop of this thread", fix=f"{other} instead")
