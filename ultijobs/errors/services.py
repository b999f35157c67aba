"""What the database, other services and the process itself can answer."""

from __future__ import annotations

from ultijobs.errors.base import UltijobsError

__all__ = [
    "Draining",
    "DriverUnavailable",
    "MetricsUnavailable",
    "Overloaded",
    "RateLimited",
    "SchemaOutdated",
    "TimedOut",
]


class DriverUnavailable(UltijobsError):
    """The database does not answer."""

    code = "X_DRIVER_UNAVAILABLE"
    title = "The database does not answer"
    retry = "retryable"
    default_fix = "check the address, that the server runs, and that it has connections left"


class SchemaOutdated(UltijobsError):
    """The tables and this release do not fit."""

    code = "X_SCHEMA_OUTDATED"
    title = "The tables and this release do not fit"
    default_fix = "ultijobs migrate"


class MetricsUnavailable(UltijobsError):
    """The port for metrics cannot be had."""

    code = "X_METRICS_UNAVAILABLE"
    title = "The port for metrics cannot be had"
    default_fix = "give another --metrics-port"


class RateLimited(UltijobsError):
    """The other side asks for fewer requests."""

    code = "X_RATE_LIMITED"
    title = "The other side asks for fewer requests"
    retry = "retry-after"
    default_fix = 'raise it with meta={"retry_after_seconds": n}'


class Overloaded(UltijobsError):
    """The other side is overloaded."""

    code = "X_OVERLOADED"
    title = "The other side is overloaded"
    retry = "retry-after"
    default_fix = 'raise it with meta={"retry_after_seconds": n}'


class TimedOut(UltijobsError):
    """Something took too long."""

    code = "X_TIMEOUT"
    title = "Something took too long"
    retry = "retryable"
    default_fix = "raise the limit, or split the work"


class Draining(UltijobsError):
    """The process is shutting down."""

    code = "X_DRAINING"
    title = "The process is shutting down"
    retry = "retryable"
    default_fix = "nothing to do: the work is delivered again"
