"""The step API of `async def` handlers."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import inspect
from collections.abc import Callable, Coroutine
from datetime import timedelta
from types import CodeType
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast, overload

from pydantic import TypeAdapter

from ultijobs._definitions.event import Event
from ultijobs._durations import Duration, parse
from ultijobs._steps.codec import Codec, codec_of
from ultijobs._steps.context import STEP
from ultijobs._steps.ending import runs_in
from ultijobs._steps.executing import Replayed
from ultijobs._steps.runner import Runner
from ultijobs._steps.waiting import wish_of
from ultijobs._tracing import stepping

__all__ = ["Returning", "Step"]

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


class Step:
    """Durable steps of a run: each runs once, is recorded, and replays from its record in every later attempt.

    Names are unique within a run. A worker that dies during a step's function runs that function again; one that dies
    after `run` has returned does not.
    """

    __slots__ = ("_runner", "_timeout")

    def __init__(self, runner: Runner, timeout: timedelta | None = None) -> None:
        self._runner = runner
        self._timeout = timeout

    @overload
    async def run(
        self, name: str, fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs
    ) -> T: ...
    @overload
    async def run(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    async def run(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """The result of `fn(*args, **kwargs)`, from the record when there is one; durable when this returns.

        A plain function runs in a thread, with the context copied. The first run returns what a replay returns: the
        stored value, decoded by the return annotation of `fn`, or plain JSON values of exact types without one. Raises
        what `fn` raises; `PayloadInvalid` (the job stops) for a result that cannot be stored; `StepDuplicate` for a
        name's second use; `JobTimeout` past the step's timeout; `Aborted` when the attempt is over.
        """
        return await _run(self._runner, self._timeout, None, name, fn, args, kwargs)

    def returning(self, codec: type[R] | TypeAdapter[R], /) -> Returning[R]:
        """Steps whose results are stored and read back as `codec`, whatever the function is annotated with."""
        return Returning(self._runner, self._timeout, codec_of(codec))

    def with_timeout(self, timeout: Duration, /) -> Step:
        """Steps with this timeout in place of the job's `step_timeout`."""
        return Step(self._runner, parse(timeout, what="step.with_timeout", positive=True))

    @overload
    async def sleep(self, duration: Duration, /) -> None: ...
    @overload
    async def sleep(self, name: str, duration: Duration, /) -> None: ...
    async def sleep(self, first: Duration, second: Duration | None = None, /) -> None:
        """Returns after `duration`; the run holds no process meanwhile and goes on in a new claim.

        The wake time is stored at the first visit, by the database's clock. Without a name it is derived from the
        duration as written: name a sleep whose duration may change under a run that is in flight.
        """
        if second is None:
            await self._runner.sleep(None, first)
        else:
            await self._runner.sleep(cast("str", first), second)

    @overload
    async def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        payload: type[T] | TypeAdapter[T],
        match: str | None = None,
        timeout: Duration = "24h",  # noqa: ASYNC109 - a deadline kept as data, not a wait of this function
        required: Literal[True],
        since: Literal["run", "now"] = "run",
    ) -> Event[T]: ...
    @overload
    async def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        payload: type[T] | TypeAdapter[T],
        match: str | None = None,
        timeout: Duration = "24h",  # noqa: ASYNC109 - a deadline kept as data, not a wait of this function
        required: bool = False,
        since: Literal["run", "now"] = "run",
    ) -> Event[T] | None: ...
    @overload
    async def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        match: str | None = None,
        timeout: Duration = "24h",  # noqa: ASYNC109 - a deadline kept as data, not a wait of this function
        required: Literal[True],
        since: Literal["run", "now"] = "run",
    ) -> Event[Any]: ...
    @overload
    async def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        match: str | None = None,
        timeout: Duration = "24h",  # noqa: ASYNC109 - a deadline kept as data, not a wait of this function
        required: bool = False,
        since: Literal["run", "now"] = "run",
    ) -> Event[Any] | None: ...
    async def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        payload: Any = Any,
        match: str | None = None,
        timeout: Duration = "24h",  # noqa: ASYNC109 - a deadline kept as data, not a wait of this function
        required: bool = False,
        since: Literal["run", "now"] = "run",
    ) -> Event[Any] | None:
        """The first event of that name, and with the key `match` if given, that the run has not had yet.

        It looks back to the run's creation, or with `since="now"` to the first time that this is called; so an event
        may come before the wait does. Each run gets an event once, several runs get the same one. The run holds no
        process meanwhile. When `timeout` is over, counted from the first call by the database's clock: None, or, when
        it is `required`, the job stops with `JobTimeout`, and a retry of the job waits anew. A payload that does not
        fit `payload` is `PayloadInvalid`, and the job stops.
        """
        wish = wish_of(name, event, payload, match=match, timeout=timeout, required=required, since=since)
        return await self._runner.wait(name, wish)


class Returning(Generic[R]):
    """`Step.run` with the result's type given; see `Step.returning`."""

    __slots__ = ("_codec", "_runner", "_timeout")

    def __init__(self, runner: Runner, timeout: timedelta | None, codec: Codec[R]) -> None:
        self._runner = runner
        self._timeout = timeout
        self._codec = codec

    async def run(self, name: str, fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `Step.run`; what `fn` returns is stored and read back as the given type."""
        return cast("R", await _run(self._runner, self._timeout, self._codec, name, fn, args, kwargs))

    def with_timeout(self, timeout: Duration, /) -> Returning[R]:
        """The same with this timeout in place of the job's `step_timeout`."""
        return Returning(self._runner, parse(timeout, what="step.with_timeout", positive=True), self._codec)


async def _run(
    runner: Runner,
    timeout: timedelta | None,  # noqa: ASYNC109 - a deadline kept as data, not a wait of this function
    codec: Codec[Any] | None,
    name: str,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    begun = runner.begin(name, fn, timeout, codec)
    if isinstance(begun, Replayed):
        return begun.value
    interrupted: asyncio.CancelledError | None = None
    own = asyncio.current_task()
    token = STEP.set(begun.scope)
    try:
        with stepping(begun.scope.name):
            if _is_coroutine_function(fn):
                begun.runs_here()
                value = await fn(*args, **kwargs)
            else:
                value, interrupted = await _in_thread(runner, functools.partial(fn, *args, **kwargs))
                if inspect.isawaitable(value):
                    begun.runs_here()
                    value = await value
    except BaseException as error:
        STEP.reset(token)
        if isinstance(error, GeneratorExit) and not runs_in(own):
            raise
        seen = await runner.fail(begun, error)
        if seen is error:
            raise
        raise seen from seen.__cause__
    STEP.reset(token)
    result = await runner.finish(begun, value)
    if interrupted is not None:
        raise interrupted
    return result


def _is_coroutine_function(fn: Callable[..., Any]) -> bool:
    # The flag answers for a plain function, at a tenth of the cost.
    code: CodeType | None = getattr(fn, "__code__", None)
    if code is not None and code.co_flags & inspect.CO_COROUTINE:
        return True
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004 - the method itself is looked at


async def _in_thread(runner: Runner, call: Callable[[], Any]) -> tuple[Any, asyncio.CancelledError | None]:
    """What `call` returns; a cancel meanwhile is answered beside it, so that what has happened is recorded first."""
    future = runner.threads.run(functools.partial(contextvars.copy_context().run, call), runner.loop)
    try:
        return await future, None
    except asyncio.CancelledError as cancel:
        if future.exception() is None:
            return future.result(), cancel
        raise
