"""What a handler waits for, as it was asked; how the stored event is read back."""

from __future__ import annotations

import functools
import json
import logging
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError

from ultijobs import _json
from ultijobs._definitions import checks
from ultijobs._definitions.event import Event, event_key
from ultijobs._durations import Duration, parse, render
from ultijobs._log import emit
from ultijobs._queue.claims import ClaimedJob
from ultijobs._queue.events import Look
from ultijobs._queue.steps import StepKind, StepStatus, StepWrite
from ultijobs.errors import Invariant, JobTimeout, PayloadInvalid

__all__ = ["Wish", "wish_of"]


@dataclass(frozen=True, slots=True)
class Wish:
    """One call of `wait_for_event`, its arguments checked."""

    event: str
    match: str | None
    timeout: timedelta
    required: bool
    since_run: bool
    reader: TypeAdapter[Any]

    def record(self, job: ClaimedJob, key: str, place: int) -> StepWrite:
        """The record of the wait; what it has been waiting for before is replaced, its deadline stays."""
        return StepWrite(
            job_id=job.id,
            run_id=job.run_id,
            lease_no=job.lease_no,
            name=key,
            kind=StepKind.WAIT,
            status=StepStatus.WAITING,
            position=place,
            wake_in=self.timeout,
            event=self.event,
            match=self.match,
        )

    def look(self, job: ClaimedJob, key: str, again: timedelta | None) -> Look:
        return Look(job.id, job.run_id, job.lease_no, key, self.since_run, self.required, again)

    def received(self, output: str | None, step: str) -> Event[Any] | None:
        """The event of a completed record; None when its time was over. Raises `PayloadInvalid`."""
        if output is None or output == "null":
            return None
        stored = _json.decode(output)
        try:
            payload = self.reader.validate_json(json.dumps(stored["payload"], ensure_ascii=False))
        except ValidationError as error:
            first = error.errors(include_url=False, include_input=False)[0]
            path = "$" + "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in first["loc"])
            raise PayloadInvalid(
                f"the payload of the event {self.event!r} that step {step!r} received does not fit: "
                f"{path}: {first['msg']}",
                fix="make payload= say what is published",
                meta={"path": path, "step": step, "event": self.event},
            ) from error
        published_at = datetime.fromisoformat(stored["published_at"]).astimezone(UTC)
        return Event(UUID(stored["id"]), stored["name"], stored["key"], payload, published_at)

    def over(self, step: str, job: ClaimedJob) -> None:
        """The time is over without an event. Raises `JobTimeout` when one was required."""
        matching = "" if self.match is None else f" matching {self.match!r}"
        told = f"step {step!r} waited {render(self.timeout)} for the event {self.event!r}{matching}, which did not come"
        if self.required:
            raise JobTimeout(
                told, fix=f"ultijobs jobs retry {job.id}", meta={"step": step, "event": self.event, "match": self.match}
            )
        emit(
            logging.WARNING,
            "jobs.step.wait-timeout",
            told,
            job_id=job.id,
            run_id=job.run_id,
            name=job.name,
            attempt=job.attempt,
            lease_no=job.lease_no,
        )


def wish_of(
    step: str,
    event: str,
    payload: Any,
    *,
    match: str | None,
    timeout: Duration,
    required: bool,
    since: str,
) -> Wish:
    """Raises `Invariant` and `DurationInvalid` for arguments that make no sense, `PayloadInvalid` for no JSON type."""
    what = f"step {step!r:.100}"
    if not isinstance(required, bool):  # pyright: ignore[reportUnnecessaryIsInstance] - what callers really pass
        raise Invariant(f"{what}: required is {required!r:.100}", fix="set required= to True or False")
    return Wish(
        event=checks.name(event, f"{what}: event"),
        match=None if match is None else event_key(match, f"{what}: match"),
        timeout=parse(timeout, what=f"{what}: timeout"),
        required=required,
        since_run=checks.choice(since, f"{what}: since", ("run", "now")) == "run",
        reader=_reader(payload, what),
    )


def _reader(payload: Any, what: str) -> TypeAdapter[Any]:
    try:
        try:
            return _reader_of(payload)
        except TypeError:
            # A type that cannot be hashed.
            return _reader_of.__wrapped__(payload)
    except (PydanticSchemaGenerationError, PydanticUserError) as error:
        raise PayloadInvalid(
            f"{what}: payload={payload!r:.200} has no JSON form",
            fix="pass a pydantic model, a dataclass or a type of plain JSON values",
            meta={"path": "$"},
        ) from error


@functools.lru_cache(maxsize=512)
def _reader_of(payload: Any) -> TypeAdapter[Any]:
    if isinstance(payload, TypeAdapter):
        return payload  # pyright: ignore[reportUnknownVariableType] - of any type
    return TypeAdapter(payload)
