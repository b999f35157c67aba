"""What a scheduler takes from an application, and how it calls itself."""

from __future__ import annotations

import os
import socket
from collections.abc import Sequence
from typing import Protocol
from uuid import uuid4

from ultijobs import _settings
from ultijobs._definitions.ambient import Application as Ambient
from ultijobs._definitions.bounds import Limits, Retention, Sizes
from ultijobs._definitions.catalogue import catalogue
from ultijobs._definitions.registry import Registry
from ultijobs._metrics.metrics import Metrics
from ultijobs._queue.driver import Driver
from ultijobs._queue.telling import CatalogEntry

__all__ = ["Application", "catalogue_of", "holder"]


class Application(Ambient, Protocol):
    """The part of `App` that a scheduler uses."""

    @property
    def registry(self) -> Registry: ...
    @property
    def driver(self) -> Driver: ...
    @property
    def metrics(self) -> Metrics: ...
    @property
    def sizes(self) -> Sizes: ...
    @property
    def limits(self) -> Limits: ...
    @property
    def redact(self) -> Sequence[str]: ...
    @property
    def retention(self) -> Retention: ...
    async def open(self, role: str = "app") -> None: ...
    async def close(self) -> None: ...


def catalogue_of(app: Application) -> list[CatalogEntry]:
    around = _settings.load()
    return catalogue(
        app.registry,
        redact=app.redact,
        retention=app.retention,
        limits=app.limits,
        code_version=around.code_version,
        environment=around.environment,
    )


def holder() -> str:
    """Where the process is, and a word that no other scheduler has: a lead belongs to one, never to a name."""
    return f"{socket.gethostname()}:{os.getpid()}:{uuid4().hex[:8]}"
