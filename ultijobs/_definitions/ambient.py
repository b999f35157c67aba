"""Which application a handle's `enqueue` goes to: the ambient one, else the only live one that registered it."""

from __future__ import annotations

import threading
import weakref
from collections.abc import Callable, Coroutine, Generator, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, Final, Protocol

from ultijobs._queue.records import Enqueued
from ultijobs.errors import AppAmbiguous

__all__ = ["Application", "application_of", "bound", "current_application", "enlist", "enter", "leave", "staged"]


class Application(Protocol):
    """What a handle asks of an application."""

    @property
    def closed(self) -> bool:
        """True when it was open and is not any more."""
        ...

    def registered(self, handle: object) -> bool: ...
    @property
    def enqueue(self) -> Callable[..., Coroutine[Any, Any, Enqueued]]: ...
    @property
    def enqueue_sync(self) -> Callable[..., Enqueued]: ...
    @property
    def enqueue_many(self) -> Callable[..., Coroutine[Any, Any, list[Enqueued]]]: ...
    @property
    def enqueue_many_sync(self) -> Callable[..., list[Enqueued]]: ...
    @property
    def enqueue_backfill(self) -> Callable[..., Coroutine[Any, Any, Enqueued]]: ...


@dataclass(frozen=True, slots=True)
class _Block:
    application: Application
    outer: _Block | None


# A chain in each context, since a block may be left in another context than it was entered in.
_BLOCK: Final[ContextVar[_Block | None]] = ContextVar("ultijobs_application", default=None)


class _Live:
    """Applications that somebody holds; read without a lock while others are added."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: tuple[weakref.ref[Application], ...] = ()

    def add(self, application: Application) -> None:
        with self._lock:
            self._held = (*(each for each in self._held if each() is not None), weakref.ref(application))

    def __iter__(self) -> Iterator[Application]:
        return (application for each in self._held if (application := each()) is not None)


_LIVE: Final = _Live()


def enlist(application: Application) -> None:
    """Makes an application known for as long as somebody holds it."""
    _LIVE.add(application)


def current_application() -> Application | None:
    block = _BLOCK.get()
    return None if block is None else block.application


def enter(application: Application) -> None:
    """Makes `application` the ambient one of this context, and of tasks and threads that copy it from here on."""
    _BLOCK.set(_Block(application, _BLOCK.get()))


def leave(application: Application) -> None:
    """Makes the one before it ambient again."""
    block = _BLOCK.get()
    if block is not None and block.application is application:
        _BLOCK.set(block.outer)


@contextmanager
def bound(application: Application) -> Generator[None]:
    """Makes `application` the ambient one for the block."""
    enter(application)
    try:
        yield
    finally:
        leave(application)


_STAGED: Final[list[Application]] = []


@contextmanager
def staged(application: Application) -> Generator[None]:
    """Lets it win over other live applications for the block, in every thread and context of the process."""
    _STAGED.append(application)
    try:
        yield
    finally:
        _STAGED.remove(application)


def application_of(handle: object, what: str) -> Application:
    """Raises `AppAmbiguous` when no application is ambient, and none or several registered `handle`."""
    ambient = current_application()
    if ambient is not None:
        return ambient
    for application in reversed(_STAGED):
        if application.registered(handle):
            return application
    known = [application for application in _LIVE if application.registered(handle)]
    candidates = [application for application in known if not application.closed] or known
    if len(candidates) == 1:
        return candidates[0]
    if candidates:
        raise AppAmbiguous(f"{len(candidates)} live applications registered {what}, and none of them is ambient")
    raise AppAmbiguous(
        f"no live application registered {what}", fix="list it in App(jobs=[…]) and keep the App in a variable"
    )
