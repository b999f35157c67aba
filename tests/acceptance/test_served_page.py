"""`ultijobs tui --serve`: the cockpit in a browser, on loopback, read-only, and no other site's to drive."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import aiohttp

from ultijobs._ids import new_id
from ultijobs._queue.records import NewJob
from ultijobs.postgres.driver import PostgresDriver

CODES = re.compile(r"\x1b\[[0-9;?<>=]*[a-zA-Z]")


def free_port() -> int:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def start(url: str, port: int, *flags: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-m", "ultijobs_cli", "tui", "--serve", "--serve-port", str(port), *flags],
        env=os.environ | {"PYTHONPATH": os.pathsep.join(filter(None, sys.path)), "ULTIJOBS_DATABASE_URL": url},
        stderr=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        text=True,
    )


@asynccontextmanager
async def served(url: str, *flags: str) -> AsyncIterator[str]:
    port = free_port()
    process = await asyncio.to_thread(start, url, port, *flags)
    assert process.stderr is not None
    try:
        said = await asyncio.to_thread(process.stderr.readline)
        assert f"http://127.0.0.1:{port}" in said
        yield f"http://127.0.0.1:{port}"
    finally:
        process.send_signal(signal.SIGINT)
        process.wait(30)
        process.stderr.close()


async def shown(socket: aiohttp.ClientWebSocketResponse, *words: str) -> str:
    """What the page was sent until each word was in it, without the codes that place and colour it."""
    text = ""
    try:
        async with asyncio.timeout(60):
            while not all(word in text for word in words):
                message = await socket.receive()
                assert message.type in {aiohttp.WSMsgType.BINARY, aiohttp.WSMsgType.TEXT}, (message, text)
                if message.type is aiohttp.WSMsgType.BINARY:
                    text += CODES.sub("", message.data.decode(errors="replace"))
    except TimeoutError:
        raise AssertionError(f"{words} never came, but {text[-4000:]!r}") from None
    return text


async def test_a_browser_sees_incident_and_cannot_act(pg_url: str) -> None:
    queue = PostgresDriver(pg_url)
    await queue.open()
    await queue.enqueue([NewJob(new_id(), "send_fax", "{}", queue="legacy")])
    await queue.close()
    async with served(pg_url) as page, aiohttp.ClientSession() as browser:
        async with browser.get(page) as answer:
            assert answer.status == 200
            html = await answer.text()
        socket_url = page.replace("http", "ws") + "/ws"
        assert socket_url in html
        assert answer.headers["X-Frame-Options"] == "DENY"
        async with browser.ws_connect(f"{socket_url}?width=120&height=36", headers={"Origin": page}) as socket:
            await shown(socket, "STUCK", "no worker serves queue legacy", " ro ")
            await socket.send_json(["stdin", "p"])
            await shown(socket, "the cockpit is read-only")


async def test_another_site_s_page_can_neither_open_nor_name_it(pg_url: str) -> None:
    async with served(pg_url) as page, aiohttp.ClientSession() as browser:
        foreign = {"Origin": "https://evil.example"}
        async with browser.get(f"{page}/ws", headers=foreign) as answer:
            assert answer.status == 403
        async with browser.get(page, headers={"Host": "evil.example"}) as answer:
            assert answer.status == 403
        async with browser.get(page.replace("127.0.0.1", "localhost")) as answer:
            assert answer.status == 200
            assert f"ws://localhost:{page.rsplit(':', 1)[1]}/ws" in await answer.text()
