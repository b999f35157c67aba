"""What an attempt needs from the process around it, and from a declaration."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any, Protocol

from ultijobs._execution.classify import Classifier
from ultijobs._execution.report import Report
from ultijobs._log import RateLimit
from ultijobs._retry import RetryPolicy
from ultijobs._steps.context import Context
from ultijobs._steps.store import StepStore
from ultijobs._steps.threads import Threads

__all__ = ["Handler", "Host"]


class Handler(Protocol):
    """The part of a job's declaration that running it needs."""

    @property
    def name(self) -> str: ...
    @property
    def fn(self) -> Callable[..., Any]: ...
    @property
    def takes(self) -> frozenset[str]:
        """Which of `input`, `step` and `ctx` the function asks for; one of the library's own for `claim` and `host`."""
        ...

    @property
    def is_async(self) -> bool: ...
    @property
    def retry(self) -> RetryPolicy: ...
    @property
    def timeout(self) -> timedelta | None: ...
    @property
    def step_timeout(self) -> timedelta | None: ...
    @property
    def event_poll(self) -> timedelta | None: ...
    def validate(self, text: str, /) -> Any:
        """The input as the handler gets it; any exception means that it does not fit the declaration."""
        ...


@dataclass(slots=True, kw_only=True)
class Host:
    """What all attempts of one worker share.

    `grace` is how long a cancelled body may take to end before it is abandoned; `overtime` how long an abandoned one
    keeps its lease. `services` is what the application's lifespan yielded, `context` may change it for each attempt.
    """

    worker_id: str
    loop: asyncio.AbstractEventLoop
    steps: StepStore
    threads: Threads
    classifier: Classifier = field(default_factory=Classifier)
    report: Report | None = None
    services: Any = None
    context: Callable[[Any, Context[Any]], Any | Awaitable[Any]] | None = None
    grace: timedelta = timedelta(seconds=25)
    overtime: timedelta = timedelta(minutes=10)
    output_limit: int = 1_048_576
    error_limit: int = 10_000
    winding_down: bool = False
    """The worker claims nothing more: who has a good place to stop, as a pass has between two pages, stops there."""
    said: RateLimit = field(default_factory=RateLimit)
    """Of lines that repeat."""
    pid: int = field(default_factory=os.getpid)
