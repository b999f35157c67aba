"""Runs one worker, as the command line does: `python -m tests.support.worker_main M:A --lease 3s …`."""

from __future__ import annotations

import asyncio
import importlib
import sys

from ultijobs import Worker, _log
from ultijobs.errors import UltijobsError


def main(words: list[str]) -> int:
    module, _, name = words[0].partition(":")
    options = dict(zip((word.lstrip("-").replace("-", "_") for word in words[1::2]), words[2::2], strict=True))
    _log.configure("json")
    try:
        app = getattr(importlib.import_module(module), name)
        worker = Worker(app, concurrency=int(options.pop("concurrency")), **options)
        asyncio.run(worker.run())
    except KeyboardInterrupt:
        return 130
    except UltijobsError as error:
        sys.stderr.write("\n".join(error.lines()) + "\n")
        return 4
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
