"""A declared job: a value that can be enqueued, and that a worker runs by its name."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, ClassVar, Generic, Literal, TypeVar, overload

from pydantic import TypeAdapter, ValidationError
from typing_extensions import Unpack

from ultijobs._definitions.ambient import application_of
from ultijobs._definitions.options import AsyncOptions, RequestOptions, SyncOptions
from ultijobs._durations import Duration
from ultijobs._queue.records import Enqueued, UniqueMode
from ultijobs._retry import RetryPolicy
from ultijobs.errors import UltijobsError, ValidationFailed

__all__ = ["JobHandle", "Request", "invalid"]

In = TypeVar("In")


@dataclass(frozen=True, slots=True)
class Request(Generic[In]):
    """One enqueue that is asked for and not made yet; what tasks return and `enqueue_many` takes."""

    handle: JobHandle[In]
    input: In
    delay: Duration | None = None
    run_at: datetime | None = None
    priority: int | None = None
    max_attempts: int | None = None


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class JobHandle(Generic[In]):
    """What `@job` makes of a function. It is not callable: `fn` is the function.

    `enqueue` and its siblings go to the ambient application (inside a run, `async with app`, `with app`), else to the
    only live one that registered the handle, else they raise `AppAmbiguous`. They raise `ValidationFailed` for an
    input that does not fit, `PayloadInvalid` for one that cannot be stored; then nothing is stored. A live row of the
    same key answers with its own ids and `deduped=True`. When the process dies before the answer, the row may or may
    not exist: enqueue again, the key makes that safe.
    """

    kind: ClassVar[str] = "job"

    fn: Callable[..., Any]
    name: str
    queue: str
    priority: int
    retry: RetryPolicy
    timeout: timedelta | None
    step_timeout: timedelta | None
    event_poll: timedelta | None
    concurrency: int | None
    unique: UniqueMode
    idempotency_key: Callable[[In], str]
    tenant: Callable[[In], str] | Literal["none"]
    adapter: TypeAdapter[In]
    takes: frozenset[str]
    is_async: bool

    def __repr__(self) -> str:
        return f"<job {self.name}>"

    def validate(self, text: str) -> In:
        """The input that a stored JSON text holds. Raises `ValidationFailed` when it does not fit the model."""
        try:
            return self.adapter.validate_json(text, by_alias=True, by_name=True)
        except ValidationError as error:
            raise invalid(self.name, error) from error

    @overload
    def request(self: JobHandle[None], input: None = None, **options: Unpack[RequestOptions]) -> Request[None]: ...
    @overload
    def request(self, input: In, **options: Unpack[RequestOptions]) -> Request[In]: ...
    def request(self, input: Any = None, **options: Unpack[RequestOptions]) -> Request[Any]:
        """An enqueue to be made later, by a task or by `enqueue_many`."""
        return Request(self, input, **options)

    @overload
    async def enqueue(self: JobHandle[None], input: None = None, **options: Unpack[AsyncOptions]) -> Enqueued: ...
    @overload
    async def enqueue(self, input: In, **options: Unpack[AsyncOptions]) -> Enqueued: ...
    async def enqueue(self, input: Any = None, **options: Any) -> Enqueued:
        """Stores one job, in a transaction of its own or in `tx`."""
        return await application_of(self, f"job {self.name}").enqueue(self, input, **options)

    @overload
    def enqueue_sync(self: JobHandle[None], input: None = None, **options: Unpack[SyncOptions]) -> Enqueued: ...
    @overload
    def enqueue_sync(self, input: In, **options: Unpack[SyncOptions]) -> Enqueued: ...
    def enqueue_sync(self, input: Any = None, **options: Any) -> Enqueued:
        """`enqueue` for sync code; refused on a thread whose loop is running, which it would block."""
        return application_of(self, f"job {self.name}").enqueue_sync(self, input, **options)

    async def enqueue_many(self, inputs: Iterable[In | Request[In]], **options: Unpack[AsyncOptions]) -> list[Enqueued]:
        """Stores all of them in one transaction, in few statements, or none; answers in the order given.

        What a `Request` says for itself wins over `options`.
        """
        return await application_of(self, f"job {self.name}").enqueue_many(self, inputs, **options)

    def enqueue_many_sync(self, inputs: Iterable[In | Request[In]], **options: Unpack[SyncOptions]) -> list[Enqueued]:
        """`enqueue_many` for sync code; refused on a thread whose loop is running."""
        return application_of(self, f"job {self.name}").enqueue_many_sync(self, inputs, **options)


def invalid(name: str, error: ValidationError) -> UltijobsError:
    """What pydantic found, by field path and without the values, which may be secret."""
    found = [
        {"path": ".".join(str(part) for part in each["loc"]) or "input", "message": each["msg"], "type": each["type"]}
        for each in error.errors(include_url=False, include_context=False, include_input=False)
    ]
    listed = "; ".join(f"{each['path']}: {each['message']}" for each in found[:20])
    more = f"; and {len(found) - 20} more" if len(found) > 20 else ""  # noqa: PLR2004 - as many as a person reads
    return ValidationFailed(f"job {name}: the input does not fit: {listed}{more}", meta={"errors": found})
