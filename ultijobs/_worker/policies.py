"""How jobs whose worker vanished are delivered again: by the declarations here, by the catalogue for other names."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import timedelta
from typing import Any

from ultijobs._execution.host import Handler
from ultijobs._queue.claims import CrashPolicy
from ultijobs._queue.telling import CatalogEntry

__all__ = ["catalogue_policies", "crash_policies"]


def crash_policies(handlers: Iterable[Handler]) -> dict[str, CrashPolicy]:
    return {
        handler.name: CrashPolicy(
            name=handler.name,
            backoff=handler.retry.backoff,
            delay=handler.retry.delay,
            max_delay=handler.retry.max_delay,
            dead_letter=handler.retry.dead_letter,
        )
        for handler in handlers
    }


def catalogue_policies(entries: Iterable[CatalogEntry]) -> dict[str, CrashPolicy]:
    """Policies of the declarations that can be read; the driver's default serves the others."""
    found: dict[str, CrashPolicy] = {}
    for entry in entries:
        retry = entry.declaration.get("retry")
        policy = _read(entry.name, retry)
        if policy is not None:
            found[entry.name] = policy
    return found


def _read(name: str, retry: Any) -> CrashPolicy | None:
    try:
        return CrashPolicy(
            name=name,
            backoff=str(retry["backoff"]),
            delay=timedelta(milliseconds=int(retry["delay_ms"])),
            max_delay=timedelta(milliseconds=int(retry["max_delay_ms"])),
            dead_letter=bool(retry.get("dead_letter", True)),
        )
    except (KeyError, TypeError, ValueError, OverflowError):
        return None
