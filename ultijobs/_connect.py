"""Opens a driver by its URL. Each backing is imported only when its scheme is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from ultijobs._queue.driver import Driver
from ultijobs.errors import Invariant, NotImplementedYet

if TYPE_CHECKING:
    from ultijobs.postgres.tables import Tables

__all__ = ["driver_for", "tables_of"]

_LATER: Final = {"redis": "redis", "rediss": "redis", "nats": "nats", "tls": "nats"}
_FIX: Final = "use postgresql://USER@HOST/DB, embedded:DIR or memory:"


def driver_for(url: str, schema: str = "public") -> Driver:
    """The driver that `url` names, not opened yet.

    Raises `Invariant` for a scheme that is unknown or missing and `NotImplementedYet` for one that is planned. No
    message repeats the URL beyond its scheme, since it may hold a password.
    """
    if not isinstance(url, str) or not isinstance(schema, str):  # pyright: ignore[reportUnnecessaryIsInstance] - callers without types
        raise Invariant("the database URL and its schema are texts", fix=_FIX)
    scheme, colon, rest = url.partition(":")
    scheme = scheme.strip().lower()
    if not colon:
        raise Invariant("the database URL has no scheme", fix=_FIX)
    if scheme in _LATER:
        raise NotImplementedYet(f"the {_LATER[scheme]} driver is not built yet", fix=_FIX)
    match scheme:
        case "postgresql" | "postgres":
            from ultijobs.postgres import PostgresDriver  # noqa: PLC0415 - asyncpg is loaded when it is asked for

            return PostgresDriver(url, schema)
        case "embedded":
            if not rest:
                raise Invariant("embedded: names no directory", fix="write embedded:DIR, such as embedded:.ultijobs")
            from ultijobs.postgres.embedded import EmbeddedDriver  # noqa: PLC0415 - as above

            return EmbeddedDriver(rest, schema)
        case "memory":
            from ultijobs.memory import MemoryDriver  # noqa: PLC0415 - as above

            return MemoryDriver()
        case _:
            raise Invariant(f"no driver answers to the scheme {scheme[:20]!r}", fix=_FIX)


def tables_of(driver: Driver) -> Tables | None:
    """Reads the tables that lie beside the queue of `driver`; None for a queue that lies in no SQL database."""
    found: Tables | None = getattr(driver, "tables", None)
    return found
