"""The errors that a write can end with, and how an answer of Windrow becomes one of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


class WindrowError(Exception):
    """A write or read that failed. `row` is what the caller gave, `code` the SQLSTATE."""

    def __init__(
        self,
        message: str,
        *,
        code: str | None = None,
        status: int | None = None,
        fields: Mapping[str, Any] | None = None,
        row: Any = None,
        retry_after: float | None = None,
    ) -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.status = status
        self.fields: dict[str, Any] = dict(fields or {})
        self.row = row
        self.retry_after = retry_after

    @property
    def constraint(self) -> str | None:
        """The violated constraint, if the database named one."""
        return self.fields.get("constraint")

    @property
    def column(self) -> str | None:
        """The column at fault, if the database named one."""
        return self.fields.get("column")

    def of_row(self, row: Any) -> WindrowError:
        """Returns the same error for one row of a request."""
        return self.as_kind(type(self), row)

    def as_kind(self, kind: type[WindrowError], row: Any) -> WindrowError:
        """Returns an error of another class with the same words."""
        return kind(
            self.message,
            code=self.code,
            status=self.status,
            fields=self.fields,
            row=row,
            retry_after=self.retry_after,
        )

    def __str__(self) -> str:
        return f"{self.code}: {self.message}" if self.code else self.message


class Rejected(WindrowError):
    """The row or request is refused and was not written: a constraint, a type, a right."""


class Overloaded(WindrowError):
    """Memory or spool stayed full until `retry_for` was over. Nothing was written."""


class Unavailable(WindrowError):
    """Windrow or the database stayed away until `retry_for` was over. Nothing was written."""


class UnknownOutcome(WindrowError):
    """The connection broke before the answer. The row may have been written."""


_TRY_AGAIN = (Overloaded, Unavailable, UnknownOutcome)


def can_try_again(error: WindrowError) -> bool:
    """Returns True if the same request may succeed later."""
    return isinstance(error, _TRY_AGAIN)


def is_away(fields: Mapping[str, Any]) -> bool:
    """Returns True if a row failed because the database was away or memory was full.

    A lock or a conflict concerns one row, and Windrow has retried it: its neighbours do not wait.
    """
    code = str(fields.get("code", ""))
    return code.startswith(("08", "53", "57P")) or code == "25006"


def _class_of_status(status: int, code: str) -> type[WindrowError]:
    if status == 429:
        return Overloaded
    if status in (408, 503):
        return Unavailable
    if status == 409 and code.startswith("55"):
        # An earlier attempt with this key is not answered yet.
        return UnknownOutcome
    return UnknownOutcome if status in (500, 502, 504) else Rejected


def _class_of_code(code: str) -> type[WindrowError]:
    if code in ("08007", "40003"):
        return UnknownOutcome
    if code.startswith("53"):
        return Overloaded
    if code.startswith(("08", "40", "55", "57")) or code == "25006":
        return Unavailable
    return Rejected


def of_answer(status: int, body: Any, retry_after: float | None) -> WindrowError:
    """Returns the error of a whole request."""
    error = body.get("error") if isinstance(body, dict) else None
    fields = error if isinstance(error, dict) else {}
    code = fields.get("code")
    kind = _class_of_status(status, code or "")
    message = str(fields.get("message") or f"answered with status {status}")
    return kind(message, code=code, status=status, fields=fields, retry_after=retry_after)


def of_row(fields: Mapping[str, Any], row: Any, *, hint: str = "") -> WindrowError:
    """Returns the error of one row of a request that was answered. `hint` follows its message."""
    code = str(fields.get("code", ""))
    message = str(fields.get("message", "refused")) + hint
    return _class_of_code(code)(message, code=code, fields=fields, row=row)
