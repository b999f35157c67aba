"""The way in: flags are checked before anything opens, `--once` is plain text, leaving is prompt."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import textwrap
import time
from dataclasses import replace

import pytest

from tests.tui import data
from tests.tui.fake import FakeSource, empty_source
from ultijobs.errors import DriverUnavailable, FilterInvalid, Invariant
from ultijobs.inspection import Inspector
from ultijobs_tui.entry import Options, print_once, run
from ultijobs_tui.frame import Needs
from ultijobs_tui.keymap import DEFAULT
from ultijobs_tui.source import LiveSource, title_of

ENVIRONMENT = os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}


@pytest.mark.parametrize(
    ("options", "error"),
    [
        (Options(view="nowhere"), Invariant),
        (Options(theme="neon"), Invariant),
        (Options(where="stat:dead"), FilterInvalid),
    ],
)
def test_flags_that_cannot_be_used_are_refused_before_anything_opens(options: Options, error: type[Exception]) -> None:
    with pytest.raises(error):
        run(Inspector.connect("nothing-is-opened:"), options)


async def test_once_prints_incident_as_plain_text(capsys: pytest.CaptureFixture[str]) -> None:
    await print_once(FakeSource())
    text = capsys.readouterr().out
    assert "\x1b" not in text
    for words in ("3,902 dead letters", "7f3a TimeoutError", 'PAUSED by ops "provider down"', "no worker serves queue"):
        assert words in text


async def test_once_fails_when_a_part_could_not_be_read(capsys: pytest.CaptureFixture[str]) -> None:
    assert await print_once(FakeSource()) == 0
    assert await print_once(FakeSource(failures={"overview": "X_DRIVER_UNAVAILABLE: away"})) == 1
    assert "X_DRIVER_UNAVAILABLE: away" in capsys.readouterr().out


async def test_once_says_so_when_nothing_is_stuck(capsys: pytest.CaptureFixture[str]) -> None:
    await print_once(empty_source())
    assert "Nothing is stuck. oldest ready 0.8s · 0 dead" in capsys.readouterr().out


@pytest.mark.parametrize("view", [tab.id.removeprefix("tab.") for tab in DEFAULT.tabs()])
async def test_once_prints_every_screen_with_its_whole_list(capsys: pytest.CaptureFixture[str], view: str) -> None:
    source = FakeSource(live=True)
    await print_once(source, Options(view=view))
    text = capsys.readouterr().out
    assert "\x1b" not in text
    assert "reading…" not in text
    assert text.startswith("ultijobs  db-eu-1:5432/shop  2026-03-14T14:16:03Z\n")
    assert len(text.splitlines()) > 4


async def test_once_prints_a_filter_a_tenant_and_a_job(capsys: pytest.CaptureFixture[str]) -> None:
    source = FakeSource(live=True)
    await print_once(source, Options(where="state:dead", tenant="t1"))
    assert (source.fetched[-1].page.where, source.fetched[-1].tenant) == ("state:dead", "t1")
    assert "filter state:dead" in capsys.readouterr().out
    await print_once(source, Options(job=data.uid(1).hex[-8:]))
    assert "3 recorded" in capsys.readouterr().out


async def test_once_raises_what_reading_raises() -> None:
    with pytest.raises(OSError, match="refused"):
        await print_once(FakeSource(live=True, error=OSError("connection refused")))


async def test_once_in_ascii_is_ascii(capsys: pytest.CaptureFixture[str]) -> None:
    await print_once(FakeSource(), Options(ascii=True))
    assert capsys.readouterr().out.isascii()


async def test_once_shows_hostile_text_inert(capsys: pytest.CaptureFixture[str]) -> None:
    stuck = [replace(data.stuck()[2], why="\x1b[2J\x07 PAUSED \u202eby")]
    await print_once(FakeSource(overview=data.overview(stuck)))
    assert "\\x1b[2J\\x07 PAUSED \\u202eby" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("url", "title"),
    [
        ("postgresql://ops@db-eu-1:5432/shop", "db-eu-1/shop"),
        ("postgresql://db:6432/shop?pgbouncer=1", "db:6432/shop"),
        ("postgresql:///postgres?host=/tmp/demo/run", "demo/postgres"),
        ("memory:", "memory:"),
        ("embedded:/srv/shop/pgdata", "/srv/shop/pgdata"),
        ("embedded:./pgdata", "./pgdata"),
    ],
)
def test_the_title_is_host_and_database(url: str, title: str) -> None:
    assert title_of(url) == title


def test_the_process_is_gone_within_a_second_though_a_thread_and_a_socket_hang() -> None:
    """A teardown that never ends: the watch that `run` sets ends the process, with its exit code."""
    script = """
        import asyncio, time
        from ultijobs_tui import entry

        class Hanging:
            async def __aenter__(self):
                await asyncio.get_running_loop().run_in_executor(None, lambda: None)
                asyncio.get_running_loop().run_in_executor(None, time.sleep, 60)
                return self
            async def __aexit__(self, *_):
                await asyncio.sleep(60)

        async def shown(source, options, **_):
            print("left", time.monotonic(), flush=True)
            return 0

        entry.LiveSource = lambda inspector, **_: inspector
        entry.run_source = shown
        entry.run(Hanging())
    """
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(script)],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
        env=ENVIRONMENT,
    )
    ended = time.monotonic()
    assert done.returncode == 0, done.stderr
    assert ended - float(done.stdout.split()[1]) < 3


async def test_the_command_line_loads_no_screen() -> None:
    script = "import sys, ultijobs_cli.app; sys.exit('textual' in sys.modules)"
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", script, env=ENVIRONMENT)
    assert await process.wait() == 0


async def test_a_statement_over_its_limit_is_a_part_that_failed_and_not_a_lost_connection() -> None:
    class QueryCanceledError(Exception):
        pass

    class Slow(Inspector):
        def __init__(self) -> None: ...

        async def overview(self, **_kw):
            raise DriverUnavailable("db does not answer") from QueryCanceledError("statement timeout")

        async def now(self):
            return data.NOW

    frame = await LiveSource(Slow()).fetch(Needs(overview=True))
    assert (frame.overview, dict(frame.failures)) == (
        None,
        {"overview": "statement timeout · Database shows what holds it up"},
    )


async def test_a_lost_connection_fails_the_whole_frame() -> None:
    class Lost(Inspector):
        def __init__(self) -> None: ...

        async def overview(self, **_kw):
            raise DriverUnavailable("db does not answer") from ConnectionResetError("gone")

    with pytest.raises(DriverUnavailable):
        await LiveSource(Lost()).fetch(Needs(overview=True))
