"""Joins the rows of many threads: rows that arrive while a request is under way go together."""

from __future__ import annotations

import atexit
import threading
from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future
from types import TracebackType
from typing import Any, Callable, Union

from . import _operations
from ._errors import WindrowError
from ._operations import Columns, Operation, Result, Row

_Waiting = tuple[Operation, "Future[Result]"]
_Execute = Callable[[Sequence[Operation]], Sequence[Union[Result, WindrowError]]]

MAX_REQUEST_ROWS = 5_000
MAX_REQUEST_BYTES = 4 << 20


class Writer:
    """Sends rows of many threads in common requests, one request at a time.

    `insert`, `upsert`, `update` and `delete` return when the row is answered; `submit` returns a
    future at once. All of them wait while more rows or bytes than allowed wait to be sent.
    """

    def __init__(self, execute: _Execute, max_rows: int, max_bytes: int) -> None:
        self._execute = execute
        self._max_rows = max_rows
        self._max_bytes = max_bytes
        self._changed = threading.Condition()
        self._waiting: deque[_Waiting] = deque()
        self._waiting_bytes = 0
        self._unanswered = 0
        self._is_closed = False
        self._on_capacity: Callable[[], None] | None = None
        self._thread = threading.Thread(target=self._run, name="windrow-writer", daemon=True)
        self._thread.start()
        atexit.register(self.close)

    def insert(self, table: str, row: Row, **options: Any) -> Result:
        """Inserts one row; options are those of `Database.insert`."""
        return self.submit(_operations.insert(table, row, **options)).result()

    def upsert(self, table: str, row: Row, **options: Any) -> Result:
        """Inserts or updates one row; options are those of `Database.upsert`."""
        return self.submit(_operations.upsert(table, row, **options)).result()

    def update(
        self, table: str, key: Any, changes: Row, *, returning: Columns | None = None
    ) -> Result:
        """Updates the row with a key."""
        return self.submit(_operations.update(table, key, changes, returning=returning)).result()

    def delete(self, table: str, key: Any, *, returning: Columns | None = None) -> Result:
        """Deletes the row with a key."""
        return self.submit(_operations.delete(table, key, returning=returning)).result()

    def submit_insert(self, table: str, row: Row, **options: Any) -> Future[Result]:
        """Hands over one row. Returns the future of its result."""
        return self.submit(_operations.insert(table, row, **options))

    def submit(self, operation: Operation) -> Future[Result]:
        """Hands over an operation, and waits for capacity if needed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or self._fits(operation))
            return self._push(operation)

    def try_submit(self, operation: Operation) -> Future[Result] | None:
        """Hands over an operation, or returns None if there is no capacity."""
        with self._changed:
            fits = self._is_closed or self._fits(operation)
            return self._push(operation) if fits else None

    def flush(self) -> None:
        """Waits until everything handed over is answered."""
        with self._changed:
            self._changed.wait_for(lambda: self._unanswered == 0)

    def close(self) -> None:
        """Takes no more rows, and returns when all are answered."""
        with self._changed:
            self._is_closed = True
            self._changed.notify_all()
        self._thread.join()
        atexit.unregister(self.close)

    def __enter__(self) -> Writer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _fits(self, operation: Operation) -> bool:
        size = self._waiting_bytes + len(operation.text)
        return not self._waiting or (
            len(self._waiting) < self._max_rows and size <= self._max_bytes
        )

    def _push(self, operation: Operation) -> Future[Result]:
        if self._is_closed:
            raise RuntimeError("this writer is closed")
        future: Future[Result] = Future()
        self._waiting.append((operation, future))
        self._waiting_bytes += len(operation.text)
        self._unanswered += 1
        if len(self._waiting) == 1:
            self._changed.notify_all()
        return future

    def _take(self) -> list[_Waiting]:
        """Waits for rows. Returns those of the next request, none if the writer is closed."""
        with self._changed:
            self._changed.wait_for(lambda: self._is_closed or bool(self._waiting))
            batch: list[_Waiting] = []
            size = 0
            while self._waiting and len(batch) < MAX_REQUEST_ROWS and size < MAX_REQUEST_BYTES:
                batch.append(self._waiting.popleft())
                size += len(batch[-1][0].text)
            self._waiting_bytes -= size
            self._changed.notify_all()
            on_capacity = self._on_capacity
        if on_capacity is not None:
            on_capacity()
        return batch

    def _run(self) -> None:
        while batch := self._take():
            # A row whose caller has cancelled its future is not sent.
            self._answer([one for one in batch if one[1].set_running_or_notify_cancel()])
            with self._changed:
                self._unanswered -= len(batch)
                self._changed.notify_all()

    def _answer(self, batch: list[_Waiting]) -> None:
        if not batch:
            return
        try:
            outcomes = self._execute([operation for operation, _ in batch])
        except BaseException as error:
            for _, future in batch:
                future.set_exception(error)
            return
        for (_, future), outcome in zip(batch, outcomes):
            if isinstance(outcome, WindrowError):
                future.set_exception(outcome)
            else:
                future.set_result(outcome)
