"""The shapes of handlers: any of `input`, `step` and `ctx`, by name and in any order."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol, TypeAlias, TypeVar, get_origin

from pydantic import TypeAdapter

from ultijobs.errors import Invariant

__all__ = [
    "Handler",
    "HandlerOfInput",
    "HandlerWithoutInput",
    "Signature",
    "adapter_of",
    "is_async",
    "read",
    "takes_positions",
]

In = TypeVar("In")
In_contra = TypeVar("In_contra", contravariant=True)

INJECTED: Final = ("input", "step", "ctx")


class _Input(Protocol[In_contra]):
    def __call__(self, *, input: In_contra) -> Any: ...


class _InputStep(Protocol[In_contra]):
    def __call__(self, *, input: In_contra, step: Any) -> Any: ...


class _InputCtx(Protocol[In_contra]):
    def __call__(self, *, input: In_contra, ctx: Any) -> Any: ...


class _InputStepCtx(Protocol[In_contra]):
    def __call__(self, *, input: In_contra, step: Any, ctx: Any) -> Any: ...


class _Nothing(Protocol):
    def __call__(self) -> Any: ...


class _Step(Protocol):
    def __call__(self, *, step: Any) -> Any: ...


class _Ctx(Protocol):
    def __call__(self, *, ctx: Any) -> Any: ...


class _StepCtx(Protocol):
    def __call__(self, *, step: Any, ctx: Any) -> Any: ...


HandlerOfInput: TypeAlias = _Input[In] | _InputStep[In] | _InputCtx[In] | _InputStepCtx[In]
HandlerWithoutInput: TypeAlias = _Nothing | _Step | _Ctx | _StepCtx
Handler: TypeAlias = HandlerOfInput[In] | HandlerWithoutInput


@dataclass(frozen=True, slots=True)
class Signature:
    """What a handler takes. `annotation` is that of `input`, `inspect.Parameter.empty` without one."""

    takes: frozenset[str]
    is_async: bool
    annotation: Any


def is_async(fn: Any) -> bool:
    """True when a call of `fn` answers a coroutine."""
    return inspect.iscoroutinefunction(fn) or inspect.iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004 - the method itself is looked at


def takes_positions(fn: Callable[..., Any], number: int) -> bool:
    """True when `fn` can be called with so many arguments by their position; also when that cannot be told."""
    try:
        inspect.signature(fn).bind(*range(number))
    except TypeError:
        return False
    except ValueError:
        return True
    return True


def read(fn: Callable[..., Any], what: str, scope: Mapping[str, Any]) -> Signature:
    """The signature of a handler; annotations in quotes are read in its module and in `scope`.

    A parameter of another name keeps its default. Raises `Invariant` for one without a default, which nothing would
    inject, for a class, and for a generator, whose body would never run.
    """
    if isinstance(fn, type):
        raise Invariant(f"{what} is a class; calling it makes an object and runs no work", fix="decorate a function")
    if inspect.isgeneratorfunction(fn) or inspect.isasyncgenfunction(fn):
        raise Invariant(f"{what} is a generator; its body would never run", fix="return instead of yield")
    try:
        parameters = inspect.signature(fn).parameters
    except ValueError as error:
        raise Invariant(f"{what} has no signature: {error}", fix="wrap it in a def") from error
    takes = frozenset(name for name, parameter in parameters.items() if _injected(parameter, what))
    annotation = parameters["input"].annotation if "input" in takes else None
    return Signature(takes, is_async(fn), _resolved(annotation, fn, what, scope))


def _injected(parameter: inspect.Parameter, what: str) -> bool:
    by_name = parameter.kind in (parameter.POSITIONAL_OR_KEYWORD, parameter.KEYWORD_ONLY)
    if parameter.name in INJECTED and by_name:
        return True
    if parameter.name in INJECTED and parameter.kind is parameter.POSITIONAL_ONLY:
        raise Invariant(
            f"{what} takes {parameter.name} by its position alone, and parameters are injected by name",
            fix="remove the `/` from its parameters",
        )
    if parameter.default is parameter.empty:
        raise Invariant(
            f"{what} takes {parameter}, which nothing injects",
            fix="take any of `input`, `step`, `ctx` by name, and give whatever else it takes a default",
        )
    return False


def adapter_of(model: Any, what: str) -> TypeAdapter[Any]:
    """The adapter that validates inputs of type `model`, which may be an adapter already."""
    if isinstance(model, TypeAdapter):
        return model  # pyright: ignore[reportUnknownVariableType] - an adapter of whatever the caller declared
    try:
        return TypeAdapter(model)
    except Exception as error:  # pydantic lets through whatever reading the type raises
        reason = f"{error!s:.300}".partition("\n")[0]
        raise Invariant(
            f"{what}: input is declared as {model!r:.200}, which pydantic cannot validate: {reason}",
            fix="declare a pydantic model, a dataclass, or another type that pydantic knows",
        ) from error


def agree(model: Any, annotation: Any, what: str) -> None:
    """Raises `Invariant` when `input` is annotated as a class that the declared model is not."""
    if annotation is Any:  # A class to `isinstance`, and the base of none.
        return
    if isinstance(model, type) and isinstance(annotation, type) and not get_origin(annotation):
        try:
            fits = issubclass(model, annotation)
        except TypeError:
            return
        if not fits:
            raise Invariant(
                f"{what}: input is declared as {model.__qualname__} and annotated as {annotation.__qualname__}",
                fix=f"annotate `input: {model.__qualname__}`",
            )


def _resolved(annotation: Any, fn: Any, what: str, scope: Mapping[str, Any]) -> Any:
    inner: Any = fn.func if isinstance(fn, functools.partial) else fn  # pyright: ignore[reportUnknownMemberType] - whatever the partial wraps
    names = {**getattr(inspect.unwrap(inner), "__globals__", {}), **scope}
    found = annotation
    while isinstance(found, str):
        try:
            found = eval(found, names)  # noqa: S307 - the handler's own annotation, as the interpreter would read it
        except Exception as error:
            raise Invariant(
                f"{what}: the annotation of input, {annotation!r:.200}, cannot be read: {error}",
                fix="declare the model first: @job(Model, …)",
            ) from error
    return found
