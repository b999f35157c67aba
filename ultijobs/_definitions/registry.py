"""What one application declares, by durable name."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import MappingProxyType, ModuleType
from typing import Any, Final, TypeAlias, TypeVar

from ultijobs._definitions import checks
from ultijobs._definitions.backfill import BackfillHandle
from ultijobs._definitions.handle import JobHandle
from ultijobs._definitions.task import TaskHandle
from ultijobs.errors import ActionJobUnbridged, Invariant, JobDuplicate

__all__ = ["Declared", "Registry"]

Declared: TypeAlias = ModuleType | JobHandle[Any] | BackfillHandle[Any] | TaskHandle

H = TypeVar("H", JobHandle[Any], BackfillHandle[Any], TaskHandle)

_ACTION: Final = "action-job"


class Registry:
    """Jobs, backfills and tasks by name, sorted. Nothing is written on a handle.

    Of a module all exports that are declarations count, and its helpers are skipped. The same handle seen twice is one
    registration; two handles under one name are `JobDuplicate`.
    """

    def __init__(self, jobs: Iterable[Declared] = (), tasks: Iterable[Declared] = ()) -> None:
        work: dict[str, JobHandle[Any] | BackfillHandle[Any]] = {}
        calendar: dict[str, TaskHandle] = {}
        for handle in _handles(jobs, "jobs", (JobHandle, BackfillHandle)):
            _put(work, handle)
        for handle in _handles(tasks, "tasks", (TaskHandle,)):
            _put(calendar, handle)
        in_order = sorted(work.items())
        self.jobs: Final[Mapping[str, JobHandle[Any]]] = MappingProxyType(
            {name: handle for name, handle in in_order if isinstance(handle, JobHandle)}
        )
        self.backfills: Final[Mapping[str, BackfillHandle[Any]]] = MappingProxyType(
            {name: handle for name, handle in in_order if isinstance(handle, BackfillHandle)}
        )
        self.tasks: Final[Mapping[str, TaskHandle]] = MappingProxyType(dict(sorted(calendar.items())))

    def holds(self, handle: object) -> bool:
        """True for the very handle that was registered, not for another of its name."""
        if isinstance(handle, JobHandle):
            return self.jobs.get(handle.name) is handle  # pyright: ignore[reportUnknownMemberType] - of any input
        if isinstance(handle, BackfillHandle):
            return self.backfills.get(handle.name) is handle  # pyright: ignore[reportUnknownMemberType] - of any row
        return isinstance(handle, TaskHandle) and self.tasks.get(handle.name) is handle


def _handles(given: Any, field: str, kinds: tuple[type, ...]) -> Iterator[Any]:
    if isinstance(given, str | ModuleType | JobHandle | BackfillHandle | TaskHandle):
        raise Invariant(f"App: {field} is {given!r:.100}", fix=f"pass a list: {field}=[…]")
    for each in checks.several(given, f"App: {field}"):
        if isinstance(each, ModuleType):
            yield from _exports(each, kinds)
        elif isinstance(each, kinds):
            yield each
        else:
            raise _refusal(each, field)


def _exports(module: ModuleType, kinds: tuple[type, ...]) -> Iterator[Any]:
    for export, value in sorted(vars(module).items()):
        if isinstance(value, kinds):
            yield value
        elif _kind(value) == _ACTION:
            raise ActionJobUnbridged(f"{module.__name__}.{export} is an action projection, not a job")


def _kind(value: Any) -> object:
    try:
        return getattr(value, "kind", None)
    except Exception:  # noqa: BLE001 - an export that is no declaration may raise whatever it likes
        return None


def _refusal(each: Any, field: str) -> Exception:
    if _kind(each) == _ACTION:
        return ActionJobUnbridged(f"{each!r:.100} is an action projection, not a job")
    if isinstance(each, TaskHandle):
        return Invariant(f"App: {field} holds {each!r:.100}", fix="pass it as App(tasks=[…])")
    if isinstance(each, JobHandle | BackfillHandle):
        return Invariant(f"App: {field} holds {each!r:.100}", fix="pass it as App(jobs=[…])")
    if callable(each) and not isinstance(each, type):
        word = "job" if field == "jobs" else "task"
        named = getattr(each, "__qualname__", repr(each))
        return Invariant(f"App: {field} holds the plain function {named}", fix=f"decorate it with @{word}")
    return Invariant(f"App: {field} holds {each!r:.100}", fix=f"pass modules or handles: {field}=[…]")


def _put(into: dict[str, Any], handle: Any) -> None:
    holder = into.setdefault(handle.name, handle)
    if holder is not handle:
        raise JobDuplicate(
            f"{_origin(holder)} and {_origin(handle)} are both named {handle.name!r}",
            fix=f"give one of them name=, since rows refer to {handle.name!r}",
            meta={"name": handle.name},
        )


def _origin(handle: Any) -> str:
    fn = handle.fn
    return f"{getattr(fn, '__module__', '?')}.{getattr(fn, '__qualname__', repr(fn))}"
