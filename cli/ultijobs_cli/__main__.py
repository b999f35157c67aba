"""The entry point of `ultijobs` and `python -m ultijobs_cli`."""

from __future__ import annotations

import gc
import sys

__all__ = ["main"]


def main() -> None:
    """Runs the command line of this process and exits."""
    gc.disable()  # nothing that is imported is garbage: looking for it takes longer than many a command
    try:
        from ultijobs_cli.app import app  # noqa: PLC0415 - a missing dependency gets a sentence, not a traceback
    except ModuleNotFoundError as missing:
        if missing.name != "typer":
            raise
        sys.stderr.write("the command line needs typer, which is not installed\nfix: pip install --upgrade ultijobs\n")
        sys.exit(4)
    except KeyboardInterrupt:
        sys.exit(130)
    gc.freeze()
    gc.enable()
    app()


if __name__ == "__main__":
    main()
