"""Writes rows through Windrow over HTTP: batched, safe to retry, one result for each row."""

from ._async import AsyncDatabase, AsyncWriter, aconnect
from ._database import Database, connect
from ._errors import Overloaded, Rejected, Unavailable, UnknownOutcome, WindrowError
from ._operations import Result
from ._writer import Writer

__all__ = [
    "AsyncDatabase",
    "AsyncWriter",
    "Database",
    "Overloaded",
    "Rejected",
    "Result",
    "Unavailable",
    "UnknownOutcome",
    "WindrowError",
    "Writer",
    "aconnect",
    "connect",
]
