"""The step API of plain `def` handlers, which run in a thread: the same as `Step`, blocking."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Callable, Coroutine
from datetime import timedelta
from typing import Any, Generic, Literal, ParamSpec, TypeVar, cast, overload

from pydantic import TypeAdapter

from ultijobs._definitions.event import Event
from ultijobs._durations import Duration, parse
from ultijobs._steps.codec import Codec, codec_of
from ultijobs._steps.context import STEP
from ultijobs._steps.executing import Executing, Replayed
from ultijobs._steps.runner import Runner
from ultijobs._steps.waiting import wish_of
from ultijobs._tracing import stepping
from ultijobs.errors import Invariant

__all__ = ["SyncReturning", "SyncStep"]

P = ParamSpec("P")
T = TypeVar("T")
R = TypeVar("R")


class SyncStep:
    """Durable steps of a run whose handler is a plain function; every guarantee of `Step` holds.

    A thread cannot be killed: past a timeout `ctx.signal` and the step's `signal` are set, and the attempt lasts until
    the function returns or is abandoned.
    """

    __slots__ = ("_runner", "_timeout")

    def __init__(self, runner: Runner, timeout: timedelta | None = None) -> None:
        self._runner = runner
        self._timeout = timeout

    @overload
    def run(self, name: str, fn: Callable[P, Coroutine[Any, Any, T]], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    @overload
    def run(self, name: str, fn: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T: ...
    def run(self, name: str, fn: Callable[..., Any], /, *args: Any, **kwargs: Any) -> Any:
        """As `Step.run`. `fn` runs in the handler's own thread; one that is `async def` runs on the worker's loop."""
        return _run(self._runner, self._timeout, None, name, fn, args, kwargs)

    def returning(self, codec: type[R] | TypeAdapter[R], /) -> SyncReturning[R]:
        """As `Step.returning`."""
        return SyncReturning(self._runner, self._timeout, codec_of(codec))

    def with_timeout(self, timeout: Duration, /) -> SyncStep:
        """As `Step.with_timeout`."""
        return SyncStep(self._runner, parse(timeout, what="step.with_timeout", positive=True))

    @overload
    def sleep(self, duration: Duration, /) -> None: ...
    @overload
    def sleep(self, name: str, duration: Duration, /) -> None: ...
    def sleep(self, first: Duration, second: Duration | None = None, /) -> None:
        """As `Step.sleep`: the thread is given up until the time is over."""
        if second is None:
            _on_loop(self._runner, self._runner.sleep(None, first))
        else:
            _on_loop(self._runner, self._runner.sleep(cast("str", first), second))

    @overload
    def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        payload: type[T] | TypeAdapter[T],
        match: str | None = None,
        timeout: Duration = "24h",
        required: Literal[True],
        since: Literal["run", "now"] = "run",
    ) -> Event[T]: ...
    @overload
    def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        payload: type[T] | TypeAdapter[T],
        match: str | None = None,
        timeout: Duration = "24h",
        required: bool = False,
        since: Literal["run", "now"] = "run",
    ) -> Event[T] | None: ...
    @overload
    def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        match: str | None = None,
        timeout: Duration = "24h",
        required: Literal[True],
        since: Literal["run", "now"] = "run",
    ) -> Event[Any]: ...
    @overload
    def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        match: str | None = None,
        timeout: Duration = "24h",
        required: bool = False,
        since: Literal["run", "now"] = "run",
    ) -> Event[Any] | None: ...
    def wait_for_event(
        self,
        name: str,
        event: str,
        *,
        payload: Any = Any,
        match: str | None = None,
        timeout: Duration = "24h",
        required: bool = False,
        since: Literal["run", "now"] = "run",
    ) -> Event[Any] | None:
        """As `Step.wait_for_event`: the thread is given up until the event comes."""
        wish = wish_of(name, event, payload, match=match, timeout=timeout, required=required, since=since)
        return _on_loop(self._runner, self._runner.wait(name, wish))


class SyncReturning(Generic[R]):
    """`SyncStep.run` with the result's type given; see `SyncStep.returning`."""

    __slots__ = ("_codec", "_runner", "_timeout")

    def __init__(self, runner: Runner, timeout: timedelta | None, codec: Codec[R]) -> None:
        self._runner = runner
        self._timeout = timeout
        self._codec = codec

    def run(self, name: str, fn: Callable[P, Any], /, *args: P.args, **kwargs: P.kwargs) -> R:
        """As `SyncStep.run`; what `fn` returns is stored and read back as the given type."""
        return cast("R", _run(self._runner, self._timeout, self._codec, name, fn, args, kwargs))

    def with_timeout(self, timeout: Duration, /) -> SyncReturning[R]:
        """The same with this timeout in place of the job's `step_timeout`."""
        return SyncReturning(self._runner, parse(timeout, what="step.with_timeout", positive=True), self._codec)


def _run(
    runner: Runner,
    timeout: timedelta | None,
    codec: Codec[Any] | None,
    name: str,
    fn: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
) -> Any:
    begun = _on_loop(runner, _begin(runner, name, fn, timeout, codec))
    if isinstance(begun, Replayed):
        return begun.value
    token = STEP.set(begun.scope)
    try:
        with stepping(begun.scope.name):
            value = fn(*args, **kwargs)
            if inspect.isawaitable(value):
                value = _on_loop(runner, _awaited(begun, value))
    except BaseException as error:
        STEP.reset(token)
        seen = _on_loop(runner, runner.fail(begun, error))
        if seen is error:
            raise
        raise seen from seen.__cause__
    STEP.reset(token)
    return _on_loop(runner, runner.finish(begun, value))


async def _begin(
    runner: Runner,
    name: str,
    fn: Callable[..., Any],
    timeout: timedelta | None,  # noqa: ASYNC109 - a deadline kept as data, not a wait of this function
    codec: Codec[Any] | None,
) -> Executing | Replayed:
    return runner.begin(name, fn, timeout, codec)


async def _awaited(step: Executing, value: Any) -> Any:
    step.runs_here()
    return await value


def _on_loop(runner: Runner, work: Coroutine[Any, Any, T]) -> T:
    """Runs `work` on the worker's loop and blocks this thread until it is done."""
    runner.leave_if_forked()
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run_coroutine_threadsafe(work, runner.loop).result()
    work.close()
    raise Invariant(
        "a SyncStep was called on a thread whose event loop is running, which it would block",
        fix="declare the handler as `async def`",
    )
