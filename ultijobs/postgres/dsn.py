"""Where the database is: the parsed URL, what asyncpg is told of it, and what may be shown of it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import parse_qsl, quote, urlencode, urlsplit, urlunsplit

from ultijobs.errors import DriverUnavailable

__all__ = ["Dsn"]

_TRUE: Final = frozenset({"1", "true", "yes", "on"})
_SECRET: Final = frozenset({"password", "sslpassword", "passfile"})


@dataclass(frozen=True, slots=True)
class Dsn:
    """A `postgresql://` URL. `shown` holds no password; `repr` neither."""

    connectable: str
    shown: str
    pgbouncer: bool

    @classmethod
    def parse(cls, url: str) -> Dsn:
        """Raises `DriverUnavailable` for a URL that is none of PostgreSQL's."""
        try:
            parts = urlsplit(url)
            _ = parts.port if "," not in parts.netloc else None
        except ValueError as mistake:
            raise DriverUnavailable(
                f"the database URL cannot be read: {mistake}", fix="write it as postgresql://user@host:5432/database"
            ) from None
        if parts.scheme not in {"postgresql", "postgres"}:
            raise DriverUnavailable(
                f"{parts.scheme or 'the empty word'}: is not a URL of PostgreSQL",
                fix="write it as postgresql://user@host:5432/database",
            )
        query = parse_qsl(parts.query, keep_blank_values=True)
        pooled = any(key == "pgbouncer" and value.lower() in _TRUE for key, value in query)
        kept = [(key, value) for key, value in query if key not in {"pgbouncer", "application_name"}]
        public = [(key, value) for key, value in kept if key.lower() not in _SECRET]
        login, at, place = parts.netloc.rpartition("@")
        shown_netloc = f"{login.partition(':')[0]}{at}{place}"
        return cls(
            connectable=urlunsplit(("postgresql", parts.netloc, parts.path, urlencode(kept, quote_via=quote), "")),
            shown=urlunsplit(
                ("postgresql", shown_netloc, parts.path, urlencode(public, quote_via=quote, safe="/"), "")
            ),
            pgbouncer=pooled,
        )

    def connect_arguments(self, role: str) -> dict[str, Any]:
        """What `asyncpg.connect` takes, besides time limits, for a plain connection of `role`."""
        arguments: dict[str, Any] = {"dsn": self.connectable}
        if self.pgbouncer:
            arguments["statement_cache_size"] = 0
        arguments["server_settings"] = {"application_name": f"ultijobs-{role}"}
        return arguments

    def __repr__(self) -> str:
        return f"Dsn({self.shown!r})"
