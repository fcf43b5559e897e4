"""Statements inside one SQL transaction."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from operator import itemgetter
from typing import Any

from sqlalchemy import Dialect

Compiled = tuple[str, dict[str, Any], Callable[[dict[str, Any]], tuple[Any, ...]] | None]
"""A statement's text, the values that are fixed in it, and what puts values in the order of the text;
None for a driver that takes them by name."""


class Transaction:
    """Statements inside one transaction.

    They are SQLAlchemy Core, compiled once for the store's dialect and given to the driver directly,
    because Core's own execution costs several times what SQLite's does.
    """

    def __init__(self, cursor: Any, dialect: Dialect, compiled: dict[Any, Compiled]) -> None:
        self._cursor = cursor
        self.dialect = dialect
        self._compiled = compiled
        self.control: Callable[[str], object] = cursor.execute
        """BEGIN, COMMIT, ROLLBACK or a setting."""

    def one(self, statement: Any, values: dict[str, Any]) -> Any:
        """The first row or None."""
        self.run(statement, values)
        return self._cursor.fetchone()

    def all(self, statement: Any, values: dict[str, Any]) -> list[Any]:
        self.run(statement, values)
        rows: list[Any] = self._cursor.fetchall()
        return rows

    def run(self, statement: Any, values: dict[str, Any]) -> None:
        text, constants, in_order = self._compiled.get(statement) or self._compile(statement)
        if constants:
            values = {**constants, **values}
        self._cursor.execute(text, values if in_order is None else in_order(values))

    def run_ready(self, statement: Any, values: Any) -> int:
        """The same with values as the driver takes them, by name or in the order in which the statement's
        text has them; returns how many rows it wrote."""
        self._cursor.execute((self._compiled.get(statement) or self._compile(statement))[0], values)
        written: int = self._cursor.rowcount
        return written

    def run_many(self, statement: Any, values: list[dict[str, Any]]) -> None:
        text, _, in_order = self._compiled.get(statement) or self._compile(statement)
        self._cursor.executemany(text, values if in_order is None else [*map(in_order, values)])

    def copy(self, command: str, types: Sequence[str], rows: Iterable[Sequence[Any]]) -> None:
        """Rows as one stream, where the server takes such a one."""
        with self._cursor.copy(command) as stream:
            stream.set_types(types)
            for row in rows:
                stream.write_row(row)

    def all_in(self, statement: Any, values: dict[str, Any]) -> list[Any]:
        """As ``all``, for a statement with a list of values, whose text depends on the list's length."""
        made = statement.compile(dialect=self.dialect)
        state = made.construct_expanded_state(values)
        self._cursor.execute(
            state.statement, state.parameters if made.positiontup is None else state.positional_parameters
        )
        rows: list[Any] = self._cursor.fetchall()
        return rows

    def _compile(self, statement: Any) -> Compiled:
        made = statement.compile(dialect=self.dialect)
        constants = {key: value for key, value in made.params.items() if value is not None}
        in_order = None if made.positiontup is None else _picker(made.positiontup)
        self._compiled[statement] = str(made), constants, in_order
        return self._compiled[statement]


def _picker(names: Sequence[str]) -> Callable[[dict[str, Any]], tuple[Any, ...]]:
    """What takes the values of these names from a dictionary, in this order."""
    return itemgetter(*names) if len(names) > 1 else lambda values: tuple(values[name] for name in names)
