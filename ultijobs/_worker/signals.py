"""What a notification of the driver means to the parts of a worker; each is a hint, and may be missing."""

from __future__ import annotations

import logging
from datetime import timedelta

from ultijobs._log import emit
from ultijobs._queue.telling import Signal, SignalKind
from ultijobs._worker.claim import Claimer
from ultijobs._worker.flight import Roster
from ultijobs._worker.heartbeat import Heartbeat, Identity
from ultijobs._worker.keeper import LeaseKeeper
from ultijobs._worker.rounds import Rounds

__all__ = ["Signals"]


class Signals:
    """Hands each hint to the part that it concerns, and logs when hints stop and when they are back."""

    def __init__(
        self,
        identity: Identity,
        poll: timedelta,
        *,
        roster: Roster,
        claimer: Claimer,
        keeper: LeaseKeeper,
        rounds: Rounds,
        heartbeat: Heartbeat,
    ) -> None:
        self._worker_id = identity.worker_id
        self._queues = frozenset(identity.queues)
        self._poll = poll
        self._roster = roster
        self._claimer = claimer
        self._keeper = keeper
        self._rounds = rounds
        self._heartbeat = heartbeat

    def take(self, signal: Signal) -> None:
        if signal.kind is SignalKind.QUEUE:
            if signal.value in self._queues:
                self._claimer.hint()
        elif signal.kind is SignalKind.CANCEL:
            if any(str(flight.job.id) == signal.value for flight in self._roster.all()):
                self._keeper.renew_soon()
        elif signal.kind is SignalKind.EVENT:
            self._rounds.hint()
        elif signal.kind is SignalKind.WORKER:
            if signal.value == self._worker_id:
                self._heartbeat.hurry()
        else:
            self._listening(signal)
            # Hints may have been missed meanwhile.
            self._claimer.hint()
            self._rounds.hint()

    def _listening(self, signal: Signal) -> None:
        listening = signal.kind is SignalKind.BACK
        if listening != self._heartbeat.listening:
            off = f"no notifications ({signal.value}): polling every {self._poll.total_seconds():g} s instead"
            emit(
                logging.INFO if listening else logging.WARNING,
                "jobs.notifications.on" if listening else "jobs.notifications.off",
                "notifications are back" if listening else off,
                worker_id=self._worker_id,
            )
        self._heartbeat.listening = listening
