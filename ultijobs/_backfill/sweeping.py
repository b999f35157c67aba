"""A pass over a source: page after page, a mark after each, and at the end the count, which decides."""

from __future__ import annotations

import logging
import time
from typing import TYPE_CHECKING, Any, Final

from ultijobs._backfill.counting import counted
from ultijobs._backfill.pacing import Pacer
from ultijobs._backfill.page import Page
from ultijobs._backfill.patience import patiently
from ultijobs._backfill.reading import Reader
from ultijobs._execution.host import Host
from ultijobs._log import emit
from ultijobs._metrics import series
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.backfills import BackfillStore, PassMark, PassRow, PassStart
from ultijobs._steps.context import Context
from ultijobs.errors import BackfillStalled, Draining, JobLeaseLost

if TYPE_CHECKING:
    from ultijobs._definitions.backfill import BackfillHandle

__all__ = ["Sweep"]

ENDED: Final = "null"
"""The cursor of a source that was read to its end."""
MOST_ANEW: Final = 5
"""How often the source is begun anew for rows that `count()` still finds."""
RECOUNT_EVERY: Final = 30.0
"""Seconds."""
COUNT_SHARE: Final = 0.02
"""The share of the time that counting may take meanwhile."""
READ_WITHIN: Final = 60.0
"""Seconds that a page waits for a database that is away."""


class Sweep:
    """The rest of one pass, from where its line in the ledger says."""

    def __init__(
        self,
        handle: BackfillHandle[Any],
        ctx: Context[Any],
        start: PassStart,
        opened: PassRow,
        store: BackfillStore,
        reader: Reader,
        pacer: Pacer,
        metrics: Metrics,
        host: Host,
    ) -> None:
        self._metrics = metrics
        self._counted = opened.rows
        self._handle = handle
        self._ctx = ctx
        self._start = start
        self._store = store
        self._reader = reader
        self._pacer = pacer
        self._host = host
        self._cursor = opened.cursor
        self._rows = opened.rows
        self._batches = opened.batches
        self._sweep = opened.sweep
        self._to = opened.in_hand_to if reader.keyed else None
        """Where the page ends that was cut off, until all of it is handled."""
        self._in_hand = 0 if self._to is None else opened.in_hand
        """How many of its rows are not counted yet."""
        self._last: tuple[str | None, str | None, Page] | None = None
        self._count_at = 0.0

    async def run(self) -> int | None:
        """Returns when the source is done: what is left then, None without a `count`.

        Rows that came behind the cursor are found by beginning anew, a few times. Raises `BackfillStalled` when
        `count()` goes on finding rows that the source does not have, or that come again however often they are handled.
        """
        await self._foresee()
        before: int | None = None
        anew = 0
        while True:
            found = await self._to_the_end()
            if self._handle.count is None:
                return None
            left = await counted(self._handle.count, f"backfill {self._handle.name}")
            if not left:
                return left
            await self._mark(left)
            same = found > 0 and await self._comes_again()
            if anew == MOST_ANEW or (same and before is not None and left >= before):
                if same or not found:
                    raise self._stalled(left, same=same)
                self._say("jobs.backfill.left-behind", f"{left} rows came while it swept; it has handled all before")
                return left
            before = left
            self._cursor, self._last = None, None
            anew += 1
            self._sweep += 1
            await self._mark(left)

    async def _to_the_end(self) -> int:
        """How many rows were found and handled on the way."""
        found = 0
        while self._cursor != ENDED:
            self._leave_in_time()
            await self._pacer.turn()
            self._leave_in_time()
            page = await self._read(self._cursor, self._to)
            if page.rows:
                if self._to is None and page.last is not None:
                    await self._take(len(page.rows), page.last)
                await self._handle.fn(page.rows, self._ctx)
                found += len(page.rows)
                self._last = (self._cursor, self._to, page)
            self._go_behind(page)
            await self._mark(await self._recount() if self._cursor != ENDED else None)
        return found

    def _go_behind(self, page: Page) -> None:
        """Counts the page. One that was cut off counts whole: what does not come again of it has been handled."""
        rows, to = len(page.rows), self._to
        self._cursor = ENDED if page.next is None else page.next
        self._batches += bool(rows or to)
        if to is None:
            self._rows += rows
        elif page.next is None or page.last == to:
            self._rows += max(rows, self._in_hand)
            self._cursor, self._to, self._in_hand = to, None, 0
        else:
            # The pages are smaller than they were.
            self._rows += rows
            self._in_hand = max(0, self._in_hand - rows)

    def _leave_in_time(self) -> None:
        """Between two pages nothing is lost: another worker goes on here, and this one need not wait for its grace."""
        if self._host.winding_down:
            raise Draining(f"backfill {self._handle.name} is handed back between two pages: its worker takes no more")

    async def _read(self, cursor: str | None, to: str | None) -> Page:
        return await patiently(lambda: self._reader.read(cursor, to), within=READ_WITHIN)

    async def _take(self, rows: int, last: str) -> None:
        if not await patiently(lambda: self._store.take(self._start, rows, last)):
            raise self._lost()

    async def _comes_again(self) -> bool:
        """True when the rows of the last page are still rows of the source, although they were handled."""
        if self._last is None:
            return False
        cursor, to, page = self._last
        return page.again(await self._read(cursor, to))

    async def _mark(self, remaining: int | None) -> None:
        reason = self._ctx.signal.reason
        if reason is not None and not isinstance(reason, Draining):
            raise reason
        mark = PassMark(
            run_id=self._start.run_id,
            job_id=self._start.job_id,
            lease_no=self._start.lease_no,
            cursor=self._cursor,
            rows=self._rows,
            batches=self._batches,
            sweep=self._sweep,
            remaining=remaining,
            in_hand=self._in_hand,
            in_hand_to=self._to,
        )
        if not await patiently(lambda: self._store.mark(mark)):
            raise self._lost()
        self._metrics.add(series.BACKFILL_ROWS, self._handle.name, by=mark.rows - self._counted)
        self._counted = mark.rows
        if remaining is not None:
            self._ctx.progress(self._rows, self._rows + remaining, "rows")
        elif self._ctx.last_progress is None or self._ctx.last_progress.message == "rows":
            known = self._ctx.last_progress
            self._ctx.progress(self._rows, None if known is None else known.total, "rows")

    def _lost(self) -> JobLeaseLost:
        return JobLeaseLost(f"the claim {self._start.lease_no} of backfill {self._handle.name} is not held any more")

    async def _foresee(self) -> None:
        """Counts what is ahead, for those who watch; a count that fails now may still answer at the end."""
        ahead = await self._recount()
        if ahead is not None:
            await self._mark(ahead)

    async def _recount(self) -> int | None:
        began = time.monotonic()
        if self._handle.count is None or began < self._count_at:
            return None
        try:
            return await counted(self._handle.count, f"backfill {self._handle.name}")
        except Exception as error:  # noqa: BLE001 - only a display; the last count must answer
            self._say("jobs.backfill.count-failed", f"count() does not answer: {type(error).__name__}: {error}")
            return None
        finally:
            took = time.monotonic() - began
            self._count_at = began + max(RECOUNT_EVERY, took / COUNT_SHARE)

    def _stalled(self, left: int, *, same: bool) -> BackfillStalled:
        why = "the same rows come again after they were handled" if same else "its source has none of them"
        return BackfillStalled(
            f"backfill {self._handle.name}: count() still finds {left} rows, and {why}; a retry cannot change that",
            meta={"remaining": left},
        )

    def _say(self, event: str, message: str) -> None:
        emit(
            logging.WARNING,
            event,
            f"backfill {self._handle.name}: {message}",
            job_id=self._ctx.job_id,
            run_id=self._ctx.run_id,
            name=self._handle.name,
            attempt=self._ctx.attempt,
        )
