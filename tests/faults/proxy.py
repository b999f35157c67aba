"""A TCP proxy before a Postgres server that breaks connections on demand, told apart by their application_name.

It lives in a thread of its own, so that a test which blocks or awaits never holds it up. Every command takes a pattern
(`fnmatch`) of application names and holds for connections that are open and for those still to come, until `heal`.
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
import struct
import threading
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from typing import Self, TypeVar
from urllib.parse import quote, unquote, urlsplit, urlunsplit

T = TypeVar("T")
SSL_REQUEST, GSS_REQUEST, CANCEL_REQUEST = 80877103, 80877104, 80877102


@dataclass
class Rule:
    """What happens to connections of one pattern."""

    refuse: bool = False
    stall: bool = False
    swallow: bool = False
    delay: float = 0.0
    request_delay: float = 0.0
    trip: bytes = b""
    trip_swallows: bool = False
    tripped: int = 0


@dataclass(eq=False)
class Link:
    """One client connection and its twin to the server."""

    app: str
    client: asyncio.StreamWriter
    server: asyncio.StreamWriter
    swallowing: bool = False
    gates: list[asyncio.Event] = field(default_factory=list)

    def reset(self) -> None:
        for writer in (self.client, self.server):
            sock: socket.socket | None = writer.get_extra_info("socket")
            if sock is not None and sock.family in {socket.AF_INET, socket.AF_INET6}:
                with contextlib.suppress(OSError):
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            writer.transport.abort()


class Proxy:
    """Forwards to the server of `dsn`; `url` is the same address through the proxy."""

    def __init__(self, dsn: str) -> None:
        parts = urlsplit(dsn)
        query = dict(pair.partition("=")[::2] for pair in parts.query.split("&") if pair)
        self._host = unquote(query.pop("host", "")) or parts.hostname or "127.0.0.1"
        self._upstream_port = int(query.pop("port", "") or parts.port or 5432)
        self._parts, self._query = parts, query
        self._rules: dict[str, Rule] = {}
        self._links: set[Link] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="fault-proxy", daemon=True)
        self._server: asyncio.Server | None = None
        self.port = 0

    # -- life ------------------------------------------------------------------------------------------
    def __enter__(self) -> Self:
        self._thread.start()
        asyncio.run_coroutine_threadsafe(self._open(), self._loop).result(10)
        return self

    def __exit__(self, *_: object) -> None:
        asyncio.run_coroutine_threadsafe(self._close(), self._loop).result(10)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(10)
        self._loop.close()

    @property
    def url(self) -> str:
        user = ""
        if self._parts.username:
            user = quote(self._parts.username)
            user += f":{quote(self._parts.password)}@" if self._parts.password else "@"
        query = "&".join(f"{key}={value}" for key, value in self._query.items())
        return urlunsplit((self._parts.scheme, f"{user}127.0.0.1:{self.port}", self._parts.path, query, ""))

    # -- commands --------------------------------------------------------------------------------------
    def refuse(self, app: str = "*") -> None:
        """Resets what is open and every new connection."""

        def act() -> None:
            self._rule(app).refuse = True
            self._reset(app)

        self._do(act)

    def reset(self, app: str = "*") -> int:
        """Resets what is open, once; says how many that were."""
        return self._do(lambda: self._reset(app))

    def delay(self, seconds: float, app: str = "*", *, requests: bool = False) -> None:
        """Delivers every answer (or request) that much later, in order."""

        def act() -> None:
            rule = self._rule(app)
            if requests:
                rule.request_delay = seconds
            else:
                rule.delay = seconds

        self._do(act)

    def stall(self, app: str = "*") -> None:
        """Holds every byte of both directions back until `heal` delivers them."""
        self._do(lambda: setattr(self._rule(app), "stall", True))

    def swallow(self, app: str = "*") -> None:
        """Throws every answer away; the connections that lost one stay silent for ever."""
        self._do(lambda: setattr(self._rule(app), "swallow", True))

    def trip(self, needle: bytes, app: str = "*", *, swallow: bool = False) -> None:
        """The next request that holds `needle` breaks its connection, once.

        It does not reach the server; with `swallow` it does, and its answer is thrown away before the reset.
        """

        def act() -> None:
            rule = self._rule(app)
            rule.trip, rule.trip_swallows = needle, swallow

        self._do(act)

    def tripped(self, app: str = "*") -> int:
        """How often `trip` went off."""
        return self._do(lambda: self._rule(app).tripped)

    def heal(self, app: str = "*") -> None:
        """Forgets the commands of this very pattern (`*`: of all) and delivers what was held back."""

        def act() -> None:
            if app == "*":
                self._rules.clear()
            else:
                self._rules.pop(app, None)
            for link in self._links:
                for gate in link.gates:
                    gate.set()

        self._do(act)

    def connections(self, app: str = "*") -> int:
        return self._do(lambda: sum(fnmatchcase(link.app, app) for link in self._links))

    # -- inside the thread -----------------------------------------------------------------------------
    def _do(self, act: Callable[[], T]) -> T:
        async def run() -> T:
            return act()

        return asyncio.run_coroutine_threadsafe(run(), self._loop).result(10)

    def _rule(self, app: str) -> Rule:
        return self._rules.setdefault(app, Rule())

    def _of(self, app: str) -> Iterator[Rule]:
        return (rule for pattern, rule in list(self._rules.items()) if fnmatchcase(app, pattern))

    def _reset(self, app: str) -> int:
        hit = [link for link in self._links if fnmatchcase(link.app, app)]
        for link in hit:
            link.reset()
        return len(hit)

    async def _open(self) -> None:
        self._server = await asyncio.start_server(self._accept, "127.0.0.1", 0)
        self.port = self._server.sockets[0].getsockname()[1]

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
        for link in list(self._links):
            link.reset()
        for task in list(self._tasks):
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = self._loop.create_task(self._serve(reader, writer))
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            app, first = await self._startup(reader, writer)
            if any(rule.refuse for rule in self._of(app)):
                Link(app, writer, writer).reset()
                return
            upstream = (
                asyncio.open_unix_connection(f"{self._host}/.s.PGSQL.{self._upstream_port}")
                if self._host.startswith("/")
                else asyncio.open_connection(self._host, self._upstream_port)
            )
            server_reader, server_writer = await upstream
        except (OSError, asyncio.IncompleteReadError):
            writer.transport.abort()
            return
        link = Link(app, writer, server_writer)
        self._links.add(link)
        try:
            await asyncio.gather(
                self._pump(link, reader, server_writer, first, answers=False),
                self._pump(link, server_reader, writer, b"", answers=True),
            )
        finally:
            self._links.discard(link)
            writer.transport.abort()
            server_writer.transport.abort()

    async def _startup(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> tuple[str, bytes]:
        while True:
            head = await reader.readexactly(8)
            length, code = struct.unpack("!ii", head)
            body = await reader.readexactly(length - 8)
            if code in {SSL_REQUEST, GSS_REQUEST}:
                writer.write(b"N")
                continue
            if code == CANCEL_REQUEST:
                return "cancel", head + body
            words = body.split(b"\0")
            settings = dict(zip(words[::2], words[1::2], strict=False))
            return settings.get(b"application_name", b"").decode(), head + body

    async def _pump(
        self, link: Link, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, first: bytes, *, answers: bool
    ) -> None:
        held: asyncio.Queue[tuple[float, bytes]] = asyncio.Queue()
        delivery = self._loop.create_task(self._deliver(link, held, writer))
        try:
            if first:
                held.put_nowait((0.0, first))
            while True:
                try:
                    chunk = await reader.read(65_536)
                except OSError:
                    chunk = b""
                rules = list(self._of(link.app))
                if answers and chunk:
                    link.swallowing = link.swallowing or any(rule.swallow for rule in rules)
                    if link.swallowing:
                        continue
                if not answers and chunk and self._trips(link, rules, chunk):
                    continue
                wait = max((rule.delay if answers else rule.request_delay for rule in rules), default=0.0)
                held.put_nowait((self._loop.time() + wait, chunk))
                if not chunk:
                    await delivery
                    return
        finally:
            delivery.cancel()

    def _trips(self, link: Link, rules: list[Rule], chunk: bytes) -> bool:
        """True when the chunk must not reach the server."""
        for rule in rules:
            if rule.trip and rule.trip in chunk:
                rule.trip = b""
                rule.tripped += 1
                if not rule.trip_swallows:
                    link.reset()
                    return True
                link.swallowing = True
                self._loop.call_later(0.3, link.reset)
        return False

    async def _deliver(
        self, link: Link, held: asyncio.Queue[tuple[float, bytes]], writer: asyncio.StreamWriter
    ) -> None:
        gate = asyncio.Event()
        link.gates.append(gate)
        while True:
            due, chunk = await held.get()
            if (wait := due - self._loop.time()) > 0:
                await asyncio.sleep(wait)
            while any(rule.stall for rule in self._of(link.app)):
                gate.clear()
                await gate.wait()
            if not chunk:
                writer.transport.abort()
                link.client.transport.abort()
                link.server.transport.abort()
                return
            with contextlib.suppress(OSError):
                writer.write(chunk)
                await writer.drain()
