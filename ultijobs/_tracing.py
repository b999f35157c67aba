"""OpenTelemetry, for applications that use it: spans, and the W3C trace parent that links a job to its enqueue.

An application that has not imported `opentelemetry.trace` has no span to go on from; then nothing here costs anything.
"""

from __future__ import annotations

import contextlib
import re
import sys
from collections.abc import Generator, Mapping
from contextlib import AbstractContextManager
from typing import Any, Final, Protocol, TypeAlias
from uuid import UUID

__all__ = ["Consuming", "Job", "consuming", "produced", "producing", "stepping", "traceparent"]

Attributes: TypeAlias = Mapping[str, str | int]

_NOTHING: Final = contextlib.nullcontext()
_PARENT: Final = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})")
_SYSTEM: Final = {"messaging.system": "ultijobs"}


class Job(Protocol):
    """What a span says of the job that it runs."""

    @property
    def id(self) -> UUID: ...
    @property
    def run_id(self) -> UUID: ...
    @property
    def name(self) -> str: ...
    @property
    def queue(self) -> str: ...
    @property
    def attempt(self) -> int: ...
    @property
    def enqueued_by(self) -> str | None: ...
    @property
    def traceparent(self) -> str | None: ...


def traceparent() -> str | None:
    """The current span as a W3C trace parent; None without a valid one."""
    api = _api()
    if api is None:
        return None
    here = api.get_current_span().get_span_context()
    if not here.is_valid:
        return None
    return f"00-{here.trace_id:032x}-{here.span_id:016x}-{int(here.trace_flags):02x}"


def producing(what: str, name: str, queue: str | None = None) -> AbstractContextManager[Any]:
    """A span of something that asks for jobs, current in the block; an exception out of it is its error."""
    api = _api()
    if api is None:
        return _NOTHING
    attributes = {**_SYSTEM, "messaging.operation.type": "send", "job.name": name}
    if queue is not None:
        attributes |= {"job.queue": queue, "messaging.destination.name": queue}
    return _span(api, what + name, api.SpanKind.PRODUCER, attributes)


def produced(span: Any, id: UUID, *, deduped: bool, count: int) -> None:
    """Says on a span of `producing` which job, or how many, came of it."""
    if span is not None:
        if count == 1:
            span.set_attributes({"job.id": str(id), "job.deduped": deduped})
        else:
            span.set_attribute("messaging.batch.message_count", count)


def stepping(name: str) -> AbstractContextManager[Any]:
    """A span of a step's function, current in the block."""
    api = _api()
    return _NOTHING if api is None else _span(api, f"step {name}", api.SpanKind.INTERNAL, {"job.step": name})


class Consuming:
    """The span of one attempt. `end` is called once, whatever the attempt came to."""

    def __init__(self, api: Any, span: Any) -> None:
        self._api: Final = api
        self._span: Final = span

    @contextlib.contextmanager
    def current(self) -> Generator[None]:
        """Makes it the current span of the block, apart from whatever span the worker was started in."""
        from opentelemetry import context  # noqa: PLC0415 - it is there when the API is

        token = context.attach(self._api.set_span_in_context(self._span, context.Context()))
        try:
            yield
        finally:
            context.detach(token)

    def end(self, outcome: str, error: BaseException | None = None, code: str | None = None) -> None:
        """With an `error` the status says so."""
        self._span.set_attribute("job.outcome", outcome)
        if code is not None:
            self._span.set_attribute("job.error_code", code)
        if error is not None:
            _fail(self._api, self._span, error)
        self._span.end()


def consuming(job: Job) -> Consuming | None:
    """Begins the span of an attempt, as a child of the stored trace parent; None where nobody traces."""
    api = _api()
    if api is None:
        return None
    from opentelemetry.context import Context  # noqa: PLC0415 - it is there when the API is

    context = Context()
    given = None if job.traceparent is None else _PARENT.fullmatch(job.traceparent)
    if given is not None:
        trace_id, span_id, flags = (int(part, 16) for part in given.groups())
        remote = api.SpanContext(trace_id, span_id, is_remote=True, trace_flags=api.TraceFlags(flags))
        if remote.is_valid:
            context = api.set_span_in_context(api.NonRecordingSpan(remote), context)
    attributes: dict[str, str | int] = {
        **_SYSTEM,
        "messaging.operation.type": "process",
        "messaging.destination.name": job.queue,
        "job.id": str(job.id),
        "job.run_id": str(job.run_id),
        "job.name": job.name,
        "job.queue": job.queue,
        "job.attempt": job.attempt,
    }
    if job.enqueued_by is not None:
        attributes["job.enqueued_by"] = job.enqueued_by
    span = _tracer(api).start_span(f"job.{job.name}", context, kind=api.SpanKind.CONSUMER, attributes=attributes)
    return Consuming(api, span)


def _api() -> Any:
    return sys.modules.get("opentelemetry.trace")


@contextlib.contextmanager
def _span(api: Any, name: str, kind: Any, attributes: Attributes) -> Generator[Any]:
    span = _tracer(api).start_span(name, kind=kind, attributes=attributes)
    with api.use_span(span, end_on_exit=True, record_exception=False, set_status_on_exception=False):
        try:
            yield span
        except Exception as error:
            _fail(api, span, error)
            raise


def _fail(api: Any, span: Any, error: BaseException) -> None:
    # An exception whose text cannot be had is the application's; it must not become another one here.
    with contextlib.suppress(Exception):
        span.record_exception(error)
    span.set_status(api.Status(api.StatusCode.ERROR, type(error).__qualname__))


def _tracer(api: Any) -> Any:
    return api.get_tracer("ultijobs")
