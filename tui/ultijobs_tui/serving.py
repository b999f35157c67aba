"""The cockpit in a browser: one process of its own for each page, on loopback and read-only unless told otherwise."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shlex
import signal
import sys
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from aiohttp import web
from aiohttp.typedefs import Handler, Middleware
from textual_serve.server import Server

from ultijobs.errors import Invariant
from ultijobs.inspection import Inspector
from ultijobs_tui.entry import Options, run
from ultijobs_tui.keyfile import load_keys

__all__ = ["Address", "CockpitServer", "serve"]

_SERVED: Final = "ULTIJOBS_SERVED"
_MOST_PAGES: Final = 8


@dataclass(frozen=True, slots=True)
class Address:
    """Where the page is. Raises `Invariant` for a host that others can reach, unless `remote` says so."""

    host: str = "127.0.0.1"
    port: int = 8000
    remote: bool = False
    """Others may reach it. There is no login: whoever can, sees the queue."""

    def __post_init__(self) -> None:
        if not self.remote and not self.loopback:
            raise Invariant(
                f"{self.host} can be reached from other machines, and the page asks nobody who they are",
                fix="leave --serve-host out, put a proxy with a login before it, or add --allow-remote",
            )

    @property
    def loopback(self) -> bool:
        try:
            return self.host == "localhost" or ip_address(self.host.strip("[]")).is_loopback
        except ValueError:
            return False

    @property
    def url(self) -> str:
        return f"http://{f'[{self.host}]' if ':' in self.host else self.host}:{self.port}"


class CockpitServer(Server):
    """Answers pages of its own address alone, so that no other site's page can drive the cockpit behind it."""

    def __init__(self, address: Address, title: str) -> None:
        self._asked: ContextVar[str] = ContextVar("asked", default=address.url)
        command = shlex.join([sys.executable, "-m", "ultijobs_tui.serving"])
        super().__init__(command, address.host, address.port, title)  # pyright: ignore[reportUnknownMemberType] - its own annotation
        self._address = address
        self._open = 0

    @property
    def public_url(self) -> str:
        """The address that the browser itself asked for."""
        return self._asked.get()

    @public_url.setter
    def public_url(self, value: str) -> None:
        """Each request says it."""

    async def run(self, on_ready: Callable[[str], None]) -> None:
        """Serves until SIGINT or SIGTERM. Raises `Invariant` where the port is taken."""
        runner = web.AppRunner(await self._make_app(), access_log=None)
        await runner.setup()
        try:
            await web.TCPSite(runner, self.host, self.port).start()
            on_ready(self._address.url)
            await _interrupted()
        except OSError as error:
            raise Invariant(
                f"{self._address.url} cannot be served: {error.strerror or error}",
                fix="--serve-port with another number",
            ) from error
        finally:
            await runner.cleanup()

    async def _make_app(self) -> web.Application:
        app = await super()._make_app()
        app.middlewares.append(self._guard())
        return app

    async def on_startup(self, app: web.Application) -> None:
        """Whoever runs it says where it is."""

    async def handle_websocket(self, request: web.Request) -> web.WebSocketResponse:
        if self._open >= _MOST_PAGES:
            raise web.HTTPServiceUnavailable(text=f"{_MOST_PAGES} pages are open already: close one")
        self._open += 1
        try:
            return await super().handle_websocket(request)
        finally:
            self._open -= 1

    def _guard(self) -> Middleware:
        @web.middleware
        async def guard(request: web.Request, handler: Handler) -> web.StreamResponse:
            if not self._named(request.host):
                raise web.HTTPForbidden(text=f"this page is at {self._address.url}")
            origin = request.headers.get("Origin")
            if origin is not None and urlsplit(origin).netloc != request.host:
                raise web.HTTPForbidden(text="another site's page may not open this one")
            self._asked.set(f"{request.scheme}://{request.host}")
            response = await handler(request)
            if not response.prepared:
                response.headers["X-Frame-Options"] = "DENY"
                response.headers["Referrer-Policy"] = "no-referrer"
            return response

        return guard

    def _named(self, host: str) -> bool:
        """A name that leads here though it is not ours is one that somebody else gave to our address."""
        if not self._address.loopback:
            return True
        return host in {f"{name}:{self.port}" for name in ("localhost", "127.0.0.1", "[::1]", self.host)}


def serve(url: str, schema: str, options: Options, address: Address, on_ready: Callable[[str], None]) -> None:
    """Serves the cockpit of `url` until it is interrupted; `on_ready` gets the page's address.

    Raises `Invariant` where acts were allowed on a page that others can reach, and where the port is taken.
    """
    if address.remote and not options.read_only:
        raise Invariant(
            "whoever reaches the page could act, and it asks nobody who they are",
            fix="leave --read-write or --allow-remote out",
        )
    # Its own environment tells each page's process: an argument would show the address of the database to everybody.
    os.environ[_SERVED] = json.dumps({"url": url, "schema": schema, "options": _words(options)})
    asyncio.run(CockpitServer(address, "ultijobs").run(on_ready))


async def _interrupted() -> None:
    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        with contextlib.suppress(NotImplementedError):  # Windows: there ctrl+c ends the loop itself
            loop.add_signal_handler(number, ended.set)
    await ended.wait()


def _words(options: Options) -> dict[str, object]:
    """What a page's process must know of the flags; it reads the keys itself."""
    names = ("job", "where", "view", "queue", "tenant", "read_only", "refresh", "no_color", "ascii", "theme", "actor")
    return {name: getattr(options, name) for name in names}


def main() -> int:
    """One page's process: the driver that its parent has named draws to the browser."""
    told = json.loads(os.environ.pop(_SERVED))
    options = Options(**told["options"], keys=load_keys(directory=Path.cwd()))
    return run(Inspector.connect(told["url"], told["schema"], role="tui", actor=options.actor, source="tui"), options)


if __name__ == "__main__":
    sys.exit(main())
