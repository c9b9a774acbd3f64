"""A connection to Windrow: sends operations, and sends them again until their outcome is known."""

from __future__ import annotations

import http.client
import itertools
import json
import select
import ssl
import threading
import time
import uuid
from collections.abc import Iterable, Iterator, Sequence
from types import TracebackType
from typing import Any, Callable, Union
from urllib.parse import urlsplit

from . import _errors, _operations
from ._errors import Overloaded, Unavailable, UnknownOutcome, WindrowError
from ._operations import Columns, Operation, Result, Row
from ._writer import Writer

Outcome = Union[Result, WindrowError]

MAX_REQUEST_ROWS = 5_000
MAX_REQUEST_BYTES = 4 << 20
FIRST_RETRY_DELAY = 0.05
MAX_RETRY_DELAY = 2.0


def connect(
    url: str,
    *,
    token: str | None = None,
    timeout: float = 90.0,
    retry_for: float = 60.0,
    idempotent: bool = True,
    ssl_context: ssl.SSLContext | None = None,
    parse_float: Callable[[str], Any] | None = None,
) -> Database:
    """Returns a connection to Windrow; nothing is sent before the first call.

    `timeout` limits the wait for one answer in seconds, `retry_for` all attempts of a request
    together. With `idempotent=False` no key is sent: the database writes one row less for each
    row, and a lost connection is reported as `UnknownOutcome`. `parse_float=decimal.Decimal`
    returns numbers with every digit.
    """
    return Database(url, token, timeout, retry_for, idempotent, ssl_context, parse_float)


class Database:
    """A connection to Windrow that threads may share. Made by `connect`."""

    def __init__(
        self,
        url: str,
        token: str | None,
        timeout: float,
        retry_for: float,
        idempotent: bool,
        ssl_context: ssl.SSLContext | None,
        parse_float: Callable[[str], Any] | None,
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"{url!r} is not an address such as http://127.0.0.1:8420")
        self._host = parts.hostname
        self._port = parts.port
        self._tls = parts.scheme == "https"
        self._path = parts.path.rstrip("/") + "/v1/batch"
        self._headers = {"Content-Type": "application/json"}
        if token is not None:
            self._headers["Authorization"] = f"Bearer {token}"
        self._timeout = timeout
        self._retry_for = retry_for
        self._idempotent = idempotent
        self._ssl_context = ssl_context
        self._parse_float = parse_float
        self._lock = threading.Lock()
        self._idle: list[http.client.HTTPConnection] = []
        self._is_closed = False

    def insert(
        self,
        table: str,
        row: Row,
        *,
        on_conflict: str | None = None,
        key: Columns | None = None,
        returning: Columns | None = None,
        ack: str | None = None,
    ) -> Result:
        """Inserts one row."""
        return self.execute(
            _operations.insert(
                table, row, on_conflict=on_conflict, key=key, returning=returning, ack=ack
            )
        )

    def upsert(
        self,
        table: str,
        row: Row,
        *,
        key: Columns | None = None,
        returning: Columns | None = None,
        ack: str | None = None,
    ) -> Result:
        """Inserts one row, or updates the one with the same primary key or named columns."""
        return self.execute(_operations.upsert(table, row, key=key, returning=returning, ack=ack))

    def update(
        self, table: str, key: Any, changes: Row, *, returning: Columns | None = None
    ) -> Result:
        """Updates the row with a primary key, or with the columns of a mapping."""
        return self.execute(_operations.update(table, key, changes, returning=returning))

    def delete(self, table: str, key: Any, *, returning: Columns | None = None) -> Result:
        """Deletes the row with a primary key, or with the columns of a mapping."""
        return self.execute(_operations.delete(table, key, returning=returning))

    def get(self, table: str, key: Any) -> dict[str, Any] | None:
        """Returns the row with a primary key, or None."""
        asked = _operations.operation("get", table, key, key=key)
        item = self._send([asked], has_key=False, is_read=True)[0]
        if "error" in item:
            raise _errors.of_row(item["error"], key)
        row: dict[str, Any] | None = item.get("row")
        return row

    def insert_many(
        self,
        table: str,
        rows: Iterable[Row],
        *,
        on_conflict: str | None = None,
        key: Columns | None = None,
        returning: Columns | None = None,
        ack: str | None = None,
    ) -> list[Outcome]:
        """Inserts rows that stand alone. Returns a result or an error for each, in order."""
        operations = (
            _operations.insert(
                table, row, on_conflict=on_conflict, key=key, returning=returning, ack=ack
            )
            for row in rows
        )
        outcomes: list[Outcome] = []
        for portion in portions(operations):
            outcomes += self.execute_many(portion)
        return outcomes

    def writer(
        self, *, max_waiting_rows: int = 20_000, max_waiting_bytes: int = 16 << 20
    ) -> Writer:
        """Returns a writer that joins the rows of many threads into common requests."""
        return Writer(self.execute_many, max_waiting_rows, max_waiting_bytes)

    def close(self) -> None:
        """Closes the connections. Close writers first."""
        with self._lock:
            self._is_closed = True
            idle, self._idle = self._idle, []
        for connection in idle:
            connection.close()

    def __enter__(self) -> Database:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def execute(self, operation: Operation) -> Result:
        """Executes one operation, and raises its error."""
        outcome = self.execute_many([operation])[0]
        if isinstance(outcome, WindrowError):
            raise outcome
        return outcome

    def execute_many(self, operations: Sequence[Operation]) -> list[Outcome]:
        """Sends operations as one request. Returns an outcome for each."""
        try:
            items = self._send(operations, has_key=self._idempotent, is_read=False)
        except WindrowError as error:
            return [error.of_row(operation.given) for operation in operations]
        return [
            _operations.result(item, operation.given) for item, operation in zip(items, operations)
        ]

    def _send(
        self, operations: Sequence[Operation], *, has_key: bool, is_read: bool
    ) -> list[dict[str, Any]]:
        """Sends a request until its outcome is known or `retry_for` is over."""
        body = ",".join(operation.text for operation in operations)
        content = ('{"operations":[' + body + "]}").encode()
        headers = {**self._headers, "Idempotency-Key": str(uuid.uuid4())} if has_key else None
        attempt = _Attempts(self._retry_for, can_repeat=has_key or is_read)
        while True:
            try:
                status, body_read, retry_after = self._once(content, headers or self._headers)
            except WindrowError as error:
                attempt.wait_or_raise(error)
                continue
            if status not in (200, 201, 202, 207):
                attempt.wait_or_raise(_errors.of_answer(status, body_read, retry_after))
                continue
            items = _results(body_read, len(operations))
            if items is None:
                attempt.wait_or_raise(UnknownOutcome("the answer cannot be read", status=status))
            elif not (has_key and attempt.wait_for_rows(items)):
                return attempt.honest(items)

    def _once(self, content: bytes, headers: dict[str, str]) -> tuple[int, Any, float | None]:
        connection = self._take()
        try:
            connection.request("POST", self._path, content, headers)
            answer = connection.getresponse()
            data = answer.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise UnknownOutcome(f"the connection was lost: {error}") from error
        except BaseException:
            connection.close()
            raise
        self._give_back(connection)
        try:
            body = json.loads(data, parse_float=self._parse_float) if data else None
        except ValueError:
            body = None
        return answer.status, body, _seconds(answer.getheader("Retry-After"))

    def _take(self) -> http.client.HTTPConnection:
        with self._lock:
            if self._is_closed:
                raise RuntimeError("this connection to Windrow is closed")
            while self._idle:
                kept = self._idle.pop()
                if _is_open(kept):
                    return kept
                kept.close()
        connection: http.client.HTTPConnection
        if self._tls:
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=self._ssl_context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise Unavailable(f"{self._host}:{connection.port}: {error}") from error
        return connection

    def _give_back(self, connection: http.client.HTTPConnection) -> None:
        with self._lock:
            if not self._is_closed and connection.sock is not None:
                self._idle.append(connection)
                return
        connection.close()


def _is_open(connection: http.client.HTTPConnection) -> bool:
    """Returns False if the other end has closed an idle connection."""
    try:
        return not select.select([connection.sock], [], [], 0)[0]
    except ValueError:
        # More descriptors than select takes.
        return True


class _Attempts:
    """The attempts of one request: how long to wait between them, and what is certain."""

    def __init__(self, retry_for: float, *, can_repeat: bool) -> None:
        self._ends = time.monotonic() + retry_for
        self._can_repeat = can_repeat
        self._delay = FIRST_RETRY_DELAY
        self._may_be_executed = False

    def wait_or_raise(self, error: WindrowError) -> None:
        """Waits until the next attempt. Raises the error if there is none."""
        is_unknown = isinstance(error, UnknownOutcome)
        self._may_be_executed |= is_unknown
        repeats = self._can_repeat or not is_unknown
        if not (_errors.can_try_again(error) and repeats and self._wait(error.retry_after)):
            raise self._certain(error)

    def wait_for_rows(self, items: list[dict[str, Any]]) -> bool:
        """Waits if rows of an answer may succeed later. Returns False if none may."""
        return any(map(_may_succeed, items)) and self._wait(None)

    def honest(self, items: list[dict[str, Any]]) -> list[dict[str, Any]]:
        """Marks rows as unknown that an earlier, lost attempt may have written."""
        if self._may_be_executed:
            for item in filter(_may_succeed, items):
                item["error"]["code"] = "08007"
        return items

    def _certain(self, error: WindrowError) -> WindrowError:
        if self._may_be_executed and isinstance(error, (Overloaded, Unavailable)):
            return error.as_kind(UnknownOutcome, error.row)
        return error

    def _wait(self, seconds: float | None) -> bool:
        delay = self._delay if seconds is None else max(seconds, 0.0)
        self._delay = min(self._delay * 2, MAX_RETRY_DELAY)
        if time.monotonic() + delay >= self._ends:
            return False
        time.sleep(delay)
        return True


def _may_succeed(item: dict[str, Any]) -> bool:
    return "error" in item and _errors.is_away(item["error"])


def _results(body: Any, count: int) -> list[dict[str, Any]] | None:
    """Returns the results of an answer, or None if it has not one for each operation."""
    items = body.get("results") if isinstance(body, dict) else None
    return items if isinstance(items, list) and len(items) == count else None


def _seconds(header: str | None) -> float | None:
    try:
        return None if header is None else float(header)
    except ValueError:
        return None


def portions(operations: Iterable[Operation]) -> Iterator[list[Operation]]:
    """Splits operations into requests of limited rows and bytes."""
    rest = iter(operations)
    for first in rest:
        portion, size = [first], len(first.text)
        for one in itertools.islice(rest, MAX_REQUEST_ROWS - 1):
            portion.append(one)
            size += len(one.text)
            if size >= MAX_REQUEST_BYTES:
                break
        yield portion
