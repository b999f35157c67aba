"""The outbox of an application: rows are staged on the caller's connection, if that is on the outbox's database.

Which one that is, is asked once in a process, on a connection for the purpose; each row is compared as it is staged.
"""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Awaitable, Callable, Sequence
from functools import cached_property
from typing import Final, TypeVar

from ultijobs._connect import driver_for
from ultijobs._enqueue.portal import Portal
from ultijobs._queue.driver import Driver
from ultijobs._queue.events import NewEvent
from ultijobs._queue.outbox import OutboxStore
from ultijobs._queue.records import Enqueued, NewJob
from ultijobs._tx.kinds import SYNC, kind_of
from ultijobs.errors import OutboxMisplaced, RightsMissing, SchemaOutdated

__all__ = ["Staging"]

T = TypeVar("T")


class Staging:
    """Its driver is made at the first use, so that an application which stages nothing imports none for it.

    A sync transaction is waited for on the caller's own thread, like all that is done on it.
    """

    def __init__(self, url: str, schema: str) -> None:
        self._url: Final = url
        self._schema: Final = schema
        self._known: str | None = None
        self._pid = os.getpid()
        self._turn = threading.Lock()

    @cached_property
    def _driver(self) -> Driver:
        return driver_for(self._url, self._schema)

    async def stage(self, jobs: Sequence[NewJob], *, tx: object) -> list[Enqueued]:
        """See `OutboxStore.stage`. Raises `DriverUnavailable` and `SchemaOutdated` of an outbox not known yet."""
        return await self._placed(tx, lambda store, place: store.stage(jobs, tx=tx, expected=place))

    async def stage_events(self, events: Sequence[NewEvent], *, tx: object) -> None:
        """As `stage`."""
        await self._placed(tx, lambda store, place: store.stage_events(events, tx=tx, expected=place))

    async def _placed(self, tx: object, work: Callable[[OutboxStore, str], Awaitable[T]]) -> T:
        place = await self._place(tx, None)
        while True:
            try:
                return await work(self._driver.outbox, place)
            except OutboxMisplaced as refusal:
                # The outbox may have been restored, or made anew, since it was asked.
                now = await self._place(tx, place)
                if now == place:
                    raise self._misplaced(refusal) from None
                place = now

    async def _place(self, tx: object, refused: str | None) -> str:
        """The identity of the outbox; asked when it is not known, or is no other than the one that was `refused`."""
        if self._known is not None and self._known != refused:
            return self._known
        if kind_of(tx) in SYNC:
            return self._ask(refused)
        return await asyncio.to_thread(self._ask, refused)

    def _ask(self, refused: str | None) -> str:
        if self._pid != os.getpid():
            # A thread of the parent may have held it at the fork.
            self._pid, self._turn = os.getpid(), threading.Lock()
        with self._turn:
            if self._known is None or self._known == refused:
                portal = Portal()
                try:
                    self._known = portal.call(self._read())
                finally:
                    portal.stop()
            return self._known

    async def _read(self) -> str:
        driver = self._driver
        try:
            await driver.open()
        except SchemaOutdated as refusal:
            fix = refusal.fix if isinstance(refusal, RightsMissing) else f"ultijobs migrate --database-url {driver.url}"
            raise type(refusal)(f"the outbox {driver.url}: {refusal.cause}", fix=fix, meta=refusal.meta) from refusal
        try:
            return await driver.outbox.identity()
        finally:
            await driver.close()

    def _misplaced(self, refusal: OutboxMisplaced) -> OutboxMisplaced:
        url, schema = self._driver.url, self._schema
        return OutboxMisplaced(
            f"tx is on the database {refusal.meta['database']}, and the outbox is schema {schema} of {url}: "
            "no relay would find what is staged there",
            fix=f"pass a connection to {url} as tx, or tx=False to ask the queue at once",
            meta={**refusal.meta, "outbox": url},
        )
