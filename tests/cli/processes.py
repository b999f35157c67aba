"""The command line as real processes, in a folder of their own."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Generator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

REPOSITORY = Path(__file__).parents[2]

SHOP = """
import asyncio
from pathlib import Path

from pydantic import BaseModel

from ultijobs import App, RetryPolicy, Step, job


class Order(BaseModel):
    id: str
    boxes: int = 1


@job(Order, idempotency_key=lambda order: order.id, tenant="none", retry=RetryPolicy(attempts=2, delay="100ms"))
async def ship(input: Order, step: Step) -> None:
    await step.run("pack", pack, input.boxes)


@job(Order, idempotency_key=lambda order: order.id, tenant="none", queue="slow")
async def wait(input: Order) -> None:
    Path(f"started-{input.id}").touch()
    await asyncio.sleep(600)


async def pack(boxes: int) -> int:
    return boxes


app = App(jobs=[ship, wait])
"""


@dataclass(frozen=True)
class Done:
    code: int
    out: str
    err: str

    @property
    def json(self) -> dict[str, Any]:
        [line] = self.out.splitlines()
        return json.loads(line)

    @property
    def data(self) -> dict[str, Any]:
        return self.json["data"]


@dataclass(frozen=True)
class Running:
    """A process under way, and what it has said on stdout and stderr."""

    process: subprocess.Popen[bytes]
    log: Path

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def signal(self, number: int) -> None:
        self.process.send_signal(number)

    def code(self, within: float = 40.0) -> int:
        return self.process.wait(within)


class Shop:
    """A folder with the application `shop:app`, and the command line run in it."""

    def __init__(self, folder: Path, url: str | None) -> None:
        self.folder = folder
        (folder / "shop.py").write_text(SHOP, encoding="utf-8")
        paths = os.pathsep.join(str(REPOSITORY / part) for part in (".", "cli", "tui"))
        kept = {key: value for key, value in os.environ.items() if not key.startswith(("ULTIJOBS_", "DATABASE_URL"))}
        self.env = kept | {"PYTHONPATH": paths, "ULTIJOBS_APP": "shop:app"}
        if url is not None:
            self.env["ULTIJOBS_DATABASE_URL"] = url

    def run(self, *words: str, input: str | None = None, within: float = 60.0, **env: str) -> Done:
        process = subprocess.run(
            [sys.executable, "-m", "ultijobs_cli", *words],
            cwd=self.folder,
            env=self.env | env,
            input=input,
            capture_output=True,
            text=True,
            timeout=within,
            check=False,
        )
        return Done(process.returncode, process.stdout, process.stderr)

    @contextmanager
    def started(self, *words: str) -> Generator[Running]:
        """A process of its own group, none of which outlives the block."""
        log = self.folder / "said"
        with log.open("wb") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", "ultijobs_cli", *words],
                cwd=self.folder,
                env=self.env,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                start_new_session=True,
            )
        try:
            yield Running(process, log)
        finally:
            with suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait(10)
