"""Runs the demo from end to end: database, tables, workers, rounds, drain, facts; and leaves nothing running."""

from __future__ import annotations

import asyncio
import dataclasses
import time
from collections.abc import AsyncGenerator, Awaitable, Callable, Generator
from contextlib import AsyncExitStack, asynccontextmanager, contextmanager, suppress
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from uuid import UUID

import asyncpg

from ultijobs import App
from ultijobs.errors import AppUnusable, DriverUnavailable
from ultijobs.postgres.embedded import EmbeddedServer
from ultijobs.postgres.migrate import migrate, migrations
from ultijobs_cli.demo import audit, closing, home, incidents, labels, outcome, rounds
from ultijobs_cli.demo.app import CREATE_REPORTS
from ultijobs_cli.demo.beginning import CREATE_ROUNDS
from ultijobs_cli.demo.fleet import Fleet, fleet

__all__ = ["Options", "Screen", "Tell", "cockpit", "run"]

TABLES = (CREATE_REPORTS, CREATE_ROUNDS, labels.CREATE_FILES)
LOOK = 0.25
"""Seconds between two looks at a round that is under way."""
BREATH = 5.0
"""Seconds between two rounds when a person watches."""

Tell = Callable[[str], None]
"""Says one line to the person; on stderr, so that stdout stays the result's."""
Screen = Callable[[str], Awaitable[None]]
"""Shows the database at this address until the person leaves."""


@dataclass(frozen=True, slots=True)
class Options:
    """Without `seconds` and without a screen the demo lasts one round."""

    seconds: float | None = None
    incidents: bool = False
    workers: int = 2
    directory: Path | None = None


@dataclass(frozen=True, slots=True)
class Stage:
    """What is up while the demo runs."""

    app: App[None]
    url: str
    connection: asyncpg.Connection[asyncpg.Record]
    fleet: Fleet
    ledger: rounds.Ledger
    first_round: int
    tell: Tell


async def run(options: Options, *, tell: Tell, screen: Screen | None = None) -> outcome.Outcome:
    """The whole demo, with whatever it started stopped again, also on an error or a signal."""
    began = time.monotonic()
    async with AsyncExitStack() as stack:
        directory = stack.enter_context(home.locked(options.directory or kept_home()))
        tell(f"starting PostgreSQL in {directory}")
        url = await stack.enter_async_context(database(directory))
        stack.enter_context(gone(directory))
        connection = await asyncpg.connect(url)
        stack.push_async_callback(connection.close)
        for table in TABLES:
            await connection.execute(table)
        started_at = await connection.fetchval("select now()")
        ledger, first_round = rounds.Ledger(), await outcome.last_round(connection) + 1
        async with fleet(url, workers=options.workers, log=directory / "worker.log") as running:
            jobs = [audit, closing, incidents, labels]
            app = await stack.enter_async_context(App(jobs=jobs, driver=url, limits=incidents.LIMITS))
            stage = Stage(app, url, connection, running, ledger, first_round, tell)
            tell(f"{options.workers} workers start; their log is {running.log}")
            await working(stage, options.workers, started_at)
            tell(f"the workers are up, {time.monotonic() - began:.1f} s after the start")
            tell(f"from another shell: ultijobs stats --database-url embedded:{directory}")
            await perform(stage, options, url, screen)
            tell("the workers drain")
        return await outcome.read_outcome(
            connection,
            ledger.ids,
            started_at=started_at,
            first_round=first_round,
            rounds=ledger.rounds,
            wall_s=time.monotonic() - began,
        )


def kept_home() -> Path:
    """The folder of demos with these very tables."""
    return home.default_home(*(step.sql for step in migrations()), *TABLES)


@asynccontextmanager
async def database(directory: Path) -> AsyncGenerator[str]:
    """The embedded server, migrated; it stops when its last user leaves."""
    server = EmbeddedServer(directory)
    url = await asyncio.to_thread(server.start)
    try:
        await migrate(url)
        yield url
    finally:
        await asyncio.to_thread(server.stop)


@contextmanager
def gone(directory: Path) -> Generator[None]:
    """Raises `DriverUnavailable` for whatever a server that went away makes of a statement."""
    try:
        yield
    except (asyncpg.InterfaceError, asyncpg.PostgresConnectionError, ConnectionError) as error:
        cause = f"the PostgreSQL of the demo, in {directory}, has gone away: {error}; what was stored is kept"
        raise DriverUnavailable(cause, fix="ultijobs demo") from error


async def perform(stage: Stage, options: Options, url: str, screen: Screen | None) -> None:
    """Gives work until the time is up, the round is done, or the screen is left."""
    if options.incidents:
        await rounds.enqueue_incidents(stage.app, stage.ledger)
    if screen is None:
        await work(stage, options.seconds)
        return
    quiet = dataclasses.replace(stage, tell=silence)
    giving = asyncio.create_task(work(quiet, options.seconds, repeat=True, breath=BREATH))
    try:
        await screen(url)
    finally:
        giving.cancel()
        with suppress(asyncio.CancelledError):
            await giving


async def working(stage: Stage, workers: int, since: datetime) -> None:
    """Returns when every worker has registered, so that the time of the rounds is theirs alone."""
    while await outcome.workers_up(stage.connection, since) < workers:
        alive(stage)
        await asyncio.sleep(LOOK / 5)


def alive(stage: Stage) -> None:
    """Raises `AppUnusable` when the workers have ended by themselves."""
    if not stage.fleet.alive:
        raise AppUnusable(f"the workers ended by themselves; see {stage.fleet.log}", fix=f"cat {stage.fleet.log}")


def silence(_line: str) -> None:
    """Says nothing: the screen is the cockpit's."""


async def cockpit(url: str) -> None:
    """Shows the cockpit on the demo's database until the person leaves it."""
    from ultijobs.inspection import Inspector  # noqa: PLC0415 - a headless demo needs no screen
    from ultijobs_tui.entry import run_source  # noqa: PLC0415 - likewise
    from ultijobs_tui.source import LiveSource  # noqa: PLC0415 - likewise

    async with Inspector.connect(url, role="tui", source="tui") as inspector:
        await run_source(LiveSource(inspector))


async def work(stage: Stage, seconds: float | None, *, repeat: bool = False, breath: float = 0.0) -> None:
    """Audits everything once; again and again with `repeat`, or until `seconds` are over."""
    names = list(audit.installed())
    end = None if seconds is None else time.monotonic() + seconds
    while True:
        ids = await rounds.enqueue_round(stage.app, stage.url, stage.ledger, names, stage.first_round)
        if not await finished(stage, ids, end) or (end is None and not repeat):
            return
        # A pass over the files that this round has found; while one is live that goes on.
        await labels.label_files.enqueue(force=True)
        await asyncio.sleep(breath)


async def finished(stage: Stage, ids: list[UUID], end: float | None) -> bool:
    """Follows one round; False when the time is up first. Raises `AppUnusable` when the workers end by themselves."""
    told = 0.0
    while True:
        alive(stage)
        now = time.monotonic()
        at = await outcome.progress_of(stage.connection, ids, stage.first_round)
        over = end is not None and now >= end
        if now - told >= 1.0 or over or not at.unfinished:
            told = now
            stage.tell(
                f"round {stage.ledger.rounds}  audited with {len(ids) - at.unfinished}/{len(ids)} jobs  "
                f"{at.files:,} files, {at.bytes / 1e6:,.0f} MB in all"
            )
        if over or not at.unfinished:
            return not over
        await asyncio.sleep(LOOK if end is None else min(LOOK, max(0.0, end - now)))
