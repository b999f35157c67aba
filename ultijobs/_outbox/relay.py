"""The relay's life."""

from __future__ import annotations

from typing import Protocol

from ultijobs._definitions import checks
from ultijobs._durations import Duration, parse
from ultijobs.errors import NotImplementedYet

__all__ = ["Relay"]


class _Application(Protocol):
    @property
    def outbox(self) -> str | None: ...


class Relay:
    """Publishes staged rows in batches, every `interval`; a claimed row is another relay's after `claim_lease`."""

    def __init__(
        self,
        app: _Application,
        *,
        batch: int = 100,
        interval: Duration = "200ms",
        claim_lease: Duration = "30s",
        relay_id: str | None = None,
    ) -> None:
        self._app = app
        self._batch = checks.whole(batch, "Relay: batch", least=1, most=10_000)
        self._interval = parse(interval, what="Relay: interval", positive=True)
        self._claim_lease = parse(claim_lease, what="Relay: claim_lease", positive=True)
        self._relay_id = None if relay_id is None else checks.name(relay_id, "Relay: relay_id")

    async def run(self) -> None:
        """Runs until it is cancelled."""
        there = "no outbox" if self._app.outbox is None else "an outbox"
        raise NotImplementedYet(
            f"the relay of an application with {there} cannot run yet", fix="leave outbox= out: enqueue joins tx itself"
        )
