"""One round of renewals: all leases in flight in one statement, on a second connection when the first is silent."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Final

from ultijobs._queue.claims import Beat, BeatAnswer
from ultijobs._queue.driver import LeaseLink
from ultijobs._worker.fate import Fates
from ultijobs._worker.flight import Flight, Phase, Roster

__all__ = ["Renewal", "margin_of"]

OPENS_WITHIN: Final = 10.0
CLOSES_WITHIN: Final = 0.5


def margin_of(lease: timedelta) -> float:
    """How long before its end a lease is given up, in seconds: a fifteenth of it, from 50 ms to 2 s."""
    return min(2.0, max(0.05, lease.total_seconds() / 15))


class Renewal:
    """A lease ends, for this process, one lease after the last landed renewal was *sent*, less a margin."""

    def __init__(
        self,
        make_link: Callable[[], LeaseLink],
        lease: timedelta,
        roster: Roster,
        fates: Fates,
        opened: Callable[[], None],
    ) -> None:
        """`opened` is called whenever a connection stands."""
        self._make_link = make_link
        self._lease = lease
        self._seconds = lease.total_seconds()
        self._good_for = self._seconds - margin_of(lease)
        self._roster = roster
        self._fates = fates
        self._opened = opened

    async def land(self, link: LeaseLink | None, silent: Callable[[], None]) -> LeaseLink:
        """Renews on `link`, or on a new one, and answers the one to use next. `link` is closed when it fails.

        After half a lease without an answer `silent` is called and a rival asks on a connection of its own: the first
        may be dead, or wait for a lock with all the others. The first that lands wins, the other is closed.
        """
        tries = {asyncio.create_task(self._try(link))}
        try:
            done, _ = await asyncio.wait(tries, timeout=OPENS_WITHIN if link is None else self._seconds / 2)
            if not done and link is not None:
                silent()
                tries.add(asyncio.create_task(self._try(None)))
            winner = await _first_of(tries)
            await _ended(tries, but=winner)
        except BaseException:
            # Whoever stops the keeper may do so between an answer and its return: nobody holds the connection then.
            await _ended(tries, but=None)
            raise
        return winner

    async def _try(self, link: LeaseLink | None) -> LeaseLink:
        used = self._make_link() if link is None else link
        try:
            if link is None:
                await used.open()
                self._opened()
            await self._renew(used)
        except BaseException:
            await closed(used)
            raise
        return used

    async def _renew(self, link: LeaseLink) -> None:
        sent = time.monotonic()
        flights: list[Flight] = []
        beats: list[Beat] = []
        for flight in self._roster.all():
            settling = flight.phase is Phase.SETTLING and flight.ends - sent < self._seconds / 2
            beat = flight.body.beat(sent) if settling or flight.phase is Phase.HELD else None
            if beat is not None:
                flights.append(flight)
                beats.append(beat)
        if not beats:
            return
        answers = await link.renew(beats, self._lease)
        for flight, answer in zip(flights, answers, strict=True):
            if answer is BeatAnswer.HELD:
                self._roster.renewed(flight, sent + self._good_for)
            elif answer is BeatAnswer.CANCELLED:
                self._fates.cancelled(flight)
            else:
                self._fates.lost(flight, "the database says that the claim is not ours any more")


async def _first_of(tries: set[asyncio.Task[LeaseLink]]) -> LeaseLink:
    """What the first that succeeds answers; raises what the last one raised when none does."""
    error: Exception = TimeoutError(f"no answer within {OPENS_WITHIN:g} s")
    with contextlib.suppress(TimeoutError):
        async with asyncio.timeout(OPENS_WITHIN):
            for each in asyncio.as_completed(tries):
                try:
                    return await each
                except Exception as failure:  # noqa: BLE001 - the other one may still succeed
                    error = failure
    raise error


async def _ended(tries: set[asyncio.Task[LeaseLink]], but: LeaseLink | None) -> None:
    """Ends all of them and closes their connections, but one."""
    for each in tries:
        each.cancel()
    for ended in await asyncio.gather(*tries, return_exceptions=True):
        if not isinstance(ended, BaseException) and ended is not but:
            await closed(ended)


async def closed(link: LeaseLink) -> None:
    """Closes without waiting long, whatever state it is in."""
    with contextlib.suppress(Exception):
        async with asyncio.timeout(CLOSES_WITHIN):
            await link.close()
