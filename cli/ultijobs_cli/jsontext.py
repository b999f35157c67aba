"""JSON given on the command line: as it stands, from a file, or from stdin."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path

from ultijobs_cli import options

__all__ = ["json_text"]


def json_text(flag: str, given: str, example: Callable[[], str]) -> str:
    """The text that `given` means, which is JSON. Raises `CliBadFlag`, with the example of what to write."""
    try:
        if given == "-":
            given = sys.stdin.read()
        elif given.startswith("@"):
            given = Path(given[1:]).read_text(encoding="utf-8")
        json.loads(given)
    except OSError as error:
        raise options.bad(
            flag, f"{given[1:]} cannot be read: {error.strerror}", "give the path of a JSON file"
        ) from error
    except RecursionError as error:
        raise options.bad(flag, "is nested too deep", f"write {flag} {example()}") from error
    except ValueError as error:
        raise options.bad(flag, f"is not JSON: {error}", f"write {flag} {example()}") from error
    return given
