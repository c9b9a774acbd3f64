"""Operations of `POST /v1/batch` as JSON, and their results."""

from __future__ import annotations

import base64
import datetime
import json
import math
import uuid
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any, Union

from . import _errors

Row = Mapping[str, Any]
Columns = Union[str, Sequence[str]]


@dataclass(frozen=True)
class Result:
    """The outcome of one write."""

    rows: int
    """Rows written; 0 if an update or delete found none, or a conflict was ignored."""
    returned: dict[str, Any] | None = None
    """The columns that `returning` asked for."""
    accepted: bool = False
    """True if the spool has the row and the database does not have it yet."""


@dataclass(frozen=True)
class Operation:
    """One operation, encoded, and the row or key that its caller gave."""

    text: str
    given: Any


def _plain(value: Any) -> Any:
    if isinstance(value, (datetime.datetime, datetime.date, datetime.time)):
        return value.isoformat()
    if isinstance(value, uuid.UUID):
        return str(value)
    if isinstance(value, (bytes, bytearray, memoryview)):
        return base64.b64encode(value).decode("ascii")
    raise TypeError(f"a value of type {type(value).__name__} cannot be sent")


def _exact(value: Any) -> str:
    """Returns JSON with every digit of decimals; NaN and infinities are texts."""
    if isinstance(value, Decimal):
        return str(value) if value.is_finite() else json.dumps(str(value))
    if isinstance(value, float) and not math.isfinite(value):
        return json.dumps({"nan": "NaN", "inf": "Infinity", "-inf": "-Infinity"}[str(value)])
    if isinstance(value, Mapping):
        members = (f"{json.dumps(str(name))}:{_exact(one)}" for name, one in value.items())
        return "{" + ",".join(members) + "}"
    if isinstance(value, (list, tuple)):
        return "[" + ",".join(map(_exact, value)) + "]"
    return json.dumps(value, default=_plain)


_fast = json.JSONEncoder(default=_plain, allow_nan=False, separators=(",", ":")).encode


def encode(value: Any) -> str:
    """Returns a value as the JSON that docs/http.md describes."""
    try:
        return _fast(value)
    except (TypeError, ValueError):
        return _exact(value)


def operation(op: str, table: str, given: Any, **parts: Any) -> Operation:
    """Encodes an operation; parts that are None are left out."""
    whole = {"op": op, "table": table}
    whole.update((name, part) for name, part in parts.items() if part is not None)
    return Operation(encode(whole), given)


def insert(
    table: str,
    row: Row,
    *,
    on_conflict: str | None = None,
    key: Columns | None = None,
    returning: Columns | None = None,
    ack: str | None = None,
) -> Operation:
    """Encodes an insert."""
    return operation(
        "insert",
        table,
        row,
        row=dict(row),
        on_conflict=on_conflict,
        key=_listed(key),
        returning=_returned(returning),
        ack=ack,
    )


def upsert(
    table: str,
    row: Row,
    *,
    key: Columns | None = None,
    returning: Columns | None = None,
    ack: str | None = None,
) -> Operation:
    """Encodes an insert that updates the row with the same key."""
    return operation(
        "upsert",
        table,
        row,
        row=dict(row),
        key=_listed(key),
        returning=_returned(returning),
        ack=ack,
    )


def update(table: str, key: Any, changes: Row, *, returning: Columns | None = None) -> Operation:
    """Encodes an update of the row with a key."""
    return operation(
        "update", table, changes, key=key, row=dict(changes), returning=_returned(returning)
    )


def delete(table: str, key: Any, *, returning: Columns | None = None) -> Operation:
    """Encodes the deletion of the row with a key."""
    return operation("delete", table, key, key=key, returning=_returned(returning))


def _returned(columns: Columns | None) -> Columns | None:
    return columns if columns == "*" else _listed(columns)


def _listed(columns: Columns | None) -> list[str] | None:
    """Returns names of columns as a list; a text is one name."""
    if columns is None:
        return None
    return [columns] if isinstance(columns, str) else list(columns)


def _non_finite(given: Any) -> str:
    """Names the members of a row that are no numbers of JSON."""
    if not isinstance(given, Mapping):
        return ""
    numbers = ((name, one) for name, one in given.items() if isinstance(one, (float, Decimal)))
    names = ", ".join(str(name) for name, one in numbers if not math.isfinite(one))
    return f" ({names}: JSON has no NaN and no infinity, so a text was sent)" if names else ""


def result(item: Mapping[str, Any], given: Any) -> Result | _errors.WindrowError:
    """Reads the result of one operation."""
    if "error" in item:
        return _errors.of_row(item["error"], given, hint=_non_finite(given))
    if "accepted" in item:
        return Result(int(item["accepted"]), accepted=True)
    return Result(int(item["rows"]), item.get("returned"))
