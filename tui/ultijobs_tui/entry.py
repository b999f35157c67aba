"""The way in: `run` opens the queue, shows the cockpit until it is left, and is gone within a second."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import shutil
import signal
import sys
import threading
from collections.abc import Generator
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from datetime import datetime
from difflib import get_close_matches
from pathlib import Path
from typing import Final

from ultijobs.errors import Invariant
from ultijobs.inspection import Inspector, parse_where
from ultijobs_tui.app import Cockpit
from ultijobs_tui.desk import Settings
from ultijobs_tui.keymap import DEFAULT, Keymap
from ultijobs_tui.once import once_text
from ultijobs_tui.recording import Recorder, Recording
from ultijobs_tui.replay import ReplaySource
from ultijobs_tui.running import TaskRunner
from ultijobs_tui.source import LiveSource, Source
from ultijobs_tui.theme import THEMES, theme_names
from ultijobs_tui.travel import moment_of

__all__ = ["Options", "print_once", "replay", "run", "run_source"]

_VIEWS: Final = tuple(tab.id.removeprefix("tab.") for tab in DEFAULT.tabs())
_CLOSE_SECONDS: Final = 0.1
_LEAVE_SECONDS: Final = 0.25


@dataclass(frozen=True, slots=True)
class Options:
    """The flags of `ultijobs tui`."""

    job: str | None = None
    where: str | None = None
    view: str = "incident"
    queue: str | None = None
    """Begins at Queues, on this one."""
    tenant: str | None = None
    """Narrows every screen."""
    read_only: bool = False
    once: bool = False
    refresh: float = 1.0
    """Seconds between two refreshes, at least 0.25."""
    no_color: bool = False
    no_mouse: bool = False
    ascii: bool = False
    theme: str | None = None
    keys: Keymap = DEFAULT
    record: Path | None = None
    """A new file that gets what is read."""
    replay: Path | None = None
    """A recorded file that is shown in place of a database."""
    at: str | None = None
    """Where the recording is opened: 14:02, 14:02:11 or an instant."""
    actor: str | None = None


def run(
    opening: AbstractAsyncContextManager[Inspector], options: Options | None = None, *, tasks: TaskRunner | None = None
) -> int:
    """Enters `opening`, shows the cockpit (or prints it once) and returns the exit code.

    `tasks` runs the application's tasks, where its code is at hand; it is closed at the end.
    Raises what `opening` does when it cannot start. Once started it outlives a lost connection,
    and when it is left the process goes on within a second, whatever hangs.
    """
    chosen = options or Options()
    check(chosen)
    with _leaving() as leaving:
        code = asyncio.run(_run(opening, chosen, leaving, tasks))
    gc.freeze()  # what is left goes with the process: looking through it for garbage is what an exit waits for
    return code


def replay(options: Options) -> int:
    """Shows the recording `options.replay` until it is left; no database is opened.

    Raises `Invariant` for a file that is not a recording, and for a time that cannot be read.
    """
    check(options)
    assert options.replay is not None
    past = Recording(options.replay)
    at = None if options.at is None else moment_of(options.at, past.at(len(past) - 1))
    if options.at is not None and at is None:
        raise Invariant(f"--at: {options.at!r} is not a time", fix="write --at 14:02, or --at 2026-03-14T14:02:00Z")
    source = ReplaySource(f"{options.replay.name} of {past.title}")
    if options.once:
        return asyncio.run(print_once(source, options, past=past, at=at))
    return asyncio.run(run_source(source, options, past=past, at=at))


def check(options: Options) -> None:
    """Raises `FilterInvalid` or `Invariant` for flags that cannot be used, before anything is opened."""
    if options.view not in _VIEWS:
        raise Invariant(f"there is no screen {options.view!r}", fix=f"--view {' or '.join(_VIEWS)}")
    if options.where is not None:
        parse_where(options.where)
    if options.at is not None and options.replay is None:
        raise Invariant("--at is a moment of a recording, and none is named", fix="--replay FILE --at TIME")
    if options.theme is not None and options.theme not in theme_names():
        near = get_close_matches(options.theme, theme_names(), 1)
        fix = f"--theme {near[0] if near else THEMES[0].name}; there are {', '.join(theme_names())}"
        raise Invariant(f"there is no theme {options.theme!r}", fix=fix)


async def _run(
    opening: AbstractAsyncContextManager[Inspector], options: Options, leaving: _Leaving, tasks: TaskRunner | None
) -> int:
    inspector = await opening.__aenter__()
    recorder: Recorder | None = None
    try:
        source = LiveSource(inspector, tasks=tasks)
        if options.record is not None and not options.once:
            recorder = Recorder(options.record, source.title)
        if options.once:
            leaving.code = await print_once(source, options)
        else:
            leaving.code = await run_source(source, options, recorder=recorder)
    finally:
        if recorder is not None:
            recorder.close()
        leaving.begun.set()
        with contextlib.suppress(Exception):
            async with asyncio.timeout(_CLOSE_SECONDS):
                await opening.__aexit__(None, None, None)
                if tasks is not None:
                    await tasks.close()
    return leaving.code


async def run_source(
    source: Source,
    options: Options | None = None,
    *,
    past: Recording | None = None,
    at: datetime | None = None,
    recorder: Recorder | None = None,
) -> int:
    """Shows the cockpit on a source that is open already and stays so; 0 when it was left by the operator."""
    chosen = options or Options()
    if chosen.no_color:
        os.environ["NO_COLOR"] = "1"
    app = Cockpit(source, _settings(chosen, at=at), past=past, recorder=recorder)
    with _told_to_leave(app):
        code = await app.run_async(mouse=not chosen.no_mouse)
    return app.return_code or 0 if code is None else code


def _settings(chosen: Options, *, at: datetime | None, still: bool = False) -> Settings:
    return Settings(
        job=chosen.job,
        where=chosen.where,
        view=chosen.view,
        read_only=chosen.read_only,
        refresh=max(0.25, chosen.refresh),
        ascii=chosen.ascii,
        tenant=chosen.tenant,
        queue=chosen.queue,
        theme=chosen.theme,
        keys=chosen.keys,
        still=still,
        at=at,
    )


@contextlib.contextmanager
def _told_to_leave(app: Cockpit) -> Generator[None]:
    """A closed terminal and SIGTERM are ways to leave: what the caller has opened is closed after them."""
    loop = asyncio.get_running_loop()
    signals = [getattr(signal, name) for name in ("SIGHUP", "SIGTERM") if hasattr(signal, name)]
    try:
        for number in signals:
            loop.add_signal_handler(number, app.exit, 0)
    except (NotImplementedError, RuntimeError, ValueError):
        # Windows, and a loop outside of the main thread, hear no signals: there the terminal alone says when to leave.
        signals = []
    try:
        yield
    finally:
        for number in signals:
            loop.remove_signal_handler(number)


async def print_once(
    source: Source, options: Options | None = None, *, past: Recording | None = None, at: datetime | None = None
) -> int:
    """Prints the screen of the flags as plain text on stdout; 1 when a part of it could not be read, else 0."""
    chosen = options or Options()
    width = max(80, shutil.get_terminal_size((120, 36)).columns)
    app = Cockpit(source, _settings(chosen, at=at, still=True), past=past)
    sys.stdout.write(await once_text(app, width=width, ascii_only=chosen.ascii))
    sys.stdout.flush()
    return 1 if app.read_frame is not None and app.read_frame.failures else 0


@dataclass(slots=True)
class _Leaving:
    code: int = 1
    begun: threading.Event = field(default_factory=threading.Event)
    done: threading.Event = field(default_factory=threading.Event)

    def watch(self) -> None:
        """Ends the process when the teardown, once begun, takes longer than it may."""
        self.begun.wait()
        if not self.done.wait(_LEAVE_SECONDS):
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(self.code)


@contextlib.contextmanager
def _leaving() -> Generator[_Leaving]:
    """A thread or a socket that hangs does not hold the terminal after the cockpit was left."""
    leaving = _Leaving()
    threading.Thread(target=leaving.watch, name="ultijobs-tui-leave", daemon=True).start()
    try:
        yield leaving
    finally:
        leaving.done.set()
        leaving.begun.set()
