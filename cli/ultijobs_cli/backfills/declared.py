"""Which backfills there are: by the application's own code where one is named, else by the catalogue."""

from __future__ import annotations

import asyncio
import dataclasses
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ultijobs import _settings
from ultijobs._backfill.gate import Gate
from ultijobs._connect import driver_for, tables_of
from ultijobs.inspection import CatalogEntry, Inspector
from ultijobs_cli.command import Invocation
from ultijobs_cli.loading import load_app
from ultijobs_cli.settings import application

if TYPE_CHECKING:
    from ultijobs import App

__all__ = ["Declared", "There", "declarations"]


@dataclass(frozen=True)
class There:
    """The declarations, where they hold, and what answers for them. `app` is None where none was named."""

    entries: Sequence[CatalogEntry]
    environment: str | None
    gate: Gate
    app: App[Any] | None

    async def remaining(self, name: str) -> int | None:
        """What the application's `count()` answers; None without one, and when it fails."""
        handle = None if self.app is None else self.app.registry.backfills.get(name)
        if self.app is None or handle is None or handle.count is None:
            return None
        from ultijobs._backfill.counting import counted  # noqa: PLC0415 - only where an application is loaded

        try:
            with self.app.ambient():
                async with asyncio.timeout(60):
                    return await counted(handle.count, f"backfill {name}")
        except Exception:  # noqa: BLE001 - whatever the application's code does, the rest can be told
            return None


@dataclass(frozen=True)
class Declared:
    app: App[Any] | None

    async def known(self, api: Inspector) -> There:
        """The catalogue's entries, and over them the application's, each with the environment that it holds in.

        What is set here says where an application's own declarations hold; where nothing is set, and without one, that
        is the environment of whoever declared them.
        """
        here = _settings.load().environment
        known = {entry.name: entry for entry in await api.catalog("backfill")}
        own: Mapping[str, CatalogEntry] = {} if self.app is None else _own(self.app, here)
        entries: list[CatalogEntry] = []
        for name in sorted({*known, *own}):
            stored = known[name].environment if name in known else None
            if name in own:
                entries.append(dataclasses.replace(own[name], environment=here or stored))
            else:
                entries.append(dataclasses.replace(known[name], environment=stored or here))
        environments = {entry.environment for entry in entries}
        shown = here if self.app is not None or len(environments) != 1 else next(iter(environments))
        tables = tables_of(api.driver)
        if self.app is not None and self.app.outbox is not None:
            tables = tables_of(driver_for(self.app.outbox))
        return There(entries, shown, Gate(tables), self.app)


async def declarations(call: Invocation) -> Declared:
    """Loads the application that the settings name, if they name one. Raises `CommandFailed` when it is not usable."""
    return Declared(load_app(call) if application(call.flags) else None)


def _own(app: App[Any], environment: str | None) -> Mapping[str, CatalogEntry]:
    from ultijobs._definitions.catalogue import catalogue  # noqa: PLC0415 - only where an application is loaded

    version = _settings.load().code_version
    entries = catalogue(
        app.registry,
        redact=app.redact,
        retention=app.retention,
        limits=app.limits,
        code_version=version,
        environment=environment,
    )
    return {entry.name: entry for entry in entries if entry.kind == "backfill"}
