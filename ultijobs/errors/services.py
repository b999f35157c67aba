"""What the database, other services and the process itself can answer."""

from __future__ import annotations

from ultijobs.errors.base import UltijobsError

__all__ = [
    "Draining",
    "DriverUnavailable",
    "MetricsUnavailable",
    "Overloaded",
    "RateLimited",
    "RightsMissing",
    "SchemaOutdated",
    "TimedOut",
]


class DriverUnavailable(UltijobsError):
    """The database refused the connection, did not answer in time, went away, or accepts no writes.

    Whether a statement that was under way took effect is not known; an enqueue that is repeated meets its own key.
    """

    code = "X_DRIVER_UNAVAILABLE"
    title = "The database does not answer"
    retry = "retryable"
    default_fix = "check the address, that the server runs, and that it has connections left"


class SchemaOutdated(UltijobsError):
    """The tables are missing, older than this release, or newer and marked as incompatible; nothing was changed."""

    code = "X_SCHEMA_OUTDATED"
    title = "The tables do not match this release"
    default_fix = "ultijobs migrate"


class RightsMissing(SchemaOutdated):
    """The tables fit, and the role that connects may not use them."""

    code = "X_RIGHTS_MISSING"
    title = "The role that connects lacks a right in the database"
    default_fix = "ultijobs explain X_RIGHTS_MISSING"


class MetricsUnavailable(UltijobsError):
    """The process cannot listen on `--metrics-port`; nothing was claimed."""

    code = "X_METRICS_UNAVAILABLE"
    title = "The metrics port is not available"
    default_fix = "give another --metrics-port"


class RateLimited(UltijobsError):
    """For handlers: the service that they call asks for fewer requests.

    The attempt counts; the next one waits for `meta["retry_after_seconds"]`, else for the policy's backoff.
    """

    code = "X_RATE_LIMITED"
    title = "The service asks for fewer requests"
    retry = "retry-after"
    default_fix = 'raise it with meta={"retry_after_seconds": n}'


class Overloaded(UltijobsError):
    """For handlers: the service that they call is overloaded. Waits as `RateLimited` does."""

    code = "X_OVERLOADED"
    title = "The service is overloaded"
    retry = "retry-after"
    default_fix = 'raise it with meta={"retry_after_seconds": n}'


class TimedOut(UltijobsError):
    """For handlers: something took too long. The attempt is retried by the policy."""

    code = "X_TIMEOUT"
    title = "Something took too long"
    retry = "retryable"
    default_fix = "raise the limit, or split the work"


class Draining(UltijobsError):
    """The process is shutting down: it takes no new work, and what it had is delivered again."""

    code = "X_DRAINING"
    title = "The process is shutting down"
    retry = "retryable"
    default_fix = "nothing to do: the work is delivered again"
