"""What an application declares and this release does not run: a worker refuses it instead of ignoring it."""

from __future__ import annotations

from typing import Protocol

from ultijobs._definitions.bounds import Limits
from ultijobs._definitions.registry import Registry

__all__ = ["Declarations", "unsupported"]


class Declarations(Protocol):
    @property
    def registry(self) -> Registry: ...
    @property
    def limits(self) -> Limits: ...


def unsupported(application: Declarations) -> list[tuple[str, list[str]]]:
    """Pairs of an error code and what it names; empty when a worker may start."""
    registry = application.registry
    found: list[tuple[str, list[str]]] = []
    capped = [name for name, handle in registry.jobs.items() if handle.concurrency is not None]
    if capped:
        found.append(("X_JOB_CONCURRENCY_UNENFORCEABLE", capped))
    rest: list[str] = []
    if application.limits != Limits():
        rest.append("limits")
    if rest:
        found.append(("X_NOT_IMPLEMENTED", rest))
    return found
