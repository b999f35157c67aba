"""`EmbeddedDriver`: the Postgres driver on a server of our own that runs while somebody uses it."""

from __future__ import annotations

import asyncio

from ultijobs.postgres.cluster import EmbeddedServer
from ultijobs.postgres.driver import PostgresDriver

__all__ = ["EmbeddedDriver", "EmbeddedServer"]


class EmbeddedDriver(PostgresDriver):
    """`embedded:DIR`. Opening starts the server when it does not run, closing stops it behind the last user.

    It makes no database where there is none: `migrate` does.
    """

    def __init__(self, directory: str, schema: str = "public") -> None:
        self._server = EmbeddedServer(directory)
        super().__init__(self._server.url, schema)

    @property
    def url(self) -> str:
        return f"embedded:{self._server.directory}"

    async def open(self, role: str = "app") -> None:
        await asyncio.to_thread(lambda: self._server.start(make=False))
        try:
            await super().open(role)
        except BaseException:
            await self.close()
            raise

    async def close(self) -> None:
        await super().close()
        await asyncio.to_thread(self._server.stop)
