"""`@job`: declares a function as durable work."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from typing import Any, Literal, Protocol, TypeVar, get_args, overload

from pydantic import TypeAdapter

from ultijobs._definitions import checks, handlers
from ultijobs._definitions.handle import JobHandle
from ultijobs._definitions.handlers import Handler, HandlerOfInput, HandlerWithoutInput
from ultijobs._durations import Duration
from ultijobs._queue.records import UniqueMode
from ultijobs._retry import RetryPolicy
from ultijobs.errors import IdempotencyRequired, Invariant, JobTenantRequired

__all__ = ["job"]

In = TypeVar("In")

Unique = Literal["live", "not-running", "rerun"]


class _Declare(Protocol[In]):
    def __call__(self, fn: Handler[In], /) -> JobHandle[In]: ...


class _DeclareByAnnotation(Protocol):
    @overload
    def __call__(self, fn: HandlerOfInput[In], /) -> JobHandle[In]: ...
    @overload
    def __call__(self, fn: HandlerWithoutInput, /) -> JobHandle[None]: ...


@overload
def job(
    input: type[In] | TypeAdapter[In],
    /,
    *,
    idempotency_key: Callable[[In], str],
    tenant: Callable[[In], str] | Literal["none"],
    name: str | None = None,
    queue: str = "default",
    priority: int = 0,
    retry: RetryPolicy = ...,
    timeout: Duration | None = None,
    step_timeout: Duration | None = None,
    event_poll: Duration | None = None,
    concurrency: int | None = None,
    unique: Unique = "live",
) -> _Declare[In]: ...
@overload
def job(
    *,
    idempotency_key: Callable[[Any], str],
    tenant: Callable[[Any], str] | Literal["none"],
    name: str | None = None,
    queue: str = "default",
    priority: int = 0,
    retry: RetryPolicy = ...,
    timeout: Duration | None = None,
    step_timeout: Duration | None = None,
    event_poll: Duration | None = None,
    concurrency: int | None = None,
    unique: Unique = "live",
) -> _DeclareByAnnotation: ...
def job(
    input: Any = inspect.Parameter.empty,
    /,
    *,
    idempotency_key: Any = None,
    tenant: Any = None,
    name: str | None = None,
    queue: str = "default",
    priority: int = 0,
    retry: Any = None,
    timeout: Duration | None = None,
    step_timeout: Duration | None = None,
    event_poll: Duration | None = None,
    concurrency: int | None = None,
    unique: str = "live",
) -> Any:
    """Declares a function, sync or async, as a job: `@job(Model, idempotency_key=…, tenant=…)`.

    The handler takes any of `input`, `step` and `ctx` by name. Without a model the annotation of `input` decides;
    without `input` the job takes none. The name that is stored is `name`, else the function's own. All options are
    checked here: `Invariant` or `DurationInvalid` names the job and the field.

    Args:
        input: A type that pydantic validates, or a `TypeAdapter`.
        idempotency_key: Of the validated input; among live rows of one tenant a key exists once, see `unique`.
        tenant: Whose work it is, of the validated input, or `"none"`.
        name: The durable name; rows refer to it, so it outlives renaming the function.
        queue: Where workers look for it.
        priority: A higher one is claimed first.
        retry: How often and when a failed attempt is tried again.
        timeout: Of one attempt; then it is cancelled and fails with `JobTimeout`.
        step_timeout: Of each step.
        event_poll: How often a waiting run looks again by itself, beside being woken.
        concurrency: The most runs of it at once in the whole fleet, 10,000 at the most.
        unique: `live`: a key is held until its job ends; `not-running`: until it is first claimed; `rerun`: the same,
            and a twin waits until the first has ended.

    """
    if inspect.isfunction(input):
        raise IdempotencyRequired(
            f"job {input.__name__} declares no idempotency_key: @job stands on it without its arguments",
            fix="write @job(Model, idempotency_key=…, tenant=…)",
        )

    def declare(fn: Any, /) -> JobHandle[Any]:
        if not callable(fn):
            raise Invariant(f"@job is used on {fn!r:.100}, not on a function", fix="put @job on a def or async def")
        named = checks.durable_name(name, fn, f"job {_where(fn)}: name")
        what = f"job {named}"
        # Models that are local to the calling function are found in its frame.
        scope = sys._getframe(1).f_locals  # noqa: SLF001  # pyright: ignore[reportPrivateUsage] - the documented way
        signature = handlers.read(fn, what, scope)
        return JobHandle(
            fn=fn,
            name=named,
            queue=checks.name(queue, f"{what}: queue"),
            priority=checks.whole(
                priority, f"{what}: priority", least=-checks.MOST_PRIORITY, most=checks.MOST_PRIORITY
            ),
            retry=_retry(retry, what),
            timeout=checks.optional_span(timeout, f"{what}: timeout"),
            step_timeout=checks.optional_span(step_timeout, f"{what}: step_timeout"),
            event_poll=checks.optional_span(event_poll, f"{what}: event_poll"),
            concurrency=None
            if concurrency is None
            else checks.whole(concurrency, f"{what}: concurrency", least=1, most=checks.MOST_SLOTS),
            unique=UniqueMode(checks.choice(unique, f"{what}: unique", get_args(Unique))),
            idempotency_key=_key(idempotency_key, what),
            tenant=_tenant(tenant, what),
            adapter=_adapter(input, signature, what),
            takes=signature.takes,
            is_async=signature.is_async,
        )

    return declare


def _where(fn: Any) -> str:
    return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', repr(fn))}"


def _retry(retry: Any, what: str) -> RetryPolicy:
    if retry is None:
        return RetryPolicy()
    if not isinstance(retry, RetryPolicy):
        raise Invariant(f"{what}: retry is {retry!r:.100}", fix="set retry=RetryPolicy(attempts=…)")
    return retry


def _key(key: Any, what: str) -> Any:
    if key is None:
        raise IdempotencyRequired(f"{what} declares no idempotency_key")
    if not callable(key) or handlers.is_async(key):
        raise Invariant(
            f"{what}: idempotency_key is {key!r:.100}, no plain function of the input",
            fix='set idempotency_key=lambda i: f"…:{i.id}"',
        )
    return key


def _tenant(tenant: Any, what: str) -> Any:
    if tenant is None:
        raise JobTenantRequired(f"{what} declares no tenant")
    if isinstance(tenant, str) and tenant == "none":
        return tenant
    if not callable(tenant) or handlers.is_async(tenant):
        raise Invariant(
            f'{what}: tenant is {tenant!r:.100}, neither "none" nor a plain function of the input',
            fix='set tenant=lambda i: i.org_id, or tenant="none"',
        )
    return tenant


def _adapter(model: Any, signature: handlers.Signature, what: str) -> TypeAdapter[Any]:
    empty = inspect.Parameter.empty
    if model is not empty:
        if "input" in signature.takes and signature.annotation is not empty:
            handlers.agree(model, signature.annotation, what)
        return handlers.adapter_of(model, what)
    if signature.annotation is empty:
        raise Invariant(
            f"{what}: input has no type", fix="declare the model first: @job(Model, …), or annotate `input`"
        )
    return handlers.adapter_of(signature.annotation, what)
