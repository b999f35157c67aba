"""Publishing an event: checked where the caller is, stored where the driver is open or on the caller's connection.

With an outbox the caller's connection is another database's, and the event is staged there.
"""

from __future__ import annotations

import logging
import weakref
from dataclasses import is_dataclass
from typing import Any, Final, Protocol

from pydantic import BaseModel, TypeAdapter

from ultijobs._definitions.bounds import Sizes
from ultijobs._definitions.event import new_event
from ultijobs._durations import Duration
from ultijobs._enqueue.opening import Opening
from ultijobs._enqueue.payload import refuse_loss
from ultijobs._enqueue.staging import Staging
from ultijobs._enqueue.transactions import joined
from ultijobs._log import emit
from ultijobs._metrics import series
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.driver import Driver
from ultijobs._queue.events import NewEvent
from ultijobs._tx.kinds import SYNC, kind_of
from ultijobs.errors import PayloadInvalid

__all__ = ["Publisher"]


class Application(Protocol):
    @property
    def sizes(self) -> Sizes: ...
    @property
    def metrics(self) -> Metrics: ...


class Publisher:
    """Publishes for one application."""

    def __init__(self, application: Application, opening: Opening, outbox: Staging | None) -> None:
        # Weak, since the application owns this: nothing but its users keeps it alive.
        self._application: Final = weakref.ref(application)
        self._limit: Final = application.sizes.input
        self._outbox: Final = outbox
        self._metrics: Final = application.metrics
        self._opening: Final = opening

    async def publish(self, name: str, payload: object, key: str | None, ttl: Duration, tx: Any) -> None:
        event, found = self._begin(name, payload, key, ttl, tx, sync=False)
        if found is None:
            self._tell(event, await self._opening.call(lambda _: self._opening.publish(event)))
        else:
            await self._opening.with_tx(lambda driver: self._joining(driver, event, found))

    def publish_sync(self, name: str, payload: object, key: str | None, ttl: Duration, tx: Any) -> None:
        event, found = self._begin(name, payload, key, ttl, tx, sync=True)
        call = "publish_sync"
        if found is None:
            self._tell(event, self._opening.call_sync(lambda _: self._opening.publish(event), call=call))
        elif kind_of(found) in SYNC:
            self._opening.with_tx_sync(
                lambda driver: self._joining(driver, event, found), call=call, opens=self._outbox is None
            )
        else:
            self._opening.call_sync(lambda driver: self._joining(driver, event, found), call=call)

    def _begin(
        self, name: str, payload: object, key: str | None, ttl: Duration, tx: Any, *, sync: bool
    ) -> tuple[NewEvent, object | None]:
        call = "publish_sync" if sync else "publish"
        event = new_event(name, _plain(payload, f"{call}: the payload"), key, ttl, limit=self._limit, call=call)
        found = joined(self._application(), tx, sync=sync, required=False, call=call)
        return event, self._opening.joinable(found)

    async def _joining(self, driver: Driver, event: NewEvent, tx: object) -> None:
        if self._outbox is not None:
            await self._outbox.stage_events([event], tx=tx)
        else:
            self._tell(event, await driver.events.publish([event], tx=tx))

    def _tell(self, event: NewEvent, woken: int) -> None:
        self._metrics.add(series.EVENTS_PUBLISHED)
        self._metrics.add(series.EVENTS_DELIVERED, by=woken)
        keyed = "" if event.key is None else f" under the key {event.key}"
        emit(logging.DEBUG, "jobs.event.published", f"published {event.name}{keyed}")


def _plain(payload: Any, what: str) -> Any:
    """A model or a dataclass as plain JSON values, anything else as it is."""
    if not isinstance(payload, BaseModel) and (isinstance(payload, type) or not is_dataclass(payload)):
        return payload
    try:
        adapter: TypeAdapter[Any] = TypeAdapter(type(payload))
        refuse_loss(adapter.dump_python(payload, round_trip=True, warnings=False), what)
        return adapter.dump_python(payload, mode="json", round_trip=True, warnings=False)
    except (ValueError, RecursionError, TypeError) as error:
        reason = str(error).partition("\n")[0]
        raise PayloadInvalid(f"{what} cannot be stored: {reason}", meta={"path": "$"}) from error
