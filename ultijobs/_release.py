"""Which release of ultijobs this is."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["release"]


def release() -> str:
    """The version of this installation; `source` where none is installed."""
    try:
        return version("ultijobs")
    except PackageNotFoundError:
        return "source"
