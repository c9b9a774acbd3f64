"""The same for asyncio. Requests run in threads; rows of many tasks share one writer."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from types import TracebackType
from typing import Any, Callable, TypeVar

from . import _operations
from ._database import Database, Outcome, connect
from ._operations import Columns, Operation, Result, Row
from ._writer import Writer

T = TypeVar("T")

MAX_REQUESTS = 16


def aconnect(url: str, **options: Any) -> AsyncDatabase:
    """Returns a connection for asyncio; options are those of `connect`."""
    return AsyncDatabase(connect(url, **options))


class AsyncDatabase:
    """A connection to Windrow for tasks of one event loop. Made by `aconnect`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._threads = ThreadPoolExecutor(MAX_REQUESTS, "windrow")

    async def insert(self, table: str, row: Row, **options: Any) -> Result:
        """Inserts one row; options are those of `Database.insert`."""
        return await self._call(partial(self._database.insert, table, row, **options))

    async def upsert(self, table: str, row: Row, **options: Any) -> Result:
        """Inserts or updates one row; options are those of `Database.upsert`."""
        return await self._call(partial(self._database.upsert, table, row, **options))

    async def update(
        self, table: str, key: Any, changes: Row, *, returning: Columns | None = None
    ) -> Result:
        """Updates the row with a key."""
        return await self._call(
            partial(self._database.update, table, key, changes, returning=returning)
        )

    async def delete(self, table: str, key: Any, *, returning: Columns | None = None) -> Result:
        """Deletes the row with a key."""
        return await self._call(partial(self._database.delete, table, key, returning=returning))

    async def get(self, table: str, key: Any) -> dict[str, Any] | None:
        """Returns the row with a key, or None."""
        return await self._call(partial(self._database.get, table, key))

    async def insert_many(self, table: str, rows: Iterable[Row], **options: Any) -> list[Outcome]:
        """Inserts rows that stand alone. Returns a result or an error for each, in order."""
        return await self._call(partial(self._database.insert_many, table, rows, **options))

    def writer(self, **limits: int) -> AsyncWriter:
        """Returns a writer that joins the rows of many tasks into common requests."""
        return AsyncWriter(self._database.writer(**limits))

    async def close(self) -> None:
        """Waits for requests under way, and closes the connections."""
        await asyncio.to_thread(self._threads.shutdown)
        self._database.close()

    async def __aenter__(self) -> AsyncDatabase:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _call(self, call: Callable[[], T]) -> T:
        return await asyncio.get_running_loop().run_in_executor(self._threads, call)


class AsyncWriter:
    """Sends rows of many tasks in common requests, one request at a time.

    A task that is cancelled while its row waits takes the row back. Once the row is under way,
    it may be written.
    """

    def __init__(self, writer: Writer) -> None:
        self._writer = writer
        self._loop = asyncio.get_running_loop()
        self._capacity = asyncio.Event()
        writer._on_capacity = self._wake

    async def insert(self, table: str, row: Row, **options: Any) -> Result:
        """Inserts one row; options are those of `Database.insert`."""
        return await self._submit(_operations.insert(table, row, **options))

    async def upsert(self, table: str, row: Row, **options: Any) -> Result:
        """Inserts or updates one row; options are those of `Database.upsert`."""
        return await self._submit(_operations.upsert(table, row, **options))

    async def update(
        self, table: str, key: Any, changes: Row, *, returning: Columns | None = None
    ) -> Result:
        """Updates the row with a key."""
        return await self._submit(_operations.update(table, key, changes, returning=returning))

    async def delete(self, table: str, key: Any, *, returning: Columns | None = None) -> Result:
        """Deletes the row with a key."""
        return await self._submit(_operations.delete(table, key, returning=returning))

    async def flush(self) -> None:
        """Waits until everything handed over is answered."""
        await asyncio.to_thread(self._writer.flush)

    async def close(self) -> None:
        """Takes no more rows, and returns when all are answered."""
        await asyncio.to_thread(self._writer.close)

    async def __aenter__(self) -> AsyncWriter:
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        await self.close()

    async def _submit(self, operation: Operation) -> Result:
        while True:
            self._capacity.clear()
            future = self._writer.try_submit(operation)
            if future is not None:
                return await asyncio.wrap_future(future)
            await self._capacity.wait()

    def _wake(self) -> None:
        if not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._capacity.set)
