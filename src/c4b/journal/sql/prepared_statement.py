"""A statement that a connection to PostgreSQL keeps prepared, with values in the server's own format.

psycopg's cursors take longer for such a statement than the server does. So this gives it to libpq, by
psycopg's wrapper; errors, and what happens at an interruption, are psycopg's.
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Mapping
from typing import Any

from psycopg import Connection, errors, generators
from psycopg.pq import ExecStatus
from psycopg.pq.abc import PGresult
from sqlalchemy import BigInteger, Integer, LargeBinary, String
from sqlalchemy.dialects.postgresql import psycopg as dialects

_dialect: Any = dialects.dialect  # SQLAlchemy declares no types for it
_NUMBERED = _dialect(paramstyle="numeric_dollar")
_TYPES: dict[type, tuple[int, Callable[[Any], bytes]]] = {
    BigInteger: (20, struct.Struct(">q").pack),
    Integer: (23, struct.Struct(">i").pack),
    LargeBinary: (17, bytes),
    String: (1043, str.encode),
}
"""The server's number of each type, and what makes its format of a value; UTF-8 for texts."""


class PreparedStatement:
    """Belongs to one connection in autocommit mode."""

    def __init__(self, connection: Connection[Any], statement: Any, name: str) -> None:
        if connection.info.encoding != "utf-8":
            connection.execute("SET client_encoding = 'UTF8'")
        made = statement.compile(dialect=_NUMBERED)
        names = made.positiontup or []
        types = [_TYPES[type(made.binds[name].type)] for name in names]
        self._connection, self._name, self._text = connection, name.encode(), str(made).encode()
        self._types = [number for number, _ in types]
        self._packed = [(name, pack) for name, (_, pack) in zip(names, types, strict=True)]
        self._formats = [1] * len(names)
        self._prepare()

    def _prepare(self) -> None:
        _checked(self._connection.pgconn.prepare(self._name, self._text, self._types))

    def run(self, values: Mapping[str, Any]) -> int:
        """How many rows it wrote."""
        given = [None if (v := values[name]) is None else pack(v) for name, pack in self._packed]
        try:
            return self._run(given)
        except errors.InvalidSqlStatementName:  # psycopg has the server forget all after a rollback
            self._prepare()
            return self._run(given)

    def _run(self, given: list[bytes | None]) -> int:
        connection = self._connection
        connection.pgconn.send_query_prepared(self._name, given, self._formats)
        results = connection.wait(generators.execute(connection.pgconn))
        if not results:
            raise errors.ConnectionException("the connection ended without an answer")
        for result in results:  # a second one: the statement was executed, and its commit failed
            _checked(result)
        return results[0].command_tuples or 0


def _checked(result: PGresult) -> PGresult:
    if result.status != ExecStatus.COMMAND_OK:
        raise errors.error_from_result(result)
    return result
