"""The signal that takes a handler off its worker until a step's wake time."""

from __future__ import annotations

__all__ = ["Suspended"]


class Suspended(BaseException):
    """Ends a handler whose run sleeps or waits; no `except Exception` catches it.

    One that is swallowed still holds: the run gets no further step and is parked however the handler ends.
    """
