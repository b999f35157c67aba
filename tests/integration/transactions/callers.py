"""A caller with a transaction of its own, once per library: the same moves, so that one suite holds for all."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any, TypeVar
from urllib.parse import urlsplit

import asyncpg
import django
import django.conf
import django.db
import psycopg
import sqlalchemy
import sqlalchemy.orm
from sqlalchemy.ext.asyncio import AsyncSession, create_async_engine

T = TypeVar("T")


class Caller:
    """Async libraries override the hooks; `tx` is what an enqueue is given."""

    sync = False
    tx: Any

    async def enqueue(self, handle: Any, *args: Any, **options: Any) -> Any:
        return await handle.enqueue(*args, tx=self.tx, **options)

    async def enqueue_many(self, handle: Any, inputs: Any, **options: Any) -> Any:
        return await handle.enqueue_many(inputs, tx=self.tx, **options)

    async def enqueue_bound(self, app: Any, handle: Any, *args: Any) -> Any:
        async with app.transaction(self.tx):
            return await handle.enqueue(*args)

    async def publish(self, app: Any, *args: Any, **options: Any) -> None:
        await app.publish(*args, tx=self.tx, **options)

    async def wrong_call(self, handle: Any, *args: Any) -> Any:
        """The call of the other kind; a sync one needs a thread without a loop."""
        return await asyncio.to_thread(handle.enqueue_sync, *args, tx=self.tx)

    async def execute(self, statement: str) -> Any:
        raise NotImplementedError

    async def commit(self) -> None:
        await self.execute("commit")

    async def rollback(self) -> None:
        await self.execute("rollback")

    @asynccontextmanager
    async def lost_savepoint(self) -> AsyncIterator[None]:
        await self.execute("savepoint callers")
        yield
        await self.execute("rollback to savepoint callers")

    async def pid(self) -> int:
        return int(await self.execute("select pg_backend_pid()"))


class AsyncpgCaller(Caller):
    def __init__(self, tx: asyncpg.Connection) -> None:
        self.tx = tx

    @classmethod
    @asynccontextmanager
    async def on(cls, url: str) -> AsyncIterator[Caller]:
        connection = await asyncpg.connect(url)
        await connection.execute("begin")
        yield cls(connection)
        await connection.close(timeout=5)

    async def execute(self, statement: str) -> Any:
        return await self.tx.fetchval(statement)


class PsycopgAsyncCaller(Caller):
    def __init__(self, tx: psycopg.AsyncConnection) -> None:
        self.tx = tx

    @classmethod
    @asynccontextmanager
    async def on(cls, url: str) -> AsyncIterator[Caller]:
        connection = await psycopg.AsyncConnection.connect(url)
        yield cls(connection)
        await connection.close()

    async def execute(self, statement: str) -> Any:
        cursor = await self.tx.execute(statement)
        return None if cursor.description is None else (await cursor.fetchone())[0]

    async def commit(self) -> None:
        await self.tx.commit()

    async def rollback(self) -> None:
        await self.tx.rollback()


class SqlAlchemyAsyncCaller(Caller):
    dialect = "asyncpg"

    def __init__(self, tx: Any) -> None:
        self.tx = tx

    @classmethod
    @asynccontextmanager
    async def on(cls, url: str) -> AsyncIterator[Caller]:
        engine = create_async_engine(url.replace("postgresql", f"postgresql+{cls.dialect}"))
        try:
            async with cls.opened(engine) as tx:
                yield cls(tx)
        finally:
            await engine.dispose()

    @staticmethod
    def opened(engine: Any) -> AbstractAsyncContextManager[Any]:
        return AsyncSession(engine)

    async def execute(self, statement: str) -> Any:
        result = await self.tx.execute(sqlalchemy.text(statement))
        return result.scalar() if result.returns_rows else None

    async def commit(self) -> None:
        await self.tx.commit()

    async def rollback(self) -> None:
        await self.tx.rollback()

    @asynccontextmanager
    async def lost_savepoint(self) -> AsyncIterator[None]:
        nested = await self.tx.begin_nested()
        yield
        await nested.rollback()


class SqlAlchemyAsyncPsycopgCaller(SqlAlchemyAsyncCaller):
    dialect = "psycopg"


class SqlAlchemyAsyncConnectionCaller(SqlAlchemyAsyncCaller):
    @staticmethod
    def opened(engine: Any) -> AbstractAsyncContextManager[Any]:
        return engine.connect()


class SyncCaller(Caller):
    """All its calls are made on one thread of its own, as those of a sync program are."""

    sync = True

    def __init__(self, thread: ThreadPoolExecutor, tx: Any) -> None:
        self.thread = thread
        self.tx = tx

    @classmethod
    @asynccontextmanager
    async def on(cls, url: str) -> AsyncIterator[Caller]:
        with ThreadPoolExecutor(1) as thread:
            loop = asyncio.get_running_loop()
            tx, close = await loop.run_in_executor(thread, cls.opened, url)
            try:
                yield cls(thread, tx)
            finally:
                await loop.run_in_executor(thread, close)

    @staticmethod
    def opened(url: str) -> tuple[Any, Callable[[], None]]:
        raise NotImplementedError

    async def there(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self.thread, call)

    async def enqueue(self, handle: Any, *args: Any, **options: Any) -> Any:
        return await self.there(lambda: handle.enqueue_sync(*args, tx=self.tx, **options))

    async def enqueue_many(self, handle: Any, inputs: Any, **options: Any) -> Any:
        return await self.there(lambda: handle.enqueue_many_sync(inputs, tx=self.tx, **options))

    async def enqueue_bound(self, app: Any, handle: Any, *args: Any) -> Any:
        def bound() -> Any:
            with app.transaction(self.tx):
                return handle.enqueue_sync(*args)

        return await self.there(bound)

    async def publish(self, app: Any, *args: Any, **options: Any) -> None:
        await self.there(lambda: app.publish_sync(*args, tx=self.tx, **options))

    async def wrong_call(self, handle: Any, *args: Any) -> Any:
        return await handle.enqueue(*args, tx=self.tx)

    async def execute(self, statement: str) -> Any:
        return await self.there(lambda: self.executed(statement))

    def executed(self, statement: str) -> Any:
        raise NotImplementedError

    async def commit(self) -> None:
        await self.there(lambda: self.tx.commit())  # noqa: PLW0108 - looked up on that thread

    async def rollback(self) -> None:
        await self.there(lambda: self.tx.rollback())  # noqa: PLW0108 - as above


class PsycopgCaller(SyncCaller):
    @staticmethod
    def opened(url: str) -> tuple[Any, Callable[[], None]]:
        connection = psycopg.connect(url)
        return connection, connection.close

    def executed(self, statement: str) -> Any:
        cursor = self.tx.execute(statement)
        return None if cursor.description is None else cursor.fetchone()[0]


class SqlAlchemyCaller(SyncCaller):
    @staticmethod
    def opened(url: str) -> tuple[Any, Callable[[], None]]:
        engine = sqlalchemy.create_engine(url.replace("postgresql", "postgresql+psycopg"))
        session = sqlalchemy.orm.Session(engine)

        def close() -> None:
            session.close()
            engine.dispose()

        return session, close

    def executed(self, statement: str) -> Any:
        result = self.tx.execute(sqlalchemy.text(statement))
        return result.scalar() if result.returns_rows else None


class SqlAlchemyConnectionCaller(SqlAlchemyCaller):
    @staticmethod
    def opened(url: str) -> tuple[Any, Callable[[], None]]:
        engine = sqlalchemy.create_engine(url.replace("postgresql", "postgresql+psycopg"))
        connection = engine.connect()

        def close() -> None:
            connection.close()
            engine.dispose()

        return connection, close


class DjangoCaller(SyncCaller):
    """`django.db.connection` itself, in a transaction as `ATOMIC_REQUESTS` or `set_autocommit(False)` leaves it."""

    @staticmethod
    def opened(url: str) -> tuple[Any, Callable[[], None]]:
        if not django.conf.settings.configured:
            django.conf.settings.configure(DATABASES={})
            django.setup()
        parts = urlsplit(url)
        django.db.connections.settings = django.db.connections.configure_settings(
            {
                "default": {
                    "ENGINE": "django.db.backends.postgresql",
                    "NAME": parts.path[1:],
                    "HOST": parts.hostname,
                    "PORT": parts.port,
                    "USER": parts.username,
                }
            }
        )
        connection = django.db.connection
        connection.set_autocommit(False)

        def close() -> None:
            connection.close()
            del django.db.connections["default"]

        return connection, close

    def executed(self, statement: str) -> Any:
        with self.tx.cursor() as cursor:
            cursor.execute(statement)
            return None if cursor.description is None else cursor.fetchone()[0]


CALLERS: list[type[Any]] = [
    AsyncpgCaller,
    PsycopgAsyncCaller,
    SqlAlchemyAsyncCaller,
    SqlAlchemyAsyncPsycopgCaller,
    SqlAlchemyAsyncConnectionCaller,
    PsycopgCaller,
    SqlAlchemyCaller,
    SqlAlchemyConnectionCaller,
    DjangoCaller,
]
