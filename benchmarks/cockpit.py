"""What the cockpit itself costs on a large table: first screen, a key, a second at rest, leaving.

`python benchmarks/cockpit.py [JOBS]` fills an embedded PostgreSQL as `refresh.py` does and drives `ultijobs tui` in a
pseudo-terminal, as an operator would.
"""

from __future__ import annotations

import asyncio
import fcntl
import os
import pty
import select
import statistics
import struct
import subprocess
import sys
import tempfile
import termios
import time

import psutil
from refresh import fill

from ultijobs.postgres.embedded import EmbeddedServer
from ultijobs.postgres.migrate import migrate

TABS = tuple(
    (label[0].encode(), f"[{label}]".encode())
    for label in (
        "2 Queues", "3 Jobs", "4 Leases", "5 Dead", "6 Workers", "7 Backfills", "8 Tasks", "9 Outbox", "0 Activity",
        "d Database", "1 Incident",
    )
)  # fmt: skip
REST = 30.0
STARTS = 4


class Terminal:
    """`ultijobs tui` with its output in hand."""

    def __init__(self, url: str) -> None:
        self.end, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 60, 120, 0, 0))
        self.process = subprocess.Popen(
            [sys.executable, "-m", "ultijobs_cli", "tui", "--database-url", url],
            stdin=theirs,
            stdout=theirs,
            stderr=theirs,
            env={key: value for key, value in os.environ.items() if key != "PYTHONDONTWRITEBYTECODE"},
            start_new_session=True,
        )
        os.close(theirs)

    def read(self, seconds: float, until: bytes | None = None) -> bytes:
        out, last = b"", time.perf_counter() + seconds
        while (left := last - time.perf_counter()) > 0 and (until is None or until not in out):
            if select.select([self.end], [], [], min(left, 0.05))[0]:
                try:
                    out += os.read(self.end, 65_536)
                except OSError:
                    break
        return out

    def press(self, key: bytes, until: bytes) -> float:
        """Milliseconds from the key to the word that it shows."""
        began = time.perf_counter()
        os.write(self.end, key)
        assert until in self.read(10, until)
        return (time.perf_counter() - began) * 1000


def opened(url: str) -> tuple[Terminal, float]:
    """A cockpit that shows what is stuck, and the seconds since its process was started."""
    began = time.perf_counter()
    terminal = Terminal(url)
    assert b"dead letters" in terminal.read(30, b"dead letters")
    return terminal, time.perf_counter() - began


def left(terminal: Terminal) -> float:
    """Seconds from `q` to the end of the process."""
    began = time.perf_counter()
    os.write(terminal.end, b"q")
    while terminal.process.poll() is None:
        terminal.read(0.02)
    return time.perf_counter() - began


def main(url: str) -> None:
    left(opened(url)[0])  # an installed package has its byte code; this start writes that of a checkout
    starts: list[float] = []
    for _ in range(STARTS):
        terminal, took = opened(url)
        starts.append(took)
        left(terminal)
    terminal, took = opened(url)
    starts.append(took)
    used = psutil.Process(terminal.process.pid)
    print(f"first screen        {statistics.median(starts):6.2f} s median, {max(starts):.2f} s worst of {len(starts)}")
    print(f"first screen, CPU   {sum(used.cpu_times()[:2]):6.2f} s")
    terminal.read(3)
    before, began = sum(used.cpu_times()[:2]), time.perf_counter()
    drawn = len(terminal.read(REST))
    spent, took = sum(used.cpu_times()[:2]) - before, time.perf_counter() - began
    print(f"at rest, CPU        {100 * spent / took:6.1f} % of a core")
    print(f"at rest, drawn      {drawn / took / 1000:6.1f} kB/s")
    for visit in ("first", "later"):
        answers = [terminal.press(key, word) for key, word in TABS]
        middle, most = statistics.median(answers), max(answers)
        print(f"{visit} visit of a tab {middle:6.0f} ms median, {most:.0f} ms worst of {len(answers)}")
    print(f"leaving             {left(terminal):6.2f} s")
    print(f"load of the machine {os.getloadavg()[0]:6.1f} on {os.cpu_count()} cores")


if __name__ == "__main__":
    with tempfile.TemporaryDirectory(prefix="ultijobs-bench-") as folder:
        server = EmbeddedServer(folder)
        try:
            address = server.start()
            asyncio.run(migrate(address))
            jobs = int(sys.argv[1]) if len(sys.argv) > 1 else 200_000
            asyncio.run(fill(address, jobs))
            main(address)
        finally:
            server.stop()
