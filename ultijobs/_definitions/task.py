"""`@task`: declares when jobs are asked for by the calendar."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from itertools import groupby
from typing import Any, ClassVar, Literal, cast, get_args
from zoneinfo import ZoneInfo

from ultijobs._definitions import checks, cron, handlers
from ultijobs._definitions.ambient import application_of
from ultijobs._definitions.entries import Entries, entries
from ultijobs._queue.records import Enqueued
from ultijobs.errors import Invariant
from ultijobs.typing import AsyncTx

__all__ = ["CatchUp", "TaskHandle", "task"]

CatchUp = Literal["skip", "run-once", "run-all"]


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class TaskHandle:
    """What `@task` makes of a function. `fn` is the function; `schedule` is `cron` as it is evaluated."""

    kind: ClassVar[str] = "task"

    fn: Entries
    name: str
    cron: str
    schedule: str
    tz: str
    catch_up: CatchUp
    max_catch_up: int
    is_async: bool

    def __repr__(self) -> str:
        return f"<task {self.name}>"

    async def enqueue(self, *, tx: AsyncTx | Literal[False] | None = None) -> list[Enqueued]:
        """Asks for the entries of now, under the plain key of each job; the schedule goes on as if it had not.

        Goes to the ambient application like `JobHandle.enqueue`. Jobs of one handle in a row are stored in one
        transaction; what was stored before an error stays, and the keys make asking again safe.
        """
        application = application_of(self, f"task {self.name}")
        asked = await entries(self, datetime.now(ZoneInfo(self.tz)))
        answers: list[Enqueued] = []
        for handle, requests in groupby(asked, key=lambda request: request.handle):
            answers += await application.enqueue_many(handle, list(requests), tx=tx)
        return answers


def task(
    *,
    cron: str,
    tz: str,
    catch_up: CatchUp = "skip",
    max_catch_up: int = 10,
    name: str | None = None,
) -> Callable[[Entries], TaskHandle]:
    """Declares a function of the occurrence, an aware time in the task's zone, that answers requests for jobs.

    A text whose minute or hour field begins with `*` follows real time over clock changes; any other fires once per
    local day, inside a gap at the first valid instant. Raises `CronInvalid`, `TimezoneInvalid` or `Invariant` here.

    Args:
        cron: 5 fields, or 6 with leading seconds, or a macro such as `@daily`.
        tz: An IANA zone, such as `Europe/Berlin`.
        catch_up: After an outage: `skip` fires the latest missed occurrence, `run-once` the earliest, `run-all` each.
        max_catch_up: The most occurrences that one outage makes up for.
        name: The durable name, else the function's own.

    """

    def declare(fn: Entries, /) -> TaskHandle:
        given: Any = fn
        named = checks.durable_name(name, given, "task: name")
        what = f"task {named}"
        _takes_an_occurrence(given, what)
        return TaskHandle(
            fn=fn,
            name=named,
            cron=cron,
            schedule=_schedule(cron, what),
            tz=_zone(tz, what),
            catch_up=cast("CatchUp", checks.choice(catch_up, f"{what}: catch_up", get_args(CatchUp))),
            max_catch_up=checks.whole(max_catch_up, f"{what}: max_catch_up", least=1, most=100_000),
            is_async=handlers.is_async(given),
        )

    return declare


def _schedule(text: str, what: str) -> str:
    return cron.normalise(text, f"{what}: cron")


def _zone(tz: str, what: str) -> str:
    return cron.zone(tz, f"{what}: tz").key


def _takes_an_occurrence(fn: Any, what: str) -> None:
    if not callable(fn):
        raise Invariant(f"@task is used on {fn!r:.100}, not on a function", fix="put @task on a def or async def")
    try:
        inspect.signature(fn).bind(datetime.min)  # noqa: DTZ901 - stands for any occurrence
    except (TypeError, ValueError) as error:
        raise Invariant(
            f"{what}: its function cannot take the occurrence: {error}", fix="take one argument, the occurrence"
        ) from error
